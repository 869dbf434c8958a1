package main

import (
	"bytes"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// asSubcommand is a variable that makes the test binary run as the bench with a subcommand: TestAsSubcommand.
const asSubcommand = "RUN_AS_BENCH"

// testProgram is this test binary in the place of the bench.
func testProgram(t *testing.T) program {
	t.Helper()
	self, err := ownProgram()
	if err != nil {
		t.Fatal(err)
	}
	self.args = []string{"-test.run=^TestAsSubcommand$"}
	self.env = []string{asSubcommand + "=1", "GORACE=atexit_sleep_ms=0"} // the race detector would let each end wait a second
	return self
}

// TestAsSubcommand is the bench's hidden subcommands when the tests below start this binary as a server, and else nothing.
func TestAsSubcommand(t *testing.T) {
	if os.Getenv(asSubcommand) == "" {
		return
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	run := map[string]func() error{
		"bare":     func() error { return runBare(ctx, flag.Args()[1:], os.Stdout) },
		"postgres": func() error { return runPostgres(ctx, flag.Args()[1:], os.Stdout) },
	}[flag.Arg(0)]
	if err := run(); err != nil {
		t.Fatal(err)
	}
	os.Exit(0) // the HTTP library leaves goroutines behind, which the end of a process takes along
}

const (
	bestTarget = "/v1/rates/best?currency=USD&operation=buy&limit=10"
	fullTarget = "/v1/rates/best?currency=USD&operation=buy"
)

// TestContenders starts everybody once, on data of one fixture, and holds their answers against the node's.
func TestContenders(t *testing.T) {
	dir := t.TempDir()
	f, err := newFixture(filepath.Join(dir, "fixture"), fixtureSize{institutions: 44, currencies: 3, accounts: 5, days: 8})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.keys) != 5 || f.catalogue != "" {
		t.Errorf("want 5 keys and nothing invented, found %d and %q", len(f.keys), f.catalogue)
	}
	program := filepath.Join(dir, "tasard")
	if err := buildNode(t.Context(), program); err != nil {
		t.Fatal(err)
	}
	node := newNode(program, f)
	found := started(t, node)
	t.Run("node", func(t *testing.T) { checkNode(t, found, f) })
	t.Run("node again", func(t *testing.T) { found = checkNodeAgain(t, node, found) })
	t.Run("node on more", func(t *testing.T) { checkNodeOnMore(t, program) })
	t.Run("bare", func(t *testing.T) { checkBare(t, found, f) })
	t.Run("nginx", func(t *testing.T) { checkNginx(t, found, f) })
	t.Run("postgres", func(t *testing.T) { checkPostgres(t, found, f) })
	ended(t, node, found)
}

// started starts a contender, which is skipped when something is not installed; the test ends it at the latest.
func started(t *testing.T, c contender) *target {
	t.Helper()
	if why := c.missing(); why != "" {
		t.Skip(why)
	}
	found, err := c.start(t.Context(), 0)
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
	if err := c.stop(); err != nil {
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
	if err := c.stop(); err != nil {
		t.Errorf("stop %s again: %v", c.name(), err)
	}
}

// asked is the node's, or another's, answer to a target.
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
	after, err := cpuOf(found.processes)
	if err != nil {
		t.Fatal(err)
	}
	if spent := after - before; spent <= 0 || spent > 20*time.Second {
		t.Errorf("20 answers cost %s %v of CPU", found.name, spent)
	}
}

func checkNode(t *testing.T, found *target, f *fixture) {
	best := asked(t, found, f.keys[0], &question{path: bestTarget})
	if count := bytes.Count(best.Body(), []byte(`"institutionId"`)); count != 10 {
		t.Errorf("want 10 rates, found %d: %.300s", count, best.Body())
	}
	if limit := string(best.Header.Peek("X-RateLimit-Limit")); limit != nodeQuotaMinute {
		t.Errorf("a key is held to a limit of %q", limit)
	}
	full := asked(t, found, f.keys[4], &question{path: fullTarget})
	if count := bytes.Count(full.Body(), []byte(`"institutionId"`)); count < 43 || count > 46 || len(full.Body()) < 25_000 {
		t.Errorf("want a full page of about 45 rates, found %d in %d bytes", count, len(full.Body()))
	}
	history := asked(t, found, f.keys[0], &question{path: "/v1/rates/history?currency=EUR&institution=bhd"})
	if count := bytes.Count(history.Body(), []byte(`"date"`)); count != 7 {
		t.Errorf("want 7 days, found %d: %.300s", count, history.Body())
	}
	before, err := found.mallocs(t.Context())
	if err != nil || before < 1000 {
		t.Errorf("the node allocated %d objects: %v", before, err)
	}
	busy(t, found, f.keys[0], &question{path: bestTarget})
	if after, err := found.mallocs(t.Context()); err != nil || after <= before {
		t.Errorf("and then %d: %v", after, err)
	}
}

// checkNodeAgain kills the node, which the bench must notice, and starts it again.
func checkNodeAgain(t *testing.T, node *nodeContender, found *target) *target {
	if err := syscall.Kill(found.processes[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-node.process.done
	if err := node.stop(); err == nil || !strings.Contains(err.Error(), "by itself (signal: killed)") || !strings.Contains(err.Error(), "listening on") {
		t.Errorf("a node that was killed by somebody: %v", err)
	}
	if _, err := cpuOf(found.processes); err == nil {
		t.Error("the CPU time of a process that is gone is known")
	}
	request := (&question{path: bestTarget}).request("")
	found, took, err := node.startTimed(t.Context(), 0, request)
	if err != nil || took <= 0 {
		t.Fatalf("the start took %v: %v", took, err)
	}
	if _, _, err := node.startTimed(t.Context(), 0, request); err == nil {
		t.Error("a node that runs is started again")
	}
	return found
}

// checkNodeOnMore wants what is invented to reach the node.
func checkNodeOnMore(t *testing.T, program string) {
	f, err := newFixture(t.TempDir(), fixtureSize{institutions: 60, currencies: 16, accounts: 1, days: 1})
	if err != nil || f.catalogue == "" {
		t.Fatalf("%q: %v", f.catalogue, err)
	}
	node := newNode(program, f, "--quota-minute", "17")
	found := started(t, node)
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
	ended(t, node, found)
}

// headOf are the lines of the head of a raw answer, in any order, without the values that each answer has for itself.
func headOf(raw []byte) string {
	head, _, _ := strings.Cut(string(raw), "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	slices.Sort(lines)
	own := regexp.MustCompile(`(?m)^(Date|X-Request-Id|X-RateLimit-[A-Za-z]+|RateLimit): .*$`)
	return own.ReplaceAllString(strings.Join(lines, "\n"), "$1: -")
}

func checkBare(t *testing.T, found *target, f *fixture) {
	questions := []question{
		{operation: "best", path: bestTarget},
		{operation: "gzip", path: fullTarget, lines: "Accept-Encoding: gzip\r\n"},
		{operation: "convert", path: "/v1/convert?currency=USD&operation=buy&amount=", amounts: true},
	}
	for count := 1; count <= len(questions); count++ {
		replies, err := capture(t.Context(), found.address, f.keys[0], questions[:count])
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "replies")
		if err := writeReplies(file, replies); err != nil {
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
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(response.Body(), wanted.Body()) {
				t.Errorf("%s: another body than the node's: %.300s", questions[i].operation, response.Body())
			}
			if got, want := headOf(raw), headOf(replies[i].Raw); got != want {
				t.Errorf("%s: another head than the node's:\n%s\n\nthe node:\n%s", questions[i].operation, got, want)
			}
		}
		busy(t, target, "", &questions[0])
		ended(t, bare, target)
	}
	if _, err := bareHandler([]reply{{Target: "/", Raw: []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")}, {Target: "/", Raw: []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")}}); err == nil {
		t.Error("two replies to one target are taken")
	}
}

func checkNginx(t *testing.T, found *target, f *fixture) {
	for _, q := range []question{{operation: "best", path: bestTarget}, {operation: "gzip", path: fullTarget, lines: "Accept-Encoding: gzip\r\n"}} {
		replies, err := capture(t.Context(), found.address, f.keys[0], []question{q})
		if err != nil {
			t.Fatal(err)
		}
		nginx := newNginx(t.TempDir(), replies)
		target := started(t, nginx)
		wanted, err := replies[0].response()
		if err != nil {
			t.Fatal(err)
		}
		response := asked(t, target, "", &q)
		if !bytes.Equal(response.Body(), wanted.Body()) {
			t.Errorf("%s: another body than the node's: %.300s", q.operation, response.Body())
		}
		for _, name := range []string{"Content-Type", "Content-Encoding"} {
			if got, want := string(response.Header.Peek(name)), string(wanted.Header.Peek(name)); got != want {
				t.Errorf("%s: %s is %q, the node's %q", q.operation, name, got, want)
			}
		}
		busy(t, target, "", &q)
		ended(t, nginx, target)
	}
	if _, err := newNginx(t.TempDir(), []reply{{Target: "/a?b"}, {Target: "/a?c"}}).start(t.Context(), 0); err == nil {
		t.Error("two replies to one path are taken")
	}
}

// withoutTime masks generatedAt.
func withoutTime(body []byte) string {
	return regexp.MustCompile(`"generatedAt":"[^"]*"`).ReplaceAllString(string(body), `"generatedAt":""`)
}

// checkPostgres wants the node's answers, counted and not, and refusals where the node refuses.
func checkPostgres(t *testing.T, found *target, f *fixture) {
	rates, err := readPublished(t.Context(), found.address, f.keys[0])
	if err != nil || len(rates) < 3*44 {
		t.Fatalf("%d rates are published: %v", len(rates), err)
	}
	stranger := "tasard_test_" + strings.Repeat("0", 30) + "0FpGnC" // of the right form, whether or not its checksum is
	for _, quota := range []bool{true, false} {
		postgres := newPostgres(testProgram(t), rates, f.keys, quota)
		t.Run(postgres.name(), func(t *testing.T) {
			target := started(t, postgres)
			for _, path := range []string{
				bestTarget, fullTarget, "/v1/rates/best?currency=EUR&operation=sell&limit=7&cursor=40", "/v1/rates/best?currency=XXX&operation=buy",
			} {
				q := question{path: path}
				want, got := asked(t, found, f.keys[0], &q), asked(t, target, f.keys[1], &q)
				if got.StatusCode() != 200 || withoutTime(got.Body()) != withoutTime(want.Body()) {
					t.Errorf("%s: %d and another answer than the node's:\n%.2000s\nthe node:\n%.2000s", path, got.StatusCode(), got.Body(), want.Body())
				}
			}
			q := question{path: bestTarget}
			for key, want := range map[string]int{"": 401, stranger: 401} {
				if got := asked(t, target, key, &q).StatusCode(); quota && got != want {
					t.Errorf("key %q: %d, want %d", key, got, want)
				}
			}
			if got := asked(t, target, f.keys[1], &question{path: bestTarget + "1"}).StatusCode(); got != 200 {
				t.Errorf("limit=101: %d", got)
			}
			if got := asked(t, target, f.keys[1], &question{path: bestTarget + "00"}).StatusCode(); got != 400 {
				t.Errorf("limit=1000: %d", got)
			}
			if quota {
				checkCounters(t, postgres, target, f.keys)
			}
			busy(t, target, f.keys[1], &q)
			dir := postgres.cluster.dir
			ended(t, postgres, target)
			if _, err := os.Stat(dir); err == nil {
				t.Error("the cluster's directory is left behind")
			}
		})
	}
}

// TestCapture_Refuses wants an answer that is none to be told.
func TestCapture_Refuses(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := capture(t.Context(), server.Listener.Addr().String(), "", []question{{operation: "best", path: "/"}})
	if err == nil || !strings.Contains(err.Error(), "ask for best: want an answer 200, found 404") {
		t.Error(err)
	}
}
