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

// gatedCase is one golden file of a server with a gate and accounts.
type gatedCase struct {
	name string
	exchange
	// arrange prepares the fakes; nil leaves them.
	arrange func(g *gated)
}

func (c gatedCase) run(t testing.TB) (*gated, answer) {
	t.Helper()
	g := newGated(t, nil)
	if c.arrange != nil {
		c.arrange(g)
	}
	return g, g.send(t, c.exchange)
}

// text is the file: request, answer, headers by name.
func (c gatedCase) text(a answer) []byte {
	var file bytes.Buffer
	fmt.Fprintf(&file, "# %s %s\n", c.method, c.target)
	for _, line := range c.lines {
		fmt.Fprintf(&file, "# %s\n", line)
	}
	if c.body != "" {
		fmt.Fprintf(&file, "#\n# %.200s\n", c.body)
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

// limitCases is each data operation with each status that a gate makes possible, before, while and after the end of anonymous
// access is announced.
func limitCases() []gatedCase {
	var cases []gatedCase
	add := func(name, target string, lines []string, arrange func(*gated)) {
		cases = append(cases, gatedCase{name, exchange{method: "GET", target: target, lines: lines}, arrange})
	}
	key := []string{bearer(testKey(1))}
	for operation, target := range goldenTargets() {
		add(operation+"-200", target, key, nil)
		add(operation+"-304", target, append(slices.Clone(key), "If-None-Match: *"), nil)
		add(operation+"-400", target+"?limit=0&x=1", key, nil)
		add(operation+"-429-minute", target, key, func(g *gated) { g.gate.spend(account1, 60, fakeNow().Add(-1500*time.Millisecond)) })
		add(operation+"-429-day", target, nil, func(g *gated) { g.gate.spend(anyone, 1000, fakeNow().Add(-time.Hour)) })
		for name, lines := range map[string][]string{
			"missing": nil, "invalid": {bearer(testKey(3))}, "malformed": {"Authorization: Basic YTpi"},
			"revoked": {bearer(testKey(8))}, "suspended": {bearer(testKey(9))},
		} {
			add(operation+"-401-"+name, target, lines, func(g *gated) { g.gate.transition = announced(0) })
		}
		add(operation+"-500", target, key, func(g *gated) { g.service.panics = "a planted panic" })
	}
	add("institution-404", "/v1/institutions/no-such", key, nil)
	add("best-500-error", bestTarget, key, func(g *gated) { g.service.fault = errors.New("a cause") })
	add("best-503", bestTarget, key, func(g *gated) {
		g.service.fault = &engine.Error{Code: engine.CodeDataUnavailable, Message: "Nothing is loaded yet.", RetryAfter: time.Minute}
	})
	add("best-503-gate", bestTarget, key, func(g *gated) {
		g.gate.fault = &engine.Error{Code: engine.CodeReadOnly, Message: "The log can't be written."}
	})
	return append(cases, pendingCases()...)
}

// pendingCases has each status once while the end of anonymous access is announced (K7).
func pendingCases() []gatedCase {
	pending := func(more func(*gated)) func(*gated) {
		return func(g *gated) {
			g.gate.transition = announced(6*24*time.Hour + 1)
			g.gate.transition.RequiredAt = g.gate.transition.RequiredAt.Truncate(time.Second)
			if more != nil {
				more(g)
			}
		}
	}
	get := func(name, target string, more func(*gated), lines ...string) gatedCase {
		return gatedCase{"pending-" + name, exchange{method: "GET", target: target, lines: lines}, pending(more)}
	}
	return []gatedCase{
		get("200", bestTarget, nil), get("304", bestTarget, nil, "If-None-Match: *"), get("400", "/v1/rates?limit=0", nil),
		get("404", "/v1/institutions/no-such", nil), get("404-path", "/v1/nothing", nil),
		get("429", bestTarget, func(g *gated) { g.gate.spend(anyone, 60, fakeNow()) }),
		get("500", bestTarget, func(g *gated) { g.service.panics = "a planted panic" }),
		get("503", bestTarget, func(g *gated) {
			g.service.fault = &engine.Error{Code: engine.CodeOverloaded, Message: "Too many requests are waiting."}
		}),
		get("400-malformed", bestTarget, nil, bearer(testKey(1)), bearer(testKey(2))),
		{"pending-204", exchange{method: "OPTIONS", target: bestTarget}, pending(nil)},
		{"pending-405", exchange{method: "DELETE", target: bestTarget}, pending(nil)},
		{"pending-200-head", exchange{method: "HEAD", target: bestTarget}, pending(nil)},
	}
}

func TestGolden_Limits(t *testing.T) { playGolden(t, "limits", limitCases()) }

// playGolden holds cases against the files of a folder, which has no others.
func playGolden(t *testing.T, folder string, cases []gatedCase) {
	t.Helper()
	files := map[string]func(t *testing.T) []byte{}
	for _, c := range cases {
		files[c.name] = func(t *testing.T) []byte {
			_, a := c.run(t)
			return c.text(a)
		}
	}
	holdGolden(t, folder, files)
}

// holdGolden holds texts, by the names of their files, against the files of a folder, which has no others.
func holdGolden(t *testing.T, folder string, files map[string]func(t *testing.T) []byte) {
	t.Helper()
	update := flag.Lookup("update").Value.String() == "true"
	var names []string
	for name, text := range files {
		path := filepath.Join("testdata", folder, name+".http")
		names = append(names, path)
		t.Run(name, func(t *testing.T) {
			got := text(t)
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
	found, err := filepath.Glob(filepath.Join("testdata", folder, "*.http"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		if !slices.Contains(names, path) {
			t.Errorf("%s belongs to no case", path)
		}
	}
}
