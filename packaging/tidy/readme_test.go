package tidy_test

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// decisionsOf returns the ids that the register must have.
func decisionsOf() []string {
	var ids []string
	for _, group := range []struct {
		letter string
		last   int
	}{{"S", 11}, {"P", 10}, {"T", 10}, {"Q", 16}, {"E", 5}, {"L", 10}, {"K", 9}, {"I", 4}, {"X", 26}} {
		for n := 1; n <= group.last; n++ {
			ids = append(ids, fmt.Sprintf("%s%d", group.letter, n))
		}
	}
	return ids
}

// TestReadme_Register wants a row for each decision, with a test that exists: the one named there, or one with its id.
func TestReadme_Register(t *testing.T) {
	rows := regexp.MustCompile("(?m)^- \\*\\*([SPTQELKIX]\\d+)\\*\\* .+?(?: `(Test\\w+)`)?$").FindAllStringSubmatch(readText(t, "docs/decisions.md"), -1)
	tests := map[string]bool{}
	for _, s := range readSources(t) {
		for _, declaration := range s.file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && s.isTest() {
				tests[function.Name.Name] = true
			}
		}
	}
	var ids []string
	for _, row := range rows {
		id, named := row[1], row[2]
		ids = append(ids, id)
		exists := tests[named]
		for name := range tests {
			exists = exists || named == "" && strings.HasPrefix(name, "Test"+id+"_")
		}
		if !exists {
			t.Errorf("%s has no test (named in its row: %q)", id, named)
		}
	}
	if want := decisionsOf(); !slices.Equal(ids, want) {
		t.Errorf("the register has %q,\nwant %q", ids, want)
	}
}

// TestReadme_ExitCodes wants docs and help to list the same codes.
func TestReadme_ExitCodes(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| (.+) \|$`).FindAllStringSubmatch(readText(t, "docs/recovery.md"), -1)
	var lines []string
	for _, row := range rows {
		lines = append(lines, fmt.Sprintf("  %-4s %s", row[1], row[2]))
	}
	if got := "\nExit codes:\n" + strings.Join(lines, "\n") + "\n\n"; !strings.Contains(readText(t, "cmd/testdata/help.txt"), got) {
		t.Errorf("the help does not have the table of docs/recovery.md%s", got)
	}
}

// TestDocs_LinksAndLength wants every link of README and docs to lead to an existing file and heading, and short pages.
func TestDocs_LinksAndLength(t *testing.T) {
	links := 0
	for _, name := range files() {
		if name != "README.md" && path.Dir(name) != "docs" || path.Ext(name) != ".md" {
			continue
		}
		text := readText(t, name)
		if lines, most := strings.Count(text, "\n"), map[bool]int{true: 200, false: 300}[name == "README.md"]; lines > most {
			t.Errorf("%s has %d lines, at most %d", name, lines, most)
		}
		for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(text, -1) {
			target, heading, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			links++
			target = path.Join(path.Dir(name), target)
			if strings.HasPrefix(link[1], "#") {
				target = name
			}
			if !slices.Contains(files(), target) {
				t.Errorf("%s links to %s, which does not exist", name, link[1])
			} else if heading != "" && !slices.Contains(headings(readText(t, target)), heading) {
				t.Errorf("%s links to %s: %s has no such heading", name, link[1], target)
			}
		}
	}
	if links < 30 {
		t.Errorf("only %d links were found", links)
	}
}

// headings returns the anchors of a page's headings.
func headings(text string) (anchors []string) {
	for _, line := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		word := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(line[1]), "")
		anchors = append(anchors, strings.ReplaceAll(word, " ", "-"))
	}
	return anchors
}
