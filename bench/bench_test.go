//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// TestNode builds the real program once, measures goals with it in rounds too short to mean anything, compares a bare
// server with a node, and puts a load on the node.
func TestNode(t *testing.T) {
	program := buildNode(t)
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
		if err != nil || !slices.Equal(sortedLines(bareRaw), sortedLines(raw)) {
			t.Errorf("%s: %v, another answer than the node's:\n%.900s\n\nthe node:\n%.900s", path, err, bareRaw, raw)
		}
		if err := bare.stop(); err != nil {
			t.Error(err)
		}
	}
}

// sortedLines returns the lines of a response in order, without its date.
func sortedLines(raw []byte) []string {
	undated := regexp.MustCompile(`\r\nDate: [^\r]*`).ReplaceAllString(string(raw), "")
	return slices.Sorted(strings.SplitSeq(undated, "\r\n"))
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

// buildNode builds the node with further arguments of go build.
func buildNode(t *testing.T, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tasard")
	if output, err := exec.Command("go", append(append([]string{"build", "-ldflags=-s -w", "-o", path}, args...), "..")...).CombinedOutput(); err != nil {
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

// newTestLoad returns a load that lasts a fifth of a second.
func newTestLoad(address string, connections int, rate float64) *generator {
	return &generator{
		Address: address, Requests: newMix("x", nil, []requestTemplate{{path: "/"}}), Connections: connections, Rate: rate, Warmup: 20 * time.Millisecond,
		Measure: 200 * time.Millisecond,
	}
}

// TestLoad_Counts checks that every response counts once, whatever its status and length and whether its connection
// persists; at a rate as many as the rate says.
func TestLoad_Counts(t *testing.T) {
	replies := []string{plainReply, "HTTP/1.1 429 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", okHead + "Content-Length: 100000\r\n\r\n" + strings.Repeat("b", 100_000)}
	server := serve(t, func(conn net.Conn) {
		for n, buffer := 0, make([]byte, 1024); readRequest(conn, buffer); n++ {
			if _, err := io.WriteString(conn, replies[[]int{0, 2, 1}[n%3]]); err != nil || n%3 == 2 {
				return
			}
		}
	})
	for _, rate := range []float64{0, 1000} {
		for _, fresh := range []bool{false, true} {
			g := newTestLoad(server.Addr().String(), 4, rate)
			g.Reconnects = fresh
			noError(t, g.run(t.Context()))
			ok, closed := g.Statuses[200], g.Statuses[429]
			if g.Responses == 0 || g.Lost != 0 || ok+closed != g.Responses || g.Latency.TotalCount() != int64(ok) || fresh != (closed == 0) || g.Intended != g.Responses {
				t.Errorf("rate %v, fresh %v: %+v", rate, fresh, g.results)
			}
			if rate > 0 && (g.Responses < 199 || g.Responses > 201) {
				t.Errorf("rate %v, fresh %v: %d answers, want 200", rate, fresh, g.Responses)
			}
			if g.Elapsed < g.Measure || g.CPU <= 0 {
				t.Errorf("rate %v: the generator used %v in %v", rate, g.CPU, g.Elapsed)
			}
		}
	}
}

// TestLoad_NoCoordinatedOmission checks that at a rate a server that stops for a while is charged for every request
// due meanwhile: about half of the stop each. Without a rate the same stop costs one request.
func TestLoad_NoCoordinatedOmission(t *testing.T) {
	const stop = 100 * time.Millisecond
	for _, tt := range []struct {
		rate        float64
		least, most int // answers that took longer than half of the stop
	}{{1000, 30, 200}, {0, 1, 1}} {
		server := serve(t, func(conn net.Conn) {
			for n, buffer := 0, make([]byte, 1024); readRequest(conn, buffer); n++ {
				if n == 50 {
					<-time.NewTimer(stop).C
				}
				if _, err := io.WriteString(conn, plainReply); err != nil {
					return
				}
			}
		})
		g := newTestLoad(server.Addr().String(), 1, tt.rate)
		g.Warmup = 0
		noError(t, g.run(t.Context()))
		late := 0
		for _, bar := range g.Latency.Distribution() {
			if bar.From > int64(stop)/2 {
				late += int(bar.Count)
			}
		}
		if late < tt.least || tt.rate > 0 && late > tt.most || g.Lost > 0 {
			t.Errorf("%+v: %d of %d answers took long, %d lost", tt, late, g.Responses, g.Lost)
		}
	}
}

// TestLoad_WarmUpIsNotCounted checks that requests sent before the measured time do not count, even if they are
// answered within it, and that reading counters at its beginning is charged to no request and skips none.
func TestLoad_WarmUpIsNotCounted(t *testing.T) {
	for _, rate := range []float64{0, 1000} {
		gate := make(chan struct{})
		server := serve(t, func(conn net.Conn) {
			if readRequest(conn, make([]byte, 1024)) {
				<-gate
				_, _ = io.WriteString(conn, plainReply)
				answering(plainReply)(conn)
			}
		})
		g := newTestLoad(server.Addr().String(), 4, rate)
		open := sync.OnceFunc(func() {
			<-time.NewTimer(50 * time.Millisecond).C
			close(gate)
		})
		g.OnMeasure = func() error { open(); return nil }
		noError(t, g.run(t.Context()))
		if early := g.Requests.sent - g.Intended; early < 4 || rate == 0 && early != 4 {
			t.Errorf("rate %v: %d requests are not counted, want those of 4 connections", rate, early)
		}
		if rate > 0 && (g.Intended < 199 || g.Intended > 201) {
			t.Errorf("rate %v: %d requests, want 200", rate, g.Intended)
		}
	}
}

// TestLoad_Ends checks that a load ends when its target is gone or never answers, with its context, and with an error
// of a hook.
func TestLoad_Ends(t *testing.T) {
	planted := errors.New("planted")
	good := serve(t, answering(plainReply)).Addr().String()
	hangsUp := serve(t, func(conn net.Conn) { readRequest(conn, make([]byte, 1024)) }).Addr().String()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	gone.Close()
	for name, tt := range map[string]struct {
		address string
		spoil   func(*generator, context.CancelFunc)
		want    error
		says    string
	}{
		"never there": {gone.Addr().String(), nil, errTargetGone, "refused"},
		"hangs up":    {hangsUp, nil, errTargetGone, "in a row"},
		"answers nothing": {serve(t, silent).Addr().String(), func(g *generator, _ context.CancelFunc) {
			g.Measure, g.Drain = 50*time.Millisecond, 50*time.Millisecond
		}, errNoResponse, ""},
		"ends": {good, func(g *generator, _ context.CancelFunc) {
			g.Measure = 10 * time.Millisecond
			calls := 0
			g.OnMeasure = func() error {
				if calls++; calls == 2 {
					return planted
				}
				return nil
			}
		}, planted, ""},
		"context": {good, func(g *generator, cancel context.CancelFunc) {
			g.OnMeasure = func() error { cancel(); return nil }
		}, context.Canceled, ""},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		g := newTestLoad(tt.address, 2, 0)
		g.Measure = time.Hour
		if tt.spoil != nil {
			tt.spoil(g, cancel)
		}
		if err := g.run(ctx); err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), tt.address) {
			t.Errorf("%s: error %v, want %v with %q and the address", name, err, tt.want, tt.says)
		}
		cancel()
	}
}

// misbehaviours are ways in which a server may treat a request besides answering it; the result says whether it goes
// on.
func misbehaviours() []func(net.Conn) (goesOn bool) {
	say := func(goesOn bool, text string) func(net.Conn) bool {
		return func(conn net.Conn) bool {
			_, err := io.WriteString(conn, text)
			return err == nil && goesOn
		}
	}
	return []func(net.Conn) bool{
		say(false, ""), say(false, plainReply[:20]), say(false, plainReply[:len(plainReply)-1]), say(false, plainReply),
		say(true, "SSH-2.0-x\r\n\r\n"), say(true, plainReply+plainReply), say(true, okHead+"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
		say(true, okHead+"Connection: close\r\nContent-Length: 1\r\n\r\nx"),
		func(conn net.Conn) bool { return conn.(*net.TCPConn).SetLinger(0) != nil }, // then the connection is reset
		func(conn net.Conn) bool { silent(conn); return false },
	}
}

// TestLoad_NothingIsForgotten checks that whatever the target does, every sent request is answered or lost, and at a
// rate every intended request is sent or lost.
func TestLoad_NothingIsForgotten(t *testing.T) {
	behaviours := misbehaviours()
	seeds := uint64(30)
	if os.Getenv("SWEEP") == "whole" { // as make check does
		seeds = 300
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 0))
		share, connections, rate := 1+random.IntN(50), 1+random.IntN(8), []float64{0, 1000, 20_000}[seed%3]
		var each atomic.Uint64
		server := serve(t, func(conn net.Conn) {
			random := rand.New(rand.NewPCG(seed, each.Add(1)))
			for buffer := make([]byte, 1024); readRequest(conn, buffer); {
				if random.IntN(100) < share {
					if !behaviours[random.IntN(len(behaviours))](conn) {
						return
					}
				} else if _, err := io.WriteString(conn, plainReply); err != nil {
					return
				}
			}
		})
		g := newTestLoad(server.Addr().String(), connections, rate)
		g.Measure, g.Drain, g.Warmup = 15*time.Millisecond, 10*time.Millisecond, time.Duration(seed/3%2)*5*time.Millisecond
		g.Reconnects = seed%7 == 0
		err := g.run(t.Context())
		if errors.Is(err, errTargetGone) || errors.Is(err, errNoResponse) { // only misbehaviours were drawn
			continue
		}
		inTime := int(rate * g.Measure.Seconds())
		if err != nil || g.Responses+g.Lost != g.Intended || g.Latency.TotalCount() != int64(g.Responses) || rate > 0 && (g.Intended > inTime+1 || g.Intended+1 < inTime) {
			t.Errorf("seed %d, %d %% of misbehaviour, %d connections, rate %v: %v, %+v", seed, share, connections, rate, err, g.results)
		}
	}
}

const okHead = "HTTP/1.1 200 OK\r\n"

const plainReply = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

// serve runs a conversation on each connection, in its own goroutine, which ends with the connection.
func serve(t testing.TB, conversation func(net.Conn)) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				conversation(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	return listener
}

// readRequest reads a request of newTestLoad: a single read, because it is one short write.
func readRequest(conn net.Conn, buffer []byte) bool {
	n, err := conn.Read(buffer)
	return err == nil && n > 0
}

// answering returns a conversation that sends the same response to each request.
func answering(reply string) func(net.Conn) {
	return func(conn net.Conn) {
		for buffer, reply := make([]byte, 1024), []byte(reply); readRequest(conn, buffer); {
			if _, err := conn.Write(reply); err != nil {
				return
			}
		}
	}
}

// silent is a conversation without responses.
func silent(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// stream returns the first n requests as sent on the wire.
func stream(m *mix, seed uint64, n int) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	var all []byte
	for range n {
		all = m.Next(all, random)
	}
	return all
}

// TestMix_Requests checks that net/http can read every request, with the host, one of the keys and its headers, as
// often as its weight says; that on demand every account sends one in turn; and that a proxied one has an address.
func TestMix_Requests(t *testing.T) {
	const n, host = 20_000, "node.example:8080"
	keys, questions := []string{"k-1", "k-2", "k-3"}, mixes()[mixAll]
	m := newMix(host, keys, questions)
	reader, counts, traces := bufio.NewReader(bytes.NewReader(stream(m, 1, n))), map[string]int{}, map[string]bool{}
	for i := range n {
		request, err := http.ReadRequest(reader)
		if err != nil || request.Host != host || request.Method != http.MethodGet {
			t.Fatalf("request %d: %+v, %v", i, request, err)
		}
		path, _, _ := strings.Cut(request.RequestURI, "amount=")
		counts[path+request.Header.Get("Accept-Encoding")]++
		counts[request.Header.Get("Authorization")]++
		traces[request.Header.Get("Traceparent")] = true
	}
	wants := map[string]int{}
	for _, q := range questions {
		_, encoding, _ := strings.Cut(strings.TrimSpace(q.headers), ": ")
		wants[strings.TrimSuffix(q.path, "amount=")+encoding] = n * q.weight / 100
	}
	for _, key := range keys {
		wants["Bearer "+key] = n / len(keys)
	}
	for what, want := range wants {
		if got := counts[what]; got < want-want/5-40 || got > want+want/5+40 {
			t.Errorf("%s: %d times, want about %d", what, got, want)
		}
	}
	if len(counts) != len(wants) || len(traces) < n-10 {
		t.Errorf("%v, want %v; %d trace IDs", counts, wants, len(traces))
	}
	m = newMix("x", []string{"a", "b"}, mixes()[mixProxied])
	m.inTurn = true
	text := string(stream(m, 1, 3))
	if strings.Count(text, "Bearer a\r\n\r\n") != 2 || strings.Count(text, "Bearer b\r\n\r\n") != 1 || strings.Count(text, "\r\nX-Forwarded-For: 203.0.113.") != 3 {
		t.Error(text)
	}
}

// TestStartProcess checks that a process has one core, and no settings of the caller's environment.
func TestStartProcess(t *testing.T) {
	for _, name := range []string{"TASARD_DATA", "GOGC", "PGDATA"} {
		t.Setenv(name, "1")
	}
	var before, after unix.CPUSet
	runtime.LockOSThread() // the thread that starts the process
	defer runtime.UnlockOSThread()
	noError(t, unix.SchedGetaffinity(0, &before))
	core := 0
	for !before.IsSet(core) {
		core++
	}
	script := "grep Cpus_allowed_list /proc/self/status; echo GOMAXPROCS $GOMAXPROCS$TASARD_DATA$GOGC$PGDATA >&2; exit 7"
	p, err := startProcess("script", core, "/bin/sh", "-c", script)
	noError(t, err)
	said := fmt.Sprint(p.awaitExit(t.Context())) // with the output
	if !strings.Contains(said, "exit status 7") || !strings.Contains(said, "\nGOMAXPROCS 1\n") || !strings.Contains(said, fmt.Sprintf("Cpus_allowed_list:\t%d\n", core)) {
		t.Errorf("on core %d: %s", core, said)
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != before {
		t.Errorf("the bench had the cores %v and has %v: %v", before, after, err)
	}
}
