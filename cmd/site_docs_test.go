package cmd

import (
	"context"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSite_QuickStarts takes each program out of the guide and runs it against the node, as it is and with a mistake in it: the Go one, and
// with QUICKSTARTS=all, as make contract asks, those in other languages.
func TestSite_QuickStarts(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "observations.csv", header+observation(5, "57.50", "60.85"))
	node := start(t, realNow, serveArgs(t.TempDir(), "--import", file)...).listening()
	node.await("imported")
	programs := map[string]string{}
	for _, found := range regexp.MustCompile(`(?s)<code id="snippet-(\w+)">(.*?)</code>`).FindAllStringSubmatch(node.mustGet("/docs"), -1) {
		programs[found[1]] = html.UnescapeString(found[2])
	}
	runs := map[string]struct {
		file string
		args []string
	}{
		"curl":       {"best.sh", []string{"sh"}},
		"go":         {"rates.go", []string{"go", "run"}},
		"javascript": {"rates.mjs", []string{"node"}},
		"python":     {"rates.py", []string{"python3"}},
		"php":        {"rates.php", []string{"php"}},
	}
	if len(programs) != len(runs) {
		t.Errorf("the guide has %d programs, run are %d", len(programs), len(runs))
	}
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			text := programs[name]
			if os.Getenv("QUICKSTARTS") != "all" && name != "go" {
				if !strings.Contains(text, "currency=USD") {
					t.Errorf("the program asks something else:\n%s", text)
				}
				return
			}
			if _, err := exec.LookPath(run.args[0]); err != nil {
				t.Skipf("%s is not installed", run.args[0])
			}
			if got, err := carryOut(t, run.file, run.args, text); err != nil || !strings.Contains(got, "60.85") || !strings.Contains(got, "Popular") {
				t.Errorf("%v\n%s", err, got)
			}
			if os.Getenv("QUICKSTARTS") != "all" {
				return // it would be compiled again
			}
			mistaken := strings.Replace(text, "currency=USD", "currency=usd", 1)
			if name == "curl" {
				mistaken, _, _ = strings.Cut(mistaken, "\n\n") // a script goes on
			}
			if got, err := carryOut(t, run.file, run.args, mistaken); err == nil || !strings.Contains(got, "invalid_parameters") {
				t.Errorf("a mistake: %v\n%s", err, got)
			}
		})
	}
}

// carryOut runs a program in a directory of its own; the output is that of both streams.
func carryOut(t *testing.T, file string, args []string, text string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience) // it may be compiled, library and all
	defer cancel()
	command := exec.CommandContext(ctx, args[0], append(args[1:], file)...)
	command.Dir, command.Env = dir, append(os.Environ(), "TASARD_KEY=")
	output, err := command.CombinedOutput()
	return string(output), err
}

// TestSite_Reference: the page, the program and the contract that it reads are there, and the page's policy lets nothing else in.
func TestSite_Reference(t *testing.T) {
	t.Parallel()
	node := startNode(t, t.TempDir())
	page := node.mustGet("/en/docs/reference")
	paths := append(regexp.MustCompile(`/assets/[\w.-]+`).FindAllString(page, -1), "/openapi.json", "/docs", "/en/docs", "/docs/reference")
	if len(paths) < 9 {
		t.Errorf("the page loads %q:\n%s", paths, page)
	}
	for _, path := range paths {
		node.mustGet(path)
	}
	_, headers := node.ask("GET", "/docs/reference")
	if got := headers.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;") || strings.Contains(got, "unsafe") {
		t.Errorf("Content-Security-Policy: %s", got)
	}
}
