package cmd

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/sources"
	"github.com/tasard/tasard/collectors/source"
)

// TestReadme_Commands wants every command that README, docs and the help of the commands show to be one that the program takes.
func TestReadme_Commands(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]string
	for _, page := range append(pages, "README.md") {
		lines = append(lines, regexp.MustCompile(`(?m)^ {4}(?: {4})?(?:\$ )?((?:\./)?tasard [a-z-]+(?: .+?(?:\\\n.+?)*)?)$`).FindAllStringSubmatch(readFile(t, page), -1)...)
	}
	if len(lines) < 40 {
		t.Fatalf("only %d commands were found in README and docs", len(lines))
	}
	for _, line := range lines {
		checkExample(t, line[1])
	}
	for _, command := range everyCommand((&commands{&process.Process{}}).newRoot()) {
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
		root := (&commands{&process.Process{}}).newRoot()
		found, rest, err := root.Find(words[at+1:])
		if err == nil {
			err = found.ParseFlags(rest)
		}
		if err == nil {
			err = found.ValidateArgs(found.Flags().Args())
		}
		if page := found.Flags().Lookup("page"); err == nil && page != nil && page.Changed {
			_, err = sources.Page(mustFind(t, cmp.Or(flagText(found, "source"), found.Flags().Arg(0))), page.Value.String())
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
	d, err := sources.Known(source.DefaultSet(), id)
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
