package cmd

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
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
		if err := os.MkdirAll(goldenDir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
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
		args := append(strings.Fields(command.CommandPath())[1:], "--help")
		fmt.Fprintf(&text, "$ %s --help\n%s\n", command.CommandPath(), mustRun(t, args...))
		if command.Example == "" || command.Short == "" || command.Long == "" {
			t.Errorf("%s lacks an example or a description", command.CommandPath())
		}
	}
	golden(t, "help.txt", text.String())
}

func everyCommand(from *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{from}
	for _, command := range from.Commands() {
		all = append(all, everyCommand(command)...)
	}
	return all
}

// TestGolden_BadInput runs each command of the golden file again: a case has the lines of its files and of stdin, the command with its
// variables, what it says, and its exit code. DIR stands for a directory of the case's own, and data in it was never used.
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
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	words := commandIn(dir, command)
	program := slices.Index(words, "tasard")
	got := run(t, append([]string{"TASARD_LOG_FORMAT=text"}, words[:program]...), strings.NewReader(stdin), words[program+1:]...)
	if got.code == exit.Done || got.stderr == "" {
		t.Errorf("%s: exit code %d, %q; want a failure and its reason", command, got.code, got.stderr)
	}
	return fmt.Sprintf("%sexit code %d\n", strings.ReplaceAll(got.stderr, dir, "DIR"), got.code)
}
