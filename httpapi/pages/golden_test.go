package pages_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// updateFlag is set by make golden.
var updateFlag = flag.Bool("update", false, "rewrite the golden files")

// TestGolden_Pages compares every page in both languages with its golden file and checks its HTML. Hashes of assets
// are left out.
func TestGolden_Pages(t *testing.T) {
	hash := regexp.MustCompile(`\.[0-9a-f]{16}\.`)
	w := newFakeService(t)
	h := serve(w.config())
	for _, path := range append(inBothLanguages(publicPaths()), "/institutions/gone", "/en/institutions/%3Cscript%3E", "/robots.txt",
		"/embed/usd", "/en/embed/htg", "/manifest.webmanifest") {
		name := strings.Trim(regexp.MustCompile(`[^a-zA-Z0-9,.]+`).ReplaceAllString(path, "-"), "-")
		if name == "" {
			name = "home"
		}
		t.Run(name, func(t *testing.T) {
			answer := get(t, h, path)
			got := fmt.Sprintf("%d\n%s\n\n%s", answer.Code, headerLines(answer.Header()), lines(hash.ReplaceAllString(answer.Body.String(), ".hash.")))
			file := filepath.Join("testdata", "golden", name+".txt")
			if *updateFlag {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || got != string(want) {
				t.Errorf("%s differs (%v); make golden rewrites it. It is\n%s", file, err, got)
			}
			mustBeValid(t, path, answer)
		})
	}
}

// lines breaks a page into lines between its tags.
func lines(text string) string {
	if !strings.HasPrefix(text, "<!doctype html>") {
		return text
	}
	return strings.ReplaceAll(text, "><", ">\n<")
}

func headerLines(header map[string][]string) string {
	var all []string
	for name, values := range header {
		if name == "Etag" {
			values = []string{`W/"tag"`}
		}
		all = append(all, name+": "+strings.Join(values, ", "))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
