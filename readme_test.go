package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/collectors/source"
)

// decisionsOf are the ids that the register must have, by letter and highest number.
func decisionsOf() []string {
	var ids []string
	for _, group := range []struct {
		letter string
		last   int
	}{{"S", 11}, {"P", 10}, {"T", 10}, {"Q", 16}, {"E", 5}, {"L", 10}, {"K", 9}, {"I", 4}, {"X", 21}} {
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

// TestReadme_Commands wants every command that README and the help of the commands show to be one that the program takes.
func TestReadme_Commands(t *testing.T) {
	lines := regexp.MustCompile(`(?m)^    (?:\$ )?((?:\./)?tasard [a-z-]+(?: .+?(?:\\\n.+?)*)?)$`).FindAllStringSubmatch(readFile(t, "README.md"), -1)
	if len(lines) < 15 {
		t.Fatalf("only %d commands were found in README", len(lines))
	}
	for _, line := range lines {
		checkExample(t, line[1])
	}
	for _, command := range everyCommand((&process{}).newRoot()) {
		for line := range strings.Lines(strings.ReplaceAll(command.Example, "\\\n", " ")) {
			checkExample(t, line)
		}
	}
}

// checkExample parses what a line calls the program with, and goes no further.
func checkExample(t *testing.T, line string) {
	t.Helper()
	for part := range strings.SplitSeq(strings.ReplaceAll(line, "\\\n", " "), " | ") {
		words := shellWords(part)
		at := slices.IndexFunc(words, func(word string) bool { return strings.TrimPrefix(word, "./") == "tasard" })
		if at < 0 {
			continue
		}
		root := (&process{}).newRoot()
		found, rest, err := root.Find(words[at+1:])
		if err == nil {
			err = found.ParseFlags(rest)
		}
		if err == nil {
			err = found.ValidateArgs(found.Flags().Args())
		}
		if page := found.Flags().Lookup("page"); err == nil && page != nil && page.Changed {
			_, err = pageOf(mustFind(t, cmp.Or(flagText(found, "source"), found.Flags().Arg(0))), page.Value.String())
		}
		if err != nil {
			t.Errorf("%s: %v", strings.TrimSpace(line), err)
		}
	}
}

func flagText(command *cobra.Command, name string) string {
	if flag := command.Flags().Lookup(name); flag != nil {
		return flag.Value.String()
	}
	return ""
}

func mustFind(t *testing.T, id string) *source.Definition {
	t.Helper()
	d, err := knownSource(source.DefaultSet(), id)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// shellWords splits a line as a shell does, but for what no example needs.
func shellWords(line string) []string {
	var words []string
	for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1) {
		words = append(words, strings.Trim(word, "'"))
	}
	return words
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
