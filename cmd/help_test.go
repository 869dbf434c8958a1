package cmd

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/sources"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
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
				t.Errorf("flags of serve outside the groups of settings:\n%s", last.flags.FlagUsages())
			}
		}
	}
	for _, topic := range topics() {
		fmt.Fprintf(&text, "$ tasard help %s\n%s\n", topic.Name(), mustRun(t, "help", topic.Name()))
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
			id := found.Flags().Arg(0)
			if named := found.Flags().Lookup("source"); named != nil {
				id = named.Value.String()
			}
			d, unknown := sources.FindDefinition(source.DefaultSet(), id)
			noError(t, unknown)
			_, err = sources.FindPage(d, page.Value.String())
		}
		if err != nil {
			t.Errorf("%s: %v", strings.TrimSpace(line), err)
		}
	}
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
		contains(t, mustRun(t, "completion", shell), "tasard")
	}
	run(t, nil, nil, "completion", "tcsh").fails(t, exit.Usage, "unknown command")
	contains(t, "\n"+mustRun(t, "__complete", "do"), "\ndoctor")
	contains(t, "\n"+mustRun(t, "__complete", "serve", "--quota-d"), "\n--quota-day")
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

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	printVersion(&out, &debug.BuildInfo{
		Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.modified", Value: "true"},
		},
	})
	contains(t, out.String(), "tasard    v1.2.3\n", "commit    0123abcd, with changes\n", "contract  /v1, 1.0.0\n", "log       format 1\n")
	out.Reset()
	printVersion(&out, nil)
	if !strings.Contains(out.String(), "tasard    (unknown)\n") {
		t.Errorf("without build information: %q", out.String())
	}
	if got, want := mustRun(t, "--version"), mustRun(t, "version"); got != want || got == "" {
		t.Errorf("--version says %q, version %q", got, want)
	}
}

// TestExit_FullOutput wants a command whose output cannot be written to say so.
func TestExit_FullOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no full device: %v", err)
	}
	defer full.Close()
	data := importedData(t, observation(1, "59", "60"))
	for args, want := range map[string]int{
		"version": exit.IOError, "log verify --data DIR": exit.IOError, "export --data DIR": exit.CannotWrite, "--help": exit.IOError,
	} {
		got := execute(t.Context(), &process.Process{Args: commandIn(data, args), Stdin: strings.NewReader(""), Stdout: full, Clock: clockFrom(realNow)})
		if got.code != want {
			t.Errorf("%s: exit code %d, want %d", args, got.code, want)
		}
		oneLine(t, got.stderr, "no space left on device")
	}
}

func TestExit_Codes(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("open: %w", err) }
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, exit.OK},
		{errors.New("anything"), exit.FailStop},
		{wrapped(&wal.DamageError{}), exit.BadData},
		{wrapped(&wal.FormatError{}), exit.BadData},
		{wrapped(actors.ErrUnknownRecord), exit.BadData},
		{wrapped(wal.ErrLocked), exit.Busy},
		{wrapped(wal.ErrNoSpace), exit.CannotWrite},
		{errors.Join(wal.ErrPoisoned, syscall.ENOSPC), exit.FailStop},
		{wrapped(syscall.EROFS), exit.CannotWrite},
		{wrapped(fs.ErrPermission), exit.CannotWrite},
		{wrapped(fs.ErrNotExist), exit.NoInput},
		{&engine.Error{Code: engine.CodeReadOnly, Cause: wal.ErrNoSpace}, exit.CannotWrite},
		{&engine.Error{Code: engine.CodeNoMajority}, exit.Unavailable},
		{wrapped(context.Canceled), exit.Interrupted},
		{errors.Join(exit.Errorf(exit.Rejected, "lines"), wal.ErrLocked), exit.Rejected},
	} {
		if got := exit.Code(test.err); got != test.want {
			t.Errorf("%v: exit code %d, want %d", test.err, got, test.want)
		}
	}
}

// TestLogging_LastWord wants an error in the form of the logs around it.
func TestLogging_LastWord(t *testing.T) {
	args := []string{"serve", "--data", t.TempDir() + "/data", "--import", "none.csv", "--log-format"}
	text := run(t, nil, nil, append(args, "text")...)
	oneLine(t, text.stderr, ": none.csv: no such file")
	got := run(t, nil, nil, append(args, "json")...)
	oneLine(t, got.stderr)
	line := asJSON[struct {
		Level    string `json:"level"`
		Message  string `json:"msg"`
		ExitCode int    `json:"exitCode"`
	}](t, got.stderr)
	if line.Level != "ERROR" || !strings.Contains(line.Message, "none.csv") || line.ExitCode != exit.NoInput || got.code != exit.NoInput {
		t.Errorf("%+v, exit code %d", line, got.code)
	}
}

func TestMemoryLimit(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name                string
		heap, allowed, want int
	}{
		{"a small node", 100, 0, 272},
		{"data that fill more than half of it: twice what they take", 1024, 0, 2048},
		{"a control group leaves room for what is outside the heap", 0, 256, 208},
		{"a large control group keeps a tenth free", 1024, 1000, 900},
		{"a tiny control group keeps half", 0, 32, 16},
		{"a control group with room to spare", 0, 4096, 272},
	} {
		if got := memoryLimit(uint64(c.heap*mib), uint64(c.allowed*mib)); got != int64(c.want*mib) {
			t.Errorf("%s: %d MiB, want %d", c.name, got/mib, c.want)
		}
	}
}
