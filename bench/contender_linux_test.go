package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	bestTarget = "/v1/rates/best?currency=USD&operation=buy&limit=10"
	fullTarget = "/v1/rates/best?currency=USD&operation=buy"
)

// TestNode builds the real program once. The bench takes it for its node, compares a bare server with it, and measures goals with it
// from the command line to the files, in rounds too short to mean anything.
func TestNode(t *testing.T) {
	program := buildNode(t, "", "", "")
	t.Run("goals", func(t *testing.T) { checkGoals(t, program) })
	f, err := newFixture(t.TempDir(), fixtureSize{institutions: 44, currencies: 3, accounts: 5, days: 8})
	if err != nil || len(f.keys) != 5 || f.catalogue != "" {
		t.Fatalf("want 5 keys and nothing invented, found %+v: %v", f, err)
	}
	node := newNode(program, f)
	found := started(t, node)
	t.Run("node", func(t *testing.T) { checkNode(t, node, found, f) })
	t.Run("bare", func(t *testing.T) { checkBare(t, found, f) })
	t.Run("address", func(t *testing.T) { checkAddress(t, found, f) })
	ended(t, node, found)
	t.Run("more", func(t *testing.T) { checkNodeOnMore(t, program) })
}

// testProgram is this test binary, which TestMain makes the bench.
func testProgram(t *testing.T) program {
	t.Helper()
	self, err := ownProgram()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// started starts a contender, on any core; the test ends it at the latest.
func started(t *testing.T, c contender) *target {
	t.Helper()
	if why := c.missing(); why != "" {
		t.Skip(why)
	}
	found, err := c.start(t.Context(), -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.stop() }) // it is stopped already, unless the test has failed
	if found.name != c.name() || len(found.processes) == 0 {
		t.Errorf("%s: %+v", c.name(), found)
	}
	return found
}

// ended stops a contender and wants all its processes gone.
func ended(t *testing.T, c contender, found *target) {
	t.Helper()
	table, err := processTable()
	if err != nil {
		t.Fatal(err)
	}
	all := below(found.processes, table)
	if err := errors.Join(c.stop(), c.stop()); err != nil { // the second time there is nothing to do
		t.Errorf("stop %s: %v", c.name(), err)
	}
	if table, err = processTable(); err != nil {
		t.Fatal(err)
	}
	for pid := range all {
		if _, lives := table[pid]; lives {
			t.Errorf("%s leaves process %d", c.name(), pid)
		}
	}
}

// asked is the node's, or another's, answer to a question.
func asked(t *testing.T, found *target, key string, q *question) *fasthttp.Response {
	t.Helper()
	_, response, err := exchange(t.Context(), found.address, q.request(key))
	if err != nil {
		t.Fatalf("%s: %v", found.name, err)
	}
	return response
}

// busy wants a server's CPU time to grow with its work.
func busy(t *testing.T, found *target, key string, q *question) {
	t.Helper()
	before, err := cpuOf(found.processes)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		asked(t, found, key, q)
	}
	if after, err := cpuOf(found.processes); err != nil || after <= before {
		t.Errorf("20 answers cost %s %v of CPU: %v", found.name, after-before, err)
	}
}

func checkGoals(t *testing.T, program string) {
	for core := range 2 {
		if err := pinned(core, func() error { return nil }); err != nil {
			t.Skipf("the goals are measured on two cores: %v", err)
		}
	}
	out, text := t.TempDir(), new(bytes.Buffer)
	args := []string{
		"-tasard", program, "-out", out, "-goals", "F1,F4,F12", "-rounds", "1", "-measure", "60ms", "-warmup", "0s", // so that each connection has a counted answer, however slow the machine is
		"-accounts", "100", "-connections", "4", "-profile", filepath.Join(out, "profiles"),
	}
	if err := run(t.Context(), args, text, io.Discard); err != nil || !strings.Contains(text.String(), "The reports are in "+out) {
		t.Fatalf("%v\n%s", err, text)
	}
	var r report
	written, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err = errors.Join(err, json.Unmarshal(written, &r)); err != nil {
		t.Fatal(err)
	}
	if len(r.Goals) != 3 || r.Goals[0].ID != "F1" || len(r.Goals[0].Measures) != 4 || r.Goals[2].ID != "F12" || len(r.Curves) != 2 {
		t.Errorf("%d goals, %d curves: %+v", len(r.Goals), len(r.Curves), r.Goals)
	}
	for name, holds := range map[string]string{"report.txt": "F12", "profiles/best.pprof": ""} {
		if text, err := os.ReadFile(filepath.Join(out, name)); err != nil || len(text) == 0 || !strings.Contains(string(text), holds) {
			t.Errorf("%s: %v, %d bytes, want %q in it", name, err, len(text), holds)
		}
	}
}

// What is missing on this machine is skipped by name; any other error ends the run.
func TestLab_SkipsByName(t *testing.T) {
	planted := error(&missingError{"nginx", "it is not installed"})
	l := &lab{report: &report{}, progress: newProgress(io.Discard, time.Now, nil)}
	s := scenario{goal: "F6", run: func(context.Context, *lab, *goal) error { return planted }}
	err := l.meet(t.Context(), s)
	if want := (skip{"F6, nginx", "it is not installed"}); err != nil || len(l.report.Skipped) != 1 || l.report.Skipped[0] != want {
		t.Errorf("%v, %+v; want %+v", err, l.report.Skipped, want)
	}
	planted = errors.New("planted")
	if err := l.meet(t.Context(), s); !errors.Is(err, planted) {
		t.Errorf("%v, want %v", err, planted)
	}
}

func checkNode(t *testing.T, node *nodeContender, found *target, f *fixture) {
	for path, want := range map[string][2]int{ // how many institutions, how many days
		bestTarget: {10, 0}, fullTarget: {45, 0}, "/v1/rates/history?currency=EUR&institution=bhd": {7, 7},
	} {
		answer := asked(t, found, f.keys[4], &question{path: path})
		institutions, days := bytes.Count(answer.Body(), []byte(`"institutionId"`)), bytes.Count(answer.Body(), []byte(`"date"`))
		if institutions < want[0]-2 || institutions > want[0]+1 || days != want[1] {
			t.Errorf("%s: %d institutions and %d days, want about %v: %.300s", path, institutions, days, want, answer.Body())
		}
		if limit := string(answer.Header.Peek("X-RateLimit-Limit")); limit != nodeQuotaMinute {
			t.Errorf("a key is held to a limit of %q", limit)
		}
	}
	before, err := found.mallocs(t.Context())
	if err != nil || before < 1000 {
		t.Errorf("the node allocated %d objects: %v", before, err)
	}
	busy(t, found, f.keys[0], &question{path: bestTarget})
	if after, err := found.mallocs(t.Context()); err != nil || after <= before {
		t.Errorf("and then %d: %v", after, err)
	}
	if _, err := node.start(t.Context(), -1); err == nil {
		t.Error("a node that runs is started again")
	}
}

// checkAddress puts a load on a node that somebody else started.
func checkAddress(t *testing.T, found *target, f *fixture) {
	keys, out := filepath.Join(t.TempDir(), "keys.txt"), new(bytes.Buffer)
	writeFile(t, keys, []byte(strings.Join(f.keys, "\n")+"\n\n"))
	args := []string{"-against", "http://" + found.address, "-keys", keys, "-mix", "best", "-rate", "200", "-measure", "200ms", "-connections", "4"}
	if err := run(t.Context(), args, out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "40 answers") || !strings.Contains(text, "  200: 40\n") || strings.Contains(text, "lost") {
		t.Errorf("told\n%s", text)
	}
}

// checkNodeOnMore wants what is invented to reach the node.
func checkNodeOnMore(t *testing.T, program string) {
	f, err := newFixture(t.TempDir(), fixtureSize{institutions: 60, currencies: 16, accounts: 1, days: 1})
	if err != nil || f.catalogue == "" {
		t.Fatalf("%q: %v", f.catalogue, err)
	}
	found := started(t, newNode(program, f, "--quota-minute", "17"))
	for target, want := range map[string]int{
		"/v1/rates/best?currency=USD&operation=sell": 60, "/v1/rates/best?currency=QAP&operation=sell": 60,
		"/v1/institutions/inventada-0016": 16,
	} {
		answer := asked(t, found, f.keys[0], &question{path: target})
		if got := bytes.Count(answer.Body(), []byte(`"expiresAt"`)); got != want {
			t.Errorf("%s: %d rates, want %d: %.300s", target, got, want, answer.Body())
		}
		if limit := string(answer.Header.Peek("X-RateLimit-Limit")); limit != "17" {
			t.Errorf("a flag that is given has no effect: %s", limit)
		}
	}
}

// headOf are the lines of the head of a raw answer, in any order, without the values that each answer has for itself.
func headOf(raw []byte) string {
	head, _, _ := strings.Cut(string(raw), "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	slices.Sort(lines)
	own := regexp.MustCompile(`(?m)^(Date|X-Request-Id|X-RateLimit-[A-Za-z]+|RateLimit): .*$`)
	return own.ReplaceAllString(strings.Join(lines, "\n"), "$1: -")
}

// checkBare wants the node's answers of the bare server, for one question and for several.
func checkBare(t *testing.T, found *target, f *fixture) {
	questions := []question{
		{operation: "best", path: bestTarget},
		{operation: "gzip", path: fullTarget, lines: "Accept-Encoding: gzip\r\n"},
		{operation: "convert", path: "/v1/convert?currency=USD&operation=buy&amount=", amounts: true},
	}
	for _, count := range []int{1, len(questions)} {
		replies, err := capture(t.Context(), found.address, f.keys[0], questions[:count])
		file := filepath.Join(t.TempDir(), "replies")
		if err = errors.Join(err, writeReplies(file, replies)); err != nil {
			t.Fatal(err)
		}
		bare := newBare(testProgram(t), file)
		target := started(t, bare)
		for i := range replies {
			raw, response, err := exchange(t.Context(), target.address, questions[i].request(f.keys[0]))
			if err != nil {
				t.Fatal(err)
			}
			wanted, err := replies[i].response()
			if err != nil || !bytes.Equal(response.Body(), wanted.Body()) {
				t.Errorf("%s: another body than the node's: %.300s (%v)", questions[i].operation, response.Body(), err)
			}
			if got, want := headOf(raw), headOf(replies[i].Raw); got != want {
				t.Errorf("%s: another head than the node's:\n%s\n\nthe node:\n%s", questions[i].operation, got, want)
			}
		}
		busy(t, target, "", &questions[0])
		ended(t, bare, target)
	}
}

// TestCapture_Refuses wants an answer that is not 200 to be told.
func TestCapture_Refuses(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := capture(t.Context(), server.Listener.Addr().String(), "", []question{{operation: "best", path: "/"}})
	if err == nil || !strings.Contains(err.Error(), "ask for best: want an answer 200, found 404") {
		t.Error(err)
	}
}
