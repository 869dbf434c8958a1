package source_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// TestSchema_AcceptsDefinitions wants every built-in definition, every example of docs/definitions.md and every file of
// the tests valid.
func TestSchema_AcceptsDefinitions(t *testing.T) {
	texts := wholeFiles()
	for _, text := range embeddedFiles(t) {
		texts = append(texts, string(text))
	}
	examples := documentedDefinitions(t)
	for _, method := range []source.Method{source.HTMLFields, source.HTMLRows, source.JSONFields, source.JSONRows, source.TextRegex, source.XLSXRows} {
		if !strings.Contains(strings.Join(examples, ""), fmt.Sprintf(`"method": %q`, method)) {
			t.Errorf("docs/definitions.md has no example of %s", method)
		}
	}
	for _, text := range append(texts, examples...) {
		if strings.Contains(text, `"pages"`) {
			mustRead(t, text)
		} else {
			mustExtend(t, map[string]string{"a.json": text, "popular.pem": ""})
		}
	}
}

// documentedDefinitions returns the definitions in docs/definitions.md, and its extracts as definitions.
func documentedDefinitions(t *testing.T) (texts []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "definitions.md"))
	must(t, err)
	for rest := string(page); ; {
		start := strings.Index(rest, "\n    {")
		if start < 0 {
			return texts
		}
		decoder := json.NewDecoder(strings.NewReader(rest[start:]))
		var raw json.RawMessage
		must(t, decoder.Decode(&raw))
		text := string(raw)
		if strings.HasPrefix(text, `{"method"`) {
			text = `{"id": "a", "name": "A", "institution": "bhd", "pages": [{"currency": "USD", "requests": [{"url": "https://a.do/"}], "extract": ` + text + `}]}`
		}
		texts = append(texts, text)
		rest = rest[start+int(decoder.InputOffset()):]
	}
}

// TestSchema_HasTheWords wants the lists of words that package engine owns in the schema.
func TestSchema_HasTheWords(t *testing.T) {
	var schema map[string]any
	must(t, json.Unmarshal(source.Schema(), &schema))
	for path, want := range map[string]string{
		"$defs.channel": fmt.Sprint(engine.Channels()), "properties.kind": fmt.Sprint(engine.Kinds()),
	} {
		outer, inner, _ := strings.Cut(path, ".")
		if got := fmt.Sprint(schema[outer].(map[string]any)[inner].(map[string]any)["enum"]); got != want {
			t.Errorf("%s has %s, want %s", path, got, want)
		}
	}
}
