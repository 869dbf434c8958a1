//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
)

// TestNode builds the real program once, measures goals with it in rounds too short to mean anything, compares a bare
// server with a node, and puts a load on the node.
func TestNode(t *testing.T) {
	program := buildNode(t, "")
	t.Run("goals", func(t *testing.T) { checkGoals(t, program) })
	f, err := newFixture(t.TempDir(), 5)
	if err != nil || len(f.keys) != 5 {
		t.Fatalf("want 5 keys, found %+v: %v", f, err)
	}
	node, err := startNode(t.Context(), program, f, anyCore)
	noError(t, err)
	t.Run("node", func(t *testing.T) { checkNode(t, node, f) })
	t.Run("against", func(t *testing.T) { checkAgainst(t, node, f) })
	if err := node.stop(); err != nil {
		t.Error(err)
	}
}

func checkGoals(t *testing.T, program string) {
	for core := range 2 {
		if err := pinToCore(core, func() error { return nil }); err != nil {
			t.Skipf("NEEDS two cores: %v", err)
		}
	}
	out := new(bytes.Buffer)
	args := []string{
		"-tasard", program, "-goals", "F1n,F3g,F12,F14", "-rounds", "1", "-measure", "60ms", "-warmup", "0s", // so that each connection has a counted answer on a slow machine
		"-connections", "4",
	}
	if err := run(t.Context(), args, out, io.Discard); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// A row for each measurement: two of a goal without latency, three of five comparisons.
	if got := strings.Count(out.String(), "–"); got != 2+5*3 || !strings.Contains(out.String(), "\nMissed: ") {
		t.Errorf("%d rows\n%s", got, out)
	}
}

// checkNode checks that a node has the fixture's data, and that a bare server sends its
// answers.
func checkNode(t *testing.T, node *server, f *fixture) {
	self, err := os.Executable()
	noError(t, err)
	for path, want := range map[string]int{ // number of rates or days
		bestPath: 10, fullPath: 40, "/v1/rates/history?currency=EUR&institution=bhd": 7,
	} {
		raw, response, err := node.ask(t.Context(), (&requestTemplate{path: path}).request(f.keys[4]))
		noError(t, err)
		if got := bytes.Count(response.Body(), []byte(`"expiresAt"`)) + bytes.Count(response.Body(), []byte(`"date"`)); got != want {
			t.Errorf("%s: %d, want %d: %.300s", path, got, want, response.Body())
		}
		bare, err := startBare(t.Context(), self, filepath.Join(t.TempDir(), "response"), raw, nil)
		noError(t, err)
		bareRaw, _, err := bare.ask(t.Context(), (&requestTemplate{path: path}).request(f.keys[4]))
		if err != nil || sortedLines(bareRaw) != sortedLines(raw) {
			t.Errorf("%s: %v, another answer than the node's:\n%.900s\n\nthe node:\n%.900s", path, err, bareRaw, raw)
		}
		if err := bare.stop(); err != nil {
			t.Error(err)
		}
	}
}

// sortedLines returns the lines of a response in order, without its date.
func sortedLines(raw []byte) string {
	lines := strings.Split(string(raw), "\r\n")
	slices.Sort(lines)
	return regexp.MustCompile(`(?m)^Date: .*$`).ReplaceAllString(strings.Join(lines, "\n"), "")
}

// checkAgainst puts a load on a running node.
func checkAgainst(t *testing.T, node *server, f *fixture) {
	keys, out := filepath.Join(t.TempDir(), "keys.txt"), new(bytes.Buffer)
	writeFile(t, keys, []byte(strings.Join(f.keys, "\n")+"\n\n"))
	args := []string{"-against", "http://" + node.address, "-keys", keys, "-mix", "all", "-rate", "200", "-measure", "200ms", "-connections", "4"}
	noError(t, run(t.Context(), args, out, io.Discard))
	if text := out.String(); !strings.Contains(text, "40 answers") || !strings.Contains(text, "  200: 40\n") || strings.Contains(text, "lost") {
		t.Errorf("printed\n%s", text)
	}
	writeFile(t, keys, nil)
	if err := run(t.Context(), args, out, io.Discard); err == nil || !strings.Contains(err.Error(), "has no keys") {
		t.Errorf("a file without keys: %v", err)
	}
}

// TestAgainst_Failures checks that a load of which too much is refused or lost shows no latencies, that its error
// counts the failures and names the flag that ends them, and that a few failures are only counted.
func TestAgainst_Failures(t *testing.T) {
	var asked atomic.Int64
	const refusing, closing, mostlyGood = "refusing", "closing", "mostly good"
	answer := func(kind string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			n := asked.Add(1)
			switch {
			case kind == refusing && n > 3, kind == mostlyGood && n%200 == 0:
				w.WriteHeader(http.StatusTooManyRequests)
			case kind == closing && n%2 == 0:
				panic(http.ErrAbortHandler)
			}
		}
	}
	for kind, want := range map[string]string{
		refusing:   `19\d of 200 requests were not answered with status 200: 19\d with 429 \(quotas: use -keys, .*--limits=off\)`,
		closing:    `\d+ of 200 requests were not answered with status 200: \d+ lost \(.*--connections-per-address 0`,
		mostlyGood: `1 of 200 requests were not answered with status 200: 1 with 429`,
	} {
		asked.Store(0)
		node, out := httptest.NewServer(answer(kind)), new(bytes.Buffer)
		args := []string{"-against", node.URL, "-mix", "best", "-rate", "1000", "-warmup", "0", "-measure", "200ms", "-connections", "4"}
		err := run(t.Context(), args, out, io.Discard)
		node.Close()
		if !errors.Is(err, errNotAnswered) || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%s: %v", kind, err)
		}
		if strings.Contains(out.String(), "99.99 %") != (kind == mostlyGood) || !strings.Contains(out.String(), "% of a core") {
			t.Errorf("%s: printed\n%s", kind, out)
		}
	}
}

// TestMeasurement checks medians, bounds and their words. A ratio whose interval contains its bound of 1 shows no
// difference, which meets it; NaN meets no bound.
func TestMeasurement(t *testing.T) {
	for _, tt := range []struct {
		rounds []float64
		want   float64
		least  bool
		says   string
	}{
		{[]float64{0.9, 1.0, 1.2, 0.95, 0.99}, 0.9, true, "| F0 | t: n | 0.990× (0.900–1.20) | ≥ 0.900×, met | a, b |"},
		{[]float64{0.8, 0.8, 0.8, 0.8, 0.8}, 0.9, true, "≥ 0.900×, **missed**"},
		{[]float64{1.2, 1.2, 1.2, 1.2, 1.2}, 1.15, false, "≤ 1.15×, **missed**"},
		{[]float64{1.1, 0.9, 1.2, 0.8, 1.3}, 1, false, "≤ 1.00×, met"},
		{[]float64{math.NaN()}, 0.9, true, "**missed**"},
		{[]float64{7}, 0, false, "|  | a, b |"},
	} {
		m := measurement{name: "n", rounds: tt.rounds, want: tt.want, least: tt.least, sides: "a, b"}
		if row := m.row(&scenario{goal: "F0", title: "t"}); !strings.Contains(row, tt.says) {
			t.Errorf("%v: %s, want %s", tt.rounds, row, tt.says)
		}
	}
}

// TestSettings checks which command lines are refused.
func TestSettings(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-tasard", "x", "-goals", "F99"}, {"-tasard", "x", "more"}, {"-tasard", "x", "-rounds", "0"}, {"-against", "https://x"},
		{"-against", "http://x/path"}, {"-against", "http://x", "-mix", "none"}, {"-against", "http://x", "-rate", "-1"}, {"-against", "http://x", "-measure", "0s"},
	} {
		if _, err := readSettings(args, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	if s, err := readSettings([]string{"-tasard", "x", "-goals", "f3,F1"}, io.Discard); err != nil || len(s.goals) != 7 {
		t.Errorf("%+v, %v", s, err)
	}
}

// settingsIn returns the fields of the HTTP server that a function makes, without those that set up no connection.
func settingsIn(text, function string) map[string]string {
	maker := regexp.MustCompile(`(?ms)^func [^\n]*\b` + function + `\(.*?^}`).FindString(text)
	settings := map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)^\t+(\w+):\s+(.*?),(?: //.*)?$`).FindAllStringSubmatch(maker, -1) {
		settings[found[1]] = strings.ReplaceAll(found[2], " ", "")
	}
	for _, name := range []string{"ErrorHandler", "ExpectHandler", "HeaderReceived", "Logger"} {
		delete(settings, name)
	}
	return settings
}

// TestBare_HasTheNodesSettings compares the bare server's settings with the node's, so that neither is tuned without
// the other.
func TestBare_HasTheNodesSettings(t *testing.T) {
	text, err := os.ReadFile("../httpapi/server.go")
	noError(t, err)
	own, err := os.ReadFile("server.go")
	noError(t, err)
	node, bare := settingsIn(string(text), "newHTTP"), settingsIn(string(own), "bareServer")
	for name := range node {
		if bare[name] == "" {
			t.Errorf("%s of the node's server is not set", name)
		}
	}
	defaults := regexp.MustCompile(`(?m)^\tl\.(\w+) = cmp\.Or\(max\(0, l\.\w+\), (.+)\)$`).FindAllStringSubmatch(string(text), -1)
	for _, limit := range defaults {
		name := strings.NewReplacer("HeaderBytesMax", "ReadBufferSize", "BodyBytesMax", "MaxRequestBodySize", "ConnsMax", "Concurrency").Replace(limit[1])
		if got := strings.TrimPrefix(bare[name], "2*"); got != strings.ReplaceAll(limit[2], " ", "") {
			t.Errorf("%s is %q, the node's %s %q", name, got, limit[1], limit[2])
		}
	}
	if len(bare) != len(node) || len(defaults) != 6 {
		t.Errorf("the bare server has the settings %v, the node %v and %d limits", bare, node, len(defaults))
	}
}

// TestBare_AllocatesNothing: a baseline that makes garbage would flatter the node.
func TestBare_AllocatesNothing(t *testing.T) {
	handler, err := bareHandler([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nETag: W/\"x\"\r\n\r\n{}"))
	noError(t, err)
	var ctx fasthttp.RequestCtx
	handler(&ctx)
	if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != 200 || got != "{}" {
		t.Errorf("%d %s", ctx.Response.StatusCode(), got)
	}
	if count := testing.AllocsPerRun(100, func() { handler(&ctx) }); count != 0 {
		t.Errorf("an answer costs %v allocations", count)
	}
}

// TestMain is the bench itself if a test has started this binary as a server; otherwise it runs the tests. fasthttp
// leaves a goroutine for the Date header, and one for each server that ends some seconds later.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == bareName {
		main()
		return
	}
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

// buildNode builds the node with a text replaced by another in a file of the module; file "" changes nothing.
func buildNode(t *testing.T, file string, changes ...string) string {
	t.Helper()
	path, args := filepath.Join(t.TempDir(), "tasard"), []string{"build", "-ldflags=-s -w"}
	if file != "" {
		file, overlay := filepath.Join("..", file), path+".json"
		source, err := os.ReadFile(file)
		if err != nil || strings.Count(string(source), changes[0]) != 1 {
			t.Fatalf("change %s: %v, or not once:\n%s", file, err, changes[0])
		}
		if file, err = filepath.Abs(file); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path+".go", []byte(strings.Replace(string(source), changes[0], changes[1], 1)))
		writeFile(t, overlay, fmt.Appendf(nil, `{"Replace":{%q:%q}}`, file, path+".go"))
		args = append(args, "-overlay", overlay)
	}
	if output, err := exec.Command("go", append(args, "-o", path, "..")...).CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, output)
	}
	return path
}

// noError ends a test at an error.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	noError(t, os.WriteFile(path, text, 0o600))
}

func writeProgram(t *testing.T, path, script string) {
	t.Helper()
	noError(t, os.WriteFile(path, []byte(script), 0o700))
}
