package cmd

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/sources"
	"github.com/tasard/tasard/collectors/source"
)

// goldenDir keeps the golden files of the commands.
const goldenDir = "cmd/testdata"

// updateFlag is set by make golden: then golden files are rewritten.
var updateFlag = flag.Bool("update", false, "rewrite the golden files")

// golden holds text against a golden file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(goldenDir, name)
	if *updateFlag {
		noError(t, os.MkdirAll(goldenDir, 0o755))
		noError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; make golden writes it", err)
	}
	if got == string(want) {
		return
	}
	at := firstDifference(got, string(want))
	t.Errorf("%s:%d: got\n%s\nwant\n%s", path, strings.Count(got[:at], "\n")+1, around(got, at), around(string(want), at))
}

func TestGolden_Help(t *testing.T) {
	var text bytes.Buffer
	for _, command := range everyCommand((&commands{&process.Process{}}).newRoot()) {
		if strings.Contains(command.CommandPath(), " completion") || command.IsAdditionalHelpTopicCommand() {
			continue // cobra's own; below
		}
		args := append(strings.Fields(command.CommandPath())[1:], "--help")
		fmt.Fprintf(&text, "$ %s --help\n%s\n", command.CommandPath(), mustRun(t, args...))
		if command.Short == "" || command.Long == "" || len(regexp.MustCompile(`(?m)^  .*tasard `).FindAllString(command.Example, -1)) < 2 {
			t.Errorf("%s lacks a description or a second example", command.CommandPath())
		}
		if groups := flagGroups(command.LocalFlags()); command.Name() == "serve" {
			if last := groups[len(groups)-1]; last.title == "Other flags" {
				t.Errorf("flags of serve outside the groups of settings: %q", flagNames(last.flags))
			}
		}
	}
	for _, topic := range topics() {
		fmt.Fprintf(&text, "$ tasard help %s\n%s\n", topic.Name(), mustRun(t, "help", topic.Name()))
	}
	golden(t, "help.txt", text.String())
}

func flagNames(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return names
}

func everyCommand(from *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{from}
	for _, command := range from.Commands() {
		all = append(all, everyCommand(command)...)
	}
	return all
}

// TestGolden_BadInput runs each command of the golden file again: a case has the lines of its files and of stdin, the
// command with its variables, what it says, and its exit code. DIR stands for a directory of the case's own, and data
// in it was never used; others may read its files that are called open; TAKEN is an address at which another program
// listens. Nothing is made but by an import that began to read lines, and by a node that comes as far as its socket.
func TestGolden_BadInput(t *testing.T) {
	var text strings.Builder
	for one := range strings.SplitSeq(strings.TrimSpace(readFile(t, filepath.Join(goldenDir, "bad-input.txt"))), "\n\n") {
		given, rest, found := strings.Cut("\n"+one, "\n$ ")
		command, _, _ := strings.Cut(rest, "\n")
		if !found {
			t.Fatalf("no command in %q", one)
		}
		fmt.Fprintf(&text, "%s$ %s\n%s\n", strings.TrimPrefix(given+"\n", "\n"), command, badOutcome(t, given+"\n", command))
	}
	golden(t, "bad-input.txt", text.String())
}

// badOutcome is what a command says and its exit code.
func badOutcome(t *testing.T, given, command string) string {
	t.Helper()
	dir, files := t.TempDir(), map[string]string{}
	for line := range strings.Lines(given) {
		if name, content, found := strings.Cut(line, ":"); found {
			files[name] += strings.TrimPrefix(content, " ")
		}
	}
	stdin := files["stdin"]
	delete(files, "stdin")
	for name, content := range files {
		if strings.TrimSpace(content) == "" {
			content = ""
		}
		mode := fs.FileMode(0o600)
		if strings.HasPrefix(name, "open") {
			mode = 0o644
		}
		noError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), mode))
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
	}
	taken, before := takenAddress(t), fingerprint(t, dir)
	words := commandIn(dir, strings.ReplaceAll(command, "TAKEN", taken))
	program := slices.Index(words, "tasard")
	got := run(t, append([]string{"TASARD_LOG_FORMAT=text"}, words[:program]...), strings.NewReader(stdin), words[program+1:]...)
	if got.code == exit.OK || got.stderr == "" {
		t.Errorf("%s: exit code %d, %q; want a failure and its reason", command, got.code, got.stderr)
	}
	begun := strings.Contains(command, "tasard import") && !strings.Contains(command, "--source") || strings.Contains(command, "--admin-socket")
	if after := fingerprint(t, dir); !begun && (after != before || got.stdout != "") {
		t.Errorf("%s has made or changed something:\n%s", command, after)
	}
	return fmt.Sprintf("%sexit code %d\n", strings.NewReplacer(dir, "DIR", taken, "TAKEN").Replace(got.stderr), got.code)
}

// TestReadme_Commands wants every command that README, docs and the help of the commands show to be one that the
// program takes.
func TestReadme_Commands(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	noError(t, err)
	var lines [][]string
	for _, page := range append(pages, "README.md") {
		lines = append(lines, regexp.MustCompile(`(?m)^ {4}(?: {4})?(?:\$ )?((?:\./)?tasard [a-z-]+(?: .+?(?:\\\n.+?)*)?)$`).FindAllStringSubmatch(readFile(t, page), -1)...)
	}
	if len(lines) < 30 {
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
		if end := slices.IndexFunc(words, func(word string) bool { return word == ">" || word == "#" }); end >= 0 {
			words = words[:end] // a file for the output, or a comment
		}
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
			_, err = sources.FindPage(mustFind(t, cmp.Or(flagText(found, "source"), found.Flags().Arg(0))), page.Value.String())
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
	d, err := sources.FindDefinition(source.DefaultSet(), id)
	noError(t, err)
	return d
}

// shellWords splits a line as a shell does, but for what no example needs.
func shellWords(line string) []string {
	var words []string
	for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1) {
		if word == ">" || word == "#" { // what follows is the shell's
			break
		}
		words = append(words, strings.Trim(word, "'"))
	}
	return words
}

// TestCompletion wants a script for each shell that completes commands and flags, and another shell to be refused.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if script := mustRun(t, "completion", shell); !strings.Contains(script, "tasard") {
			t.Errorf("%s: %s", shell, script)
		}
	}
	run(t, nil, nil, "completion", "tcsh").fails(t, exit.Usage, "unknown command")
	if got := mustRun(t, "__complete", "do"); !strings.HasPrefix(got, "doctor") {
		t.Errorf("do: %s", got)
	}
	if got := mustRun(t, "__complete", "serve", "--quota-d"); !strings.HasPrefix(got, "--quota-day") {
		t.Errorf("--quota-d: %s", got)
	}
}

// TestMan wants a page for each command.
func TestMan(t *testing.T) {
	directory := t.TempDir() + "/man1"
	mustRun(t, "man", "--dir", directory)
	for _, name := range []string{"tasard.1", "tasard-serve.1", "tasard-admin-rates-set.1"} {
		if page, err := os.ReadFile(filepath.Join(directory, name)); err != nil || !strings.Contains(string(page), ".SH SYNOPSIS") {
			t.Errorf("%s: %v\n%s", name, err, page)
		}
	}
	page, err := os.ReadFile(filepath.Join(directory, "tasard.1"))
	if err != nil || mustRun(t, "man") != string(page) {
		t.Errorf("standard output has another page (%v)", err)
	}
}
