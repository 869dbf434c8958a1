package cmd

import (
	"context"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSite_QuickStarts takes each program out of the guide and runs it against the node, as it is and with a mistake
// in it: the Go one, and with QUICKSTARTS=all, as make contract asks, those in other languages.
func TestSite_QuickStarts(t *testing.T) {
	t.Parallel()
	node := startImported(t, serveArgs(t.TempDir()), observation(5, "57.50", "60.85"))
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
			if got, err := runExample(t, run.file, run.args, text); err != nil || !strings.Contains(got, "60.85") || !strings.Contains(got, "Popular") {
				t.Errorf("%v\n%s", err, got)
			}
			if os.Getenv("QUICKSTARTS") != "all" {
				return // it would be compiled again
			}
			mistaken := strings.Replace(text, "currency=USD", "currency=usd", 1)
			if name == "curl" {
				mistaken, _, _ = strings.Cut(mistaken, "\n\n") // a script goes on
			}
			if got, err := runExample(t, run.file, run.args, mistaken); err == nil || !strings.Contains(got, "invalid_parameters") {
				t.Errorf("a mistake: %v\n%s", err, got)
			}
		})
	}
}

// runExample runs a program in a directory of its own; the output is that of both streams.
func runExample(t *testing.T, file string, args []string, text string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	noError(t, os.WriteFile(filepath.Join(dir, file), []byte(text+"\n"), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience) // it may be compiled, library and all
	defer cancel()
	command := exec.CommandContext(ctx, args[0], append(args[1:], file)...)
	command.Dir, command.Env = dir, append(os.Environ(), "TASARD_KEY=")
	output, err := command.CombinedOutput()
	return string(output), err
}

// TestSite_Documents: a node answers the documents of the contract, pages and documents lead to them, each link once,
// and every address that a document names is answered.
func TestSite_Documents(t *testing.T) {
	t.Parallel()
	const public = "https://tasas.example"
	p := startImported(t, serveArgs(t.TempDir(), "--public-url", public), observation(1, "59", "60"))
	named := regexp.MustCompile(`https://tasas\.example(/[^\s"'<>)]*)`)
	for _, path := range []string{"/openapi.json", "/openapi.yaml", "/.well-known/api-catalog", "/llms.txt", "/", "/docs"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			status, headers := p.ask(method, path)
			links := strings.Join(headers.Values("Link"), "\n")
			for _, relation := range []string{`</openapi.json>; rel="service-desc"`, `</docs>; rel="service-doc"`} {
				if status != http.StatusOK || strings.Count(links, relation) != 1 {
					t.Errorf("%s %s: %d, and %s is not once in %q", method, path, status, relation, links)
				}
			}
		}
		body := html.UnescapeString(p.mustGet(path))
		if !strings.Contains(body, public) {
			t.Errorf("%s does not name the public address", path)
		}
		for _, found := range named.FindAllStringSubmatch(body, -1) {
			if found[1] == "/v1" { // the name of the API in the catalog, no operation
				continue
			}
			if status, _ := p.ask(http.MethodGet, found[1]); status != http.StatusOK {
				t.Errorf("%s names %s, which answers %d", path, found[1], status)
			}
		}
	}
	if status, headers := p.ask(http.MethodPost, "/openapi.json"); status != http.StatusMethodNotAllowed || headers.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("POST /openapi.json: %d, Allow %q", status, headers.Get("Allow"))
	}
}

// TestPages_L6 wants pages to cost no quota of the API.
func TestPages_L6(t *testing.T) {
	t.Parallel()
	p := startImported(t, serveArgs(t.TempDir(), "--limits", "on", "--public-url", "https://tasas.example.do"), observation(1, "57", "60"))
	if _, headers := p.ask(http.MethodGet, "/terms"); headers.Get("X-RateLimit-Remaining") != "" {
		t.Error("a page tells of the API's quota")
	}
	if status, headers := p.ask(http.MethodGet, "/v1/rates"); status != http.StatusOK || headers.Get("X-RateLimit-Remaining") != "59" {
		t.Errorf("the API after that: %d, remaining %q", status, headers.Get("X-RateLimit-Remaining"))
	}
}

// wantPages wants the pages of a demo in both languages to say that it is one, and a page to name its address.
func wantPages(t *testing.T, p *program) {
	t.Helper()
	for _, path := range []string{"/", "/en", "/institutions", "/en/institutions", "/institutions/popular", "/en/institutions/bcrd?days=365", "/terms", "/en/terms"} {
		if body := p.mustGet(path); !strings.Contains(body, "simulad") && !strings.Contains(body, "simulated") {
			t.Errorf("%s: the page of a demo does not say so", path)
		}
	}
	if !strings.Contains(p.mustGet("/institutions/popular"), `<link rel="canonical" href="`+p.URL+`/institutions/popular">`) {
		t.Error("a page does not say where the demo listens")
	}
}
