package pages_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// updateFlag is set by make golden: then golden files are rewritten.
var updateFlag = flag.Bool("update", false, "rewrite the golden files")

// TestGolden_Pages holds every page in both languages against what was looked at. Hashes in the names of assets are left out.
func TestGolden_Pages(t *testing.T) {
	hash := regexp.MustCompile(`\.[0-9a-f]{16}\.`)
	w := newWorld(t)
	h := serve(w.config())
	paths := append(inBoth(publicPaths()), "/institutions/gone", "/robots.txt", "/sitemap.xml")
	for _, path := range paths {
		name := strings.Trim(regexp.MustCompile(`[^a-zA-Z0-9,.]+`).ReplaceAllString(path, "-"), "-")
		if name == "" {
			name = "home"
		}
		t.Run(name, func(t *testing.T) {
			answer := get(t, h, path)
			got := fmt.Sprintf("%d\n%s\n\n%s", answer.Code, headerLines(answer.Header()), hash.ReplaceAllString(answer.Body.String(), ".hash."))
			mustMatchFile(t, filepath.Join("testdata", "golden", name+".txt"), got)
		})
	}
}

// headerLines are the headers that a page is known by, in order; the tag changes with the assets' hashes.
func headerLines(header map[string][]string) string {
	var lines []string
	for name, values := range header {
		if name == "Etag" {
			values = []string{`W/"tag"`}
		}
		lines = append(lines, name+": "+strings.Join(values, ", "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func mustMatchFile(t *testing.T, name, got string) {
	t.Helper()
	if *updateFlag {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o750), os.WriteFile(name, []byte(got), 0o600)); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v; make golden writes it", err)
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		var g, w string
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if g != w {
			t.Fatalf("%s:%d:\nwant %s\ngot  %s", name, i+1, w, g)
		}
	}
}
