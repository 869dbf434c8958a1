package httpapi

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// goldenCase is one file of testdata/golden: an operation and a status.
type goldenCase struct {
	name, method, target string
	lines                []string
	fault                error // what the service answers
	panics               bool
}

// goldenTargets is a good request for each operation.
func goldenTargets() map[string]string {
	return map[string]string{
		"currencies":   "/v1/currencies",
		"institutions": "/v1/institutions?currency=USD&limit=2",
		"institution":  "/v1/institutions/bhd",
		"rates":        "/v1/rates?limit=6",
		"best":         "/v1/rates/best?currency=USD&operation=buy&limit=2",
		"history":      "/v1/rates/history?currency=USD&institution=bhd&limit=3",
		"convert":      "/v1/convert?currency=USD&operation=sell&amount=250.50&limit=2",
	}
}

// goldenCases is each operation with each status that the handler can give it.
func goldenCases() []goldenCase {
	const get = http.MethodGet
	var cases []goldenCase
	for operation, target := range goldenTargets() {
		with := "&"
		if !strings.Contains(target, "?") {
			with = "?"
		}
		cases = append(cases,
			goldenCase{name: operation + "-200", method: get, target: target},
			goldenCase{name: operation + "-200-head", method: http.MethodHead, target: target},
			goldenCase{name: operation + "-204", method: http.MethodOptions, target: target},
			goldenCase{name: operation + "-304", method: get, target: target, lines: []string{"If-None-Match: *"}},
			goldenCase{name: operation + "-400", method: get, target: target + with + "limit=0&colour=red&token=x"},
			goldenCase{name: operation + "-405", method: http.MethodDelete, target: target},
			goldenCase{name: operation + "-500", method: get, target: target, panics: true},
		)
		if operation != "currencies" && operation != "institutions" && operation != "institution" {
			cases = append(cases, goldenFaults(operation, target)...)
		}
	}
	return append(cases,
		goldenCase{name: "institution-404", method: get, target: "/v1/institutions/progreso"},
		goldenCase{name: "institution-400-id", method: get, target: "/v1/institutions/%zz"},
		goldenCase{name: "best-400-missing", method: get, target: "/v1/rates/best"},
		goldenCase{name: "best-200-empty", method: get, target: "/v1/rates/best?currency=USD&operation=sell&kind=reference"},
		goldenCase{name: "history-400-range", method: get, target: "/v1/rates/history?from=2024-01-01&to=2025-11-21"},
		goldenCase{name: "unknown-404", method: get, target: "/v1/rate"},
		goldenCase{name: "unknown-404-post", method: http.MethodPost, target: "/"},
	)
}

func goldenFaults(operation, target string) []goldenCase {
	return []goldenCase{
		{name: operation + "-500-error", method: http.MethodGet, target: target, fault: errors.New("a cause that nobody may see")},
		{name: operation + "-503", method: http.MethodGet, target: target, fault: &engine.Error{
			Code: engine.CodeDataUnavailable, Message: "No rates are loaded yet.", RetryAfter: 1500 * time.Millisecond,
		}},
		{name: operation + "-503-overloaded", method: http.MethodGet, target: target, fault: &engine.Error{
			Code: engine.CodeOverloaded, Message: "Too many requests are waiting.",
		}},
	}
}

// run sends the case to a server of its own.
func (c goldenCase) run(t testing.TB) answer {
	f := newFixture(t, nil)
	f.service.fault = c.fault
	if c.panics {
		f.service.panics = "a planted panic"
	}
	return f.do(t, c.method, c.target, c.lines...)
}

// text is the file: request, status line, headers by name, body.
func (c goldenCase) text(a answer) []byte {
	var file bytes.Buffer
	fmt.Fprintf(&file, "# %s %s\n", c.method, c.target)
	for _, line := range c.lines {
		fmt.Fprintf(&file, "# %s\n", line)
	}
	fmt.Fprintf(&file, "HTTP/1.1 %d %s\n", a.status, http.StatusText(a.status))
	var lines []string
	for name, values := range a.header {
		for _, value := range values {
			if name != "Date" {
				lines = append(lines, name+": "+value+"\n")
			}
		}
	}
	slices.Sort(lines)
	fmt.Fprintf(&file, "%s\n%s\n", strings.Join(lines, ""), a.body)
	return file.Bytes()
}

func TestGolden_Answers(t *testing.T) {
	update := flag.Lookup("update").Value.String() == "true"
	cases := goldenCases()
	var names []string
	for _, c := range cases {
		path := filepath.Join("testdata", "golden", c.name+".http")
		names = append(names, path)
		t.Run(c.name, func(t *testing.T) {
			got := c.text(c.run(t))
			if update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v; run with -update to write it", err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	found, err := filepath.Glob(filepath.Join("testdata", "golden", "*.http"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		if !slices.Contains(names, path) {
			t.Errorf("%s belongs to no case", path)
		}
	}
}

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite the golden files")
	flag.Parse()
	os.Exit(m.Run())
}
