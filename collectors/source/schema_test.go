package source_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// Files that together have an object of every kind, besides wholeFiles.
const (
	everyRowFile = `{"id": "a", "name": "A", "institution": "bhd", "labels": {"Euro": {"currency": "EUR"}},
  "secret": {"name": "a", "header": "X-Api-Key"}, "oauth2": {"url": "https://a.example/token", "clientId": "a", "clientSecret": "b"},
  "evidence": {"grade": "reported", "seen": "2026-08", "by": "ana"}, "expiry": {"afterCheck": "20h"}, "bounds": [{"currency": "USD", "lowest": "40"}],
  "pages": [{"name": "html", "requests": [{"url": "https://a.example/"}, {"method": "POST", "addressFrom": {"selector": "a", "attribute": "href"}, "form": {}}],
    "extract": {"method": "html-rows", "expect": [{"at": "h1", "pattern": "a"}], "date": {"at": "p", "form": "iso"},
      "rows": {"at": "tr", "label": {"at": "td"}, "buy": {"column": "Compra"}, "sell": {"at": "b"}, "date": {"at": "i", "form": "iso"}}}},
    {"name": "json", "requests": [{"url": "https://a.example/"}], "extract": {"method": "json-fields", "date": {"at": "d", "form": "iso"},
      "expect": [{"path": "a", "value": "b"}], "fields": [{"currency": "USD", "side": "buy", "at": "a"}]}},
    {"name": "rows", "requests": [{"url": "https://a.example/"}], "extract": {"method": "json-rows", "date": {"at": "d", "form": "iso"},
      "rows": {"label": {"at": "b"}, "buy": {"at": "a"}, "sell": {"at": "b"}, "date": {"at": "c", "form": "iso"}}}},
    {"name": "value", "requests": [{"url": "https://a.example/"}], "extract": {"method": "html-rows",
      "rows": {"at": "tr", "label": {"at": "td"}, "value": {"at": "td"}, "labels": {"Euro": {"currency": "EUR", "side": "buy"}}}}},
    {"name": "text", "currency": "USD", "requests": [{"url": "https://a.example/"}], "extract": {"method": "text-regex",
      "date": {"at": "p", "form": "iso"}, "text": {"pattern": "(?P<label>.)(?P<buy>.)"}}}]}`
	changesFile = `{"id": "popular-site", "priority": 90}`
)

func compileSchema(t *testing.T) (schema *jsonschema.Schema, text any) {
	t.Helper()
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(source.Schema()))
	must(t, err)
	compiler := jsonschema.NewCompiler()
	must(t, compiler.AddResource("schema.json", text))
	schema, err = compiler.Compile("schema.json")
	must(t, err)
	return schema, text
}

func decode(t *testing.T, text string) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	must(t, err)
	return value
}

// TestSchema_AcceptsDefinitions wants every built-in definition, every example of docs/definitions.md and every file of
// the tests valid.
func TestSchema_AcceptsDefinitions(t *testing.T) {
	schema, _ := compileSchema(t)
	texts := append(wholeFiles(), everyRowFile, changesFile, `{"$schema": "a.schema", "id": "a", "disabled": ""}`)
	for _, text := range embeddedFiles(t) {
		texts = append(texts, string(text))
	}
	examples := documentedDefinitions(t)
	if len(examples) < 12 {
		t.Errorf("%d examples in docs/definitions.md", len(examples))
	}
	for _, text := range append(texts, examples...) {
		if err := schema.Validate(decode(t, text)); err != nil {
			t.Errorf("%v\n%.300s", err, text)
		}
	}
}

// documentedDefinitions returns the definitions in docs/definitions.md.
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
		texts = append(texts, string(raw))
		rest = rest[start+int(decoder.InputOffset()):]
	}
}

// TestSchema_HasTheKeysOfTheReader adds keys to each object of a file, and wants those that the reader does not know
// refused by the schema, and no others.
func TestSchema_HasTheKeysOfTheReader(t *testing.T) {
	schema, text := compileSchema(t)
	universe := map[string]bool{"zz": true}
	collectKeys(text, universe)
	places := 0
	for _, file := range append(wholeFiles(), everyRowFile, changesFile) {
		if file == textFile {
			continue // its pattern has no labels, and the schema can't see that
		}
		eachObject(decode(t, file), func(path string, root any, place map[string]any) {
			places++
			before := maps.Clone(place)
			known := readerKeys(t, root, place)
			for key := range known {
				universe[key] = true
			}
			for key := range universe {
				if _, has := place[key]; !has && !(path == "" && key == "pages") {
					place[key] = nil
				}
			}
			refused := map[string]bool{}
			for _, m := range regexp.MustCompile(`unknown key "([^"]+)"`).FindAllStringSubmatch(readError(t, root), -1) {
				refused[m[1]] = true
			}
			got := refusedKeys(schema.Validate(root))
			clear(place)
			maps.Copy(place, before)
			for key := range universe {
				if got[key] != refused[key] {
					t.Errorf("%s: the key %s: unknown to the schema %t, to the reader %t", path, key, got[key], refused[key])
				}
			}
		})
	}
	if places < 60 {
		t.Errorf("only %d objects were compared", places)
	}
}

// readerKeys returns the keys that the reader knows in an object.
func readerKeys(t *testing.T, root any, place map[string]any) map[string]bool {
	place["zz"] = nil
	defer delete(place, "zz")
	known := map[string]bool{}
	if m := regexp.MustCompile(`unknown key "zz"; known are ([^\n]*)`).FindStringSubmatch(readError(t, root)); m != nil {
		for key := range strings.SplitSeq(m[1], ", ") {
			known[key] = true
		}
	}
	return known
}

func readError(t *testing.T, root any) string {
	t.Helper()
	text, err := json.Marshal(root)
	must(t, err)
	_, err = source.Read("f.json", text)
	return fmt.Sprint(err)
}

// refusedKeys returns the keys that a schema does not know.
func refusedKeys(err error) map[string]bool {
	keys := map[string]bool{}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return keys
	}
	switch problem := invalid.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, key := range problem.Properties {
			keys[key] = true
		}
	case *kind.PropertyNames:
		keys[problem.Property] = true
	}
	for _, cause := range invalid.Causes {
		maps.Copy(keys, refusedKeys(cause))
	}
	return keys
}

// collectKeys adds the keys that a schema names.
func collectKeys(schema any, keys map[string]bool) {
	switch value := schema.(type) {
	case map[string]any:
		if properties, ok := value["properties"].(map[string]any); ok {
			for key := range properties {
				keys[key] = true
			}
		}
		for _, part := range value {
			collectKeys(part, keys)
		}
	case []any:
		for _, part := range value {
			collectKeys(part, keys)
		}
	}
}

// eachObject calls visit for each object whose keys have a meaning.
func eachObject(root any, visit func(path string, root any, place map[string]any)) {
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			if !strings.HasSuffix(path, ".labels") && !regexp.MustCompile(`\.(headers|form|json)$`).MatchString(path) {
				visit(path, root, value)
			}
			for _, key := range slices.Sorted(maps.Keys(value)) {
				if !regexp.MustCompile(`\.json$`).MatchString(path) {
					walk(path+"."+key, value[key])
				}
			}
		case []any:
			for i, item := range value {
				walk(fmt.Sprintf("%s[%d]", path, i), item)
			}
		}
	}
	walk("", root)
}

// TestSchema_HasTheWords wants the lists of words that package engine owns in the schema.
func TestSchema_HasTheWords(t *testing.T) {
	_, text := compileSchema(t)
	schema := text.(map[string]any)
	for path, want := range map[string]string{
		"$defs.channel": fmt.Sprint(engine.Channels()), "properties.kind": fmt.Sprint(engine.Kinds()),
	} {
		outer, inner, _ := strings.Cut(path, ".")
		if got := fmt.Sprint(schema[outer].(map[string]any)[inner].(map[string]any)["enum"]); got != want {
			t.Errorf("%s has %s, want %s", path, got, want)
		}
	}
}
