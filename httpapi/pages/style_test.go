package pages

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWords_Both checks that every text exists in both languages, takes the same values and is used, and that every
// key has a text.
func TestWords_Both(t *testing.T) {
	verbs, asked := regexp.MustCompile(`%[a-z]`), regexp.MustCompile(`\.(?:T|Str|Count)\("([a-zA-Z0-9.]+)"`)
	quoted, frame := regexp.MustCompile(`"([a-z]+(?:\.[a-zA-Z0-9.]*)?)"`), sourceOf(t, ".")
	for folder, code := range map[string]string{"public": frame, "account/files": sourceOf(t, "account"), "docs/files": sourceOf(t, "docs")} {
		all := ReadTexts(os.DirFS(folder)).words
		for _, found := range asked.FindAllStringSubmatch(code, -1) {
			if key := found[1]; all[Spanish][key] == "" && all[Spanish][key+".one"] == "" && !strings.HasSuffix(key, ".") {
				t.Errorf("%s: no text has the key %s", folder, key)
			}
		}
		used := quoted.FindAllStringSubmatch(code+frame, -1) // keys that are built, up to their last dot
		keys := maps.Clone(all[Spanish])
		maps.Copy(keys, all[English])
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			es, en := all[Spanish][key], all[English][key]
			if strings.HasPrefix(key, "currency.") && en != "" {
				continue
			}
			if es == "" || en == "" {
				t.Errorf("%s: the text %s is missing in a language", folder, key)
			}
			if !slices.Equal(verbs.FindAllString(es, -1), verbs.FindAllString(en, -1)) {
				t.Errorf("%s: %s takes other values in Spanish (%q) than in English (%q)", folder, key, es, en)
			}
			if !slices.ContainsFunc(used, func(found []string) bool { return strings.HasPrefix(key, found[1]) }) {
				t.Errorf("%s: nothing uses %s", folder, key)
			}
		}
	}
}

func sourceOf(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(folder, err)
	}
	var code strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") {
			code.Write(text)
		}
	}
	return code.String()
}
