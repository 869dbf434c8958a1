package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
)

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

// TestCompletion_Proposals wants commands, flags, words, currencies, institutions and sources to be proposed where they belong.
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
	// What the package bash-completion would do before it calls the function.
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
	if !strings.Contains(string(page), "78   bad variable, configuration") || !strings.Contains(string(page), `\fBtasard-serve(1)\fP`) {
		t.Errorf("the table of exit codes or the other pages are missing:\n%s", page)
	}
	serve, err := os.ReadFile(filepath.Join(directory, "tasard-serve.1"))
	if err != nil || !strings.Contains(string(serve), `TASARD_DATA=./data tasard serve`) {
		t.Errorf("the examples are missing (%v)", err)
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
