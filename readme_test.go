package main

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// decisionsOf are the ids that the register must have, by letter and highest number.
func decisionsOf() []string {
	var ids []string
	for _, group := range []struct {
		letter string
		last   int
	}{{"S", 11}, {"P", 10}, {"T", 10}, {"Q", 16}, {"E", 5}, {"L", 10}, {"K", 9}, {"I", 4}, {"X", 18}} {
		for n := 1; n <= group.last; n++ {
			ids = append(ids, fmt.Sprintf("%s%d", group.letter, n))
		}
	}
	return ids
}

// TestReadme_Register wants a row for each decision, with a test that exists.
func TestReadme_Register(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| ([SPTQELKIX]\\d+) \\| (.+) \\| `(Test\\w+)` \\|$").FindAllStringSubmatch(readFile(t, "README.md"), -1)
	tests := testNames(t)
	var ids []string
	for _, row := range rows {
		ids = append(ids, row[1])
		if !tests[row[3]] {
			t.Errorf("%s names the test %s, which does not exist", row[1], row[3])
		}
	}
	if want := decisionsOf(); !slices.Equal(ids, want) {
		t.Errorf("the register has %q,\nwant %q", ids, want)
	}
}

// TestReadme_ExitCodes wants README and help to tell the same codes.
func TestReadme_ExitCodes(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| (.+) \|$`).FindAllStringSubmatch(readFile(t, "README.md"), -1)
	var told []string
	for _, row := range rows {
		told = append(told, fmt.Sprintf("  %-4s %s", row[1], row[2]))
	}
	if got := "Exit codes:\n" + strings.Join(told, "\n"); got != exitTable {
		t.Errorf("README:\n%s\nhelp:\n%s", got, exitTable)
	}
}

// testNames are the names of all tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	pattern := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, found := range pattern.FindAllStringSubmatch(readFile(t, path), -1) {
			names[found[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
