//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
)

// TestNode builds the real program once, compares a bare server with it, puts a load on it, and measures goals from
// the command line to the files, in rounds too short to mean anything.
func TestNode(t *testing.T) {
	program := buildNode(t, "")
	t.Run("goals", func(t *testing.T) { checkGoals(t, program) })
	f, err := newFixture(t.TempDir(), fixtureSize{institutions: 60, currencies: 16, accounts: 5, days: 8})
	if err != nil || len(f.keys) != 5 || f.catalogue == "" {
		t.Fatalf("want 5 keys and a catalogue, found %+v: %v", f, err)
	}
	node := wantStarted(t)(startNode(t.Context(), []string{program}, f, -1, "--quota-minute", "50000"))
	t.Run("node", func(t *testing.T) { checkNode(t, node, f) })
	t.Run("bare", func(t *testing.T) { checkBare(t, node, f) })
	t.Run("against", func(t *testing.T) { checkAgainst(t, node, f) })
	wantStopped(t, node)
}

// wantStarted wants a server, which is killed at the end of the test.
func wantStarted(t *testing.T) func(*server, error) *server {
	t.Helper()
	return func(s *server, err error) *server {
		t.Helper()
		if missing := new(missingError); errors.As(err, &missing) {
			t.Skip("NEEDS ", missing)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.kill) // stopped already, unless the test has failed
		return s
	}
}

// wantStopped stops a server and checks that its processes and its scratch directory are gone.
func wantStopped(t *testing.T, s *server) {
	t.Helper()
	var all []int
	for _, p := range s.processes {
		all = append(append(all, p.cmd.Process.Pid), childPIDs(p.cmd.Process.Pid)...)
	}
	if err := s.stop(); err != nil {
		t.Errorf("stop %s: %v", s.name, err)
	}
	for _, pid := range all {
		if _, err := cpuTime(pid); err == nil {
			t.Errorf("%s leaves process %d", s.name, pid)
		}
	}
	if _, err := os.Stat(s.scratchDir); err == nil {
		t.Errorf("%s leaves %s", s.name, s.scratchDir)
	}
}

// get returns the response to a request, whatever its status.
func get(t *testing.T, s *server, key, path string) *fasthttp.Response {
	t.Helper()
	_, response, err := s.ask(t.Context(), (&requestTemplate{path: path}).request(key))
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return response
}

// wantBusy checks that a server's CPU time grows with its work.
func wantBusy(t *testing.T, s *server, key string) {
	t.Helper()
	before, err := s.cpu()
	for range 20 {
		get(t, s, key, mixes()[mixBestRates][0].path)
	}
	if after, afterErr := s.cpu(); errors.Join(err, afterErr) != nil || after <= before {
		t.Errorf("20 answers cost %s %v of CPU: %v, %v", s.name, after-before, err, afterErr)
	}
}

func checkGoals(t *testing.T, program string) {
	for core := range 2 {
		if err := pinToCore(core, func() error { return nil }); err != nil {
			t.Skipf("the goals are measured on two cores: %v", err)
		}
	}
	text := new(bytes.Buffer)
	args := []string{
		"-tasard", program, "-goals", "F1,F12,F14", "-rounds", "1", "-measure", "60ms", "-warmup", "0s", // so that each connection has a counted answer on a slow machine
		"-accounts", "100", "-connections", "4",
	}
	if err := run(t.Context(), args, text, io.Discard); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	// A line for each figure, of two goals with 3 and 6 and F12 with 1.
	if got := strings.Count(text.String(), "–"); got != 10 || !strings.Contains(text.String(), "\nF12  reads while") || !strings.Contains(text.String(), " bounds; short: ") {
		t.Errorf("%d figures\n%s", got, text)
	}
}

// checkNode checks that the node has the fixture's data, also the invented part, and its flags, and that its metrics
// can be read.
func checkNode(t *testing.T, node *server, f *fixture) {
	for path, want := range map[string]int{ // number of rates or days
		"/v1/rates/best?currency=USD&operation=buy&limit=10": 10, "/v1/rates/best?currency=QAP&operation=sell": 60,
		"/v1/institutions/inventada-0016": 16, "/v1/rates/history?currency=EUR&institution=bhd": 7,
	} {
		answer := get(t, node, f.keys[4], path)
		if got := bytes.Count(answer.Body(), []byte(`"expiresAt"`)) + bytes.Count(answer.Body(), []byte(`"date"`)); got != want {
			t.Errorf("%s: %d, want %d: %.300s", path, got, want, answer.Body())
		}
		if limit := string(answer.Header.Peek("X-RateLimit-Limit")); limit != "50000" {
			t.Errorf("a key is held to a limit of %q", limit)
		}
	}
	before, err := node.metric(t.Context(), mallocsMetric)
	if err != nil || before < 1000 {
		t.Errorf("the node allocated %v objects: %v", before, err)
	}
	// Also a small node makes 16 MB of garbage before it collects, or a refresh would cause several collections.
	if next, err := node.metric(t.Context(), "go_memstats_next_gc_bytes"); err != nil || next < 80e6 {
		t.Errorf("the node collects at a heap of %v bytes: %v", next, err)
	}
	wantBusy(t, node, f.keys[0])
	if after, err := node.metric(t.Context(), mallocsMetric); err != nil || after <= before {
		t.Errorf("and then %v: %v", after, err)
	}
	if _, err := node.metric(t.Context(), "no_such_total"); err == nil {
		t.Error("a metric that is not there is read")
	}
	if _, _, err := node.capture(t.Context(), f.keys[0], &requestTemplate{path: "/v1/nothing"}); err == nil || !strings.Contains(err.Error(), "want a response with status 200, found 404") {
		t.Error(err)
	}
}

// headOf returns the sorted header lines of a raw response, without values that change with each response.
func headOf(raw []byte) string {
	head, _, _ := strings.Cut(string(raw), "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	slices.Sort(lines)
	own := regexp.MustCompile(`(?m)^(Date|Content-Length|X-Request-Id|X-RateLimit-[A-Za-z]+|RateLimit): .*$`)
	return own.ReplaceAllString(strings.Join(lines, "\n"), "$1: -")
}

// bodyOf returns the body of a response without the time at which it was made: the bare server keeps the one of its
// start.
func bodyOf(t *testing.T, response *fasthttp.Response) string {
	t.Helper()
	body, err := response.BodyUncompressed()
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`"generatedAt":"[^"]+"`).ReplaceAllString(string(body), `"generatedAt":-`)
}

// checkBare compares the bare server's responses with the node's.
func checkBare(t *testing.T, node *server, f *fixture) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, mix := range []string{mixBestRates, mixGzip, mixConvert} {
		bare := wantStarted(t)(startBare(t.Context(), self, node, f.keys[0], mix, nil, -1))
		q := &mixes()[mix][0]
		raw, response, err := bare.capture(t.Context(), f.keys[0], q)
		wantRaw, want, wantErr := node.capture(t.Context(), f.keys[0], q)
		if err := errors.Join(err, wantErr); err != nil {
			t.Fatal(err)
		}
		if bodyOf(t, response) != bodyOf(t, want) || headOf(raw) != headOf(wantRaw) {
			t.Errorf("%s: another answer than the node's:\n%.900s\n\nthe node:\n%.900s", mix, raw, wantRaw)
		}
		wantBusy(t, bare, "")
		wantStopped(t, bare)
	}
}

// checkAgainst puts a load on a running node.
func checkAgainst(t *testing.T, node *server, f *fixture) {
	keys, out := filepath.Join(t.TempDir(), "keys.txt"), new(bytes.Buffer)
	writeFile(t, keys, []byte(strings.Join(f.keys, "\n")+"\n\n"))
	args := []string{"-against", "http://" + node.address, "-keys", keys, "-mix", "best", "-rate", "200", "-measure", "200ms", "-connections", "4"}
	if err := run(t.Context(), args, out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "40 answers") || !strings.Contains(text, "  200: 40\n") || strings.Contains(text, "lost") {
		t.Errorf("printed\n%s", text)
	}
	writeFile(t, keys, nil)
	if err := run(t.Context(), args, out, io.Discard); err == nil || !strings.Contains(err.Error(), "has none") {
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

// TestRunner_SkipsByName checks that a goal whose programs are missing is skipped; any other error ends the run.
func TestRunner_SkipsByName(t *testing.T) {
	planted := error(&missingError{"nginx", "it is not installed"})
	l := &runner{progress: io.Discard}
	s := scenario{goal: "F6", run: func(context.Context, *runner, *goal) error { return planted }}
	out := new(bytes.Buffer)
	if err := l.measureGoal(t.Context(), s, out); err != nil || !strings.Contains(out.String(), "not measured: nginx: it is not installed\n") || len(l.goals) > 0 {
		t.Errorf("%v, %+v, %s", err, l.goals, out)
	}
	planted = errors.New("planted")
	if err := l.measureGoal(t.Context(), s, out); !errors.Is(err, planted) {
		t.Errorf("%v, want %v", err, planted)
	}
}

// TestFixture_Sizes checks the number of institutions, currencies and rates, and that all are plausible, whether
// known or invented.
func TestFixture_Sizes(t *testing.T) {
	for _, size := range []fixtureSize{standardSize(), {institutions: 450, currencies: 80}, {institutions: 2, currencies: 1}} {
		invented, err := inventedCatalogue(size)
		if fits := size.institutions <= 44; err != nil || fits != (invented == nil) {
			t.Fatalf("%+v: %d bytes are invented: %v", size, len(invented), err)
		}
		catalogue := engine.DefaultCatalogue()
		if invented != nil {
			if catalogue, err = catalogue.Extend(bytes.NewReader(invented), "invented"); err != nil {
				t.Fatal(err)
			}
		}
		counters := newMarket(catalogue, size)
		if want := size.currencies * (size.institutions + 1); len(counters) != want { // and the central bank
			t.Errorf("%+v: %d rates, want %d", size, len(counters), want)
		}
		random := rand.New(rand.NewPCG(1, 2))
		for i := range counters {
			for range 30 { // days
				counters[i].drift(random)
			}
			o := counters[i].rate(time.Date(2026, 3, 2, 16, 0, 0, 0, time.UTC))
			buy, buyErr := engine.ParseDecimal(o.Buy)
			sell, sellErr := engine.ParseDecimal(o.Sell)
			currency, known := catalogue.Currency(o.Currency)
			if buyErr != nil || sellErr != nil || !known || buy.Compare(sell) >= 0 ||
				!currency.Lowest.IsNull() && buy.Compare(currency.Lowest) < 0 || !currency.Highest.IsNull() && sell.Compare(currency.Highest) > 0 {
				t.Errorf("not a believable rate: %+v", o)
			}
		}
	}
}
