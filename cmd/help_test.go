package cmd

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
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
		if command.Short == "" || command.Long == "" || len(regexp.MustCompile(`(?m)^  .*tasard `).FindAllString(command.Example, -1)) < 2 {
			t.Errorf("%s lacks a description or a second example", command.CommandPath())
		}
		if groups := flagGroups(command.LocalFlags()); command.Name() == "serve" {
			if last := groups[len(groups)-1]; last.title == "Other flags" {
				t.Errorf("flags of serve outside the groups of setting.Groups: %q", flagNames(last.flags))
			}
		}
	}
	for _, topic := range append(topics(), topic{name: "topics"}) {
		fmt.Fprintf(&text, "$ tasard help %s\n%s\n", topic.name, mustRun(t, "help", topic.name))
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
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), mode); err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
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

// completed is what the program proposes behind some words, without descriptions.
func completed(t *testing.T, words ...string) []string {
	t.Helper()
	var proposed []string
	for _, line := range strings.Split(strings.TrimSpace(mustRun(t, append([]string{"__complete"}, words...)...)), "\n") {
		word, _, _ := strings.Cut(line, "\t")
		proposed = append(proposed, word)
	}
	return proposed
}

// TestCompletion_Proposals wants commands, flags, words, currencies, institutions and sources to be proposed where
// they belong.
func TestCompletion_Proposals(t *testing.T) {
	for words, want := range map[string][]string{
		"do":                                   {"doctor", ":4"},
		"serve --smtp-tls ":                    {"off", "starttls", "tls", ":4"},
		"serve --limits ":                      {"on", "off", ":4"},
		"serve --data ":                        {":16"}, // directories
		"serve --tls-cert ":                    {":0"},  // files
		"serve --quota-day ":                   {":4"},  // nothing
		"admin rates set popular US":           {"USD", ":4"},
		"admin rates set popu":                 {"popular", ":4"},
		"admin rates set popular USD ":         {":4"},
		"sources check bhd-site infod":         {"infodolar", ":4"},
		"import --data x ":                     {":0"},
		"admin quarantine list --currency EU":  {"EUR", ":4"},
		"admin quarantine list --source qik-s": {"qik-site", ":4"},
		"completion ba":                        {"bash", ":4"},
	} {
		got := completed(t, strings.Split(words, " ")...)
		if strings.HasSuffix(words, " ") || len(want) == 1 {
			if !slices.Equal(got, want) {
				t.Errorf("%q: %q, want %q", words, got, want)
			}
			continue
		}
		for _, word := range want {
			if !slices.Contains(got, word) {
				t.Errorf("%q: %q lacks %q", words, got, word)
			}
		}
	}
}

// TestCompletion_Bash has a real bash read the script and complete with it, by the program itself.
func TestCompletion_Bash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	directory := t.TempDir()
	program := "#!" + bash + "\n" + asProgram + "=now exec '" + os.Args[0] + `' "$@"` + "\n"
	if err := os.WriteFile(filepath.Join(directory, "tasard"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, "script"), []byte(mustRun(t, "completion", "bash")), 0o600); err != nil {
		t.Fatal(err)
	}
	// As the package bash-completion does before it calls the function.
	const session = `set -u
PATH="%DIR%:$PATH"
_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}; }
__ltrim_colon_completions() { :; }
compopt() { :; }
source "%DIR%/script"
complete -p tasard
COMP_TYPE=9 COMP_KEY=9 COMP_WORDS=(tasard serve --log-level w) COMP_CWORD=3 COMP_LINE="tasard serve --log-level w" COMP_POINT=26
__start_tasard
echo "proposed: ${COMPREPLY[*]}"`
	output, err := exec.Command(bash, "--norc", "-c", strings.ReplaceAll(session, "%DIR%", directory)).CombinedOutput()
	if err != nil || !strings.Contains(string(output), "-F __start_tasard tasard") || !strings.Contains(string(output), "proposed: warn") {
		t.Errorf("%v\n%s", err, output)
	}
}

// TestCompletion_OtherShells has each shell that is here read its script.
func TestCompletion_OtherShells(t *testing.T) {
	for shell, check := range map[string][]string{"bash": {"-n"}, "zsh": {"-n"}, "fish": {"--no-execute"}} {
		script := mustRun(t, "completion", shell)
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("there is no %s", shell)
			continue
		}
		if output, err := exec.Command(path, append(check, writeFile(t, "script", script))...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, output)
		}
	}
	if !strings.Contains(mustRun(t, "completion", "powershell"), "Register-ArgumentCompleter") {
		t.Error("no script for powershell")
	}
	run(t, nil, nil, "completion", "tcsh").fails(t, exit.Usage, "want one of bash, zsh, fish, powershell")
}

// TestMan wants a page for each command, which a strict reader of manuals takes, and the same text as the help has.
func TestMan(t *testing.T) {
	directory := t.TempDir() + "/man1"
	mustRun(t, "man", "--dir", directory)
	files, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(everyCommand((&commands{&process.Process{}}).newRoot())); len(files) != want {
		t.Errorf("%d pages for %d commands", len(files), want)
	}
	page, err := os.ReadFile(filepath.Join(directory, "tasard.1"))
	if err != nil || mustRun(t, "man") != string(page) {
		t.Errorf("standard output has another page (%v)", err)
	}
	if !strings.Contains(string(page), "78   bad variable, configuration") || !strings.Contains(string(page), `\fBtasard\-serve\fP(1)`) {
		t.Errorf("the table of exit codes or the other pages are missing:\n%s", page)
	}
	serve, err := os.ReadFile(filepath.Join(directory, "tasard-serve.1"))
	if err != nil || !strings.Contains(string(serve), "TASARD_DATA=./data tasard serve\n.EE\n") ||
		!strings.Contains(string(serve), ".SH CLUSTER\n.TP\n.B \\-\\-cluster NAME\n") || !strings.Contains(string(serve), "10.0.0.0/8 \\e\n") {
		t.Errorf("the examples, the groups of flags or a backslash are missing (%v)", err)
	}
	reader, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("there is no mandoc to read the pages")
	}
	for _, file := range files {
		if output, err := exec.Command(reader, "-T", "lint", "-W", "error", filepath.Join(directory, file.Name())).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file.Name(), err, output)
		}
	}
}
