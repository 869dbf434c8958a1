package pages

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// luminance is the relative luminance of WCAG 2.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	var parts [3]uint8
	if _, err := fmt.Sscanf(strings.Replace(colour+";", "#fff;", "#ffffff;", 1), "#%02x%02x%02x;", &parts[0], &parts[1], &parts[2]); err != nil {
		t.Fatalf("%q is no colour: %v", colour, err)
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		linear := float64(parts[i]) / 255
		if linear <= 0.03928 {
			linear /= 12.92
		} else {
			linear = math.Pow((linear+0.055)/1.055, 2.4)
		}
		sum += weight * linear
	}
	return sum
}

// TestStyle_Contrast checks all pairs of colors, light and dark, against WCAG AA: 4.5 for text, 3 for lines.
func TestStyle_Contrast(t *testing.T) {
	css, err := os.ReadFile("assets/style.css")
	if err != nil {
		t.Fatal(err)
	}
	themes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(string(css), -1)
	if len(themes) != 2 {
		t.Fatalf("%d themes, want light and dark", len(themes))
	}
	for i, theme := range themes {
		colours := map[string]string{}
		for _, found := range regexp.MustCompile(`--([\w-]+): (#[0-9a-f]{3,6})`).FindAllStringSubmatch(theme[1], -1) {
			colours[found[1]] = found[2]
		}
		check := func(least float64, ground string, inks ...string) {
			for _, ink := range inks {
				a, b := luminance(t, colours[ink])+0.05, luminance(t, colours[ground])+0.05
				if ratio := max(a, b) / min(a, b); ratio < least {
					t.Errorf("theme %d: %s on %s has the contrast %.2f, want %.1f", i, ink, ground, ratio, least)
				}
			}
		}
		check(4.5, "paper", "ink", "soft", "link", "bad")
		check(4.5, "card", "ink", "soft", "link", "bad")
		check(4.5, "tint", "ink", "link")
		check(4.5, "brand", "on-brand")
		check(4.5, "good-tint", "good", "ink", "link")
		check(4.5, "bad-tint", "bad")
		check(4.5, "warn-tint", "warn")
		check(3, "card", "line-best", "line-median", "line-reference")
		check(3, "paper", "soft") // edges of fields
	}
}

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
