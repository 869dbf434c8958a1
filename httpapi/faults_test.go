//go:build faults

package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/internal/counters"
)

const million = 1_000_000

// TestFaultsO7_Mutations spoils good requests at random, cuts them anywhere, and judges every byte of the answers. A
// crash or a hang ends the test itself.
func TestFaultsO7_Mutations(t *testing.T) {
	if _, answers := checkExpress(t, million, newSpoiltCase); answers < million/2 {
		t.Errorf("%d answers to %d mutants", answers, million)
	}
}

// TestFaultsO7_Control plants what the run above is there for; each must be found.
func TestFaultsO7_Control(t *testing.T) {
	for name, wrong := range map[string]fasthttp.RequestHandler{
		"5xx":   func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(fasthttp.StatusBadGateway) },
		"body":  func(ctx *fasthttp.RequestCtx) { ctx.Response.SetBodyString("oops") },
		"no id": func(ctx *fasthttp.RequestCtx) { ctx.Response.Header.Del(headerRequestID) },
	} {
		w, found := newTwoWays(t, false), false
		w.around(func(ctx *fasthttp.RequestCtx, next fasthttp.RequestHandler) {
			if next(ctx); bytes.IndexByte(ctx.RequestURI(), '%') >= 0 {
				wrong(ctx)
			}
		})
		for number := uint64(0); number < 4000 && !found; number++ {
			w.play(t, newSpoiltCase(1, number), nil)
			found = framingProblem(w.out, w.methods) != ""
		}
		if !found {
			t.Errorf("%s is not found", name)
		}
	}
}

// TestFaultsF1_ExpressSameAnswers plays a million requests past the express path and through it: ten minutes.
func TestFaultsF1_ExpressSameAnswers(t *testing.T) { checkExpress(t, million, newExpressCase) }

const (
	proxyShards = 4
	// proxyQuiet is how long nothing must come for a connection to have been answered.
	proxyQuiet  = 120 * time.Millisecond
	unreadWord  = "unread"
	proxyAnswer = "/behind/"
)

// proxyBackend is what the node behind a proxy saw: the method of each request, or unreadWord. A request that is in the
// access log and that the handler did not see was answered by the express path.
type proxyBackend struct {
	mu     sync.Mutex
	seen   []string
	logged map[string]int // requests in the access log that the handler did not see, by method
}

func (b *proxyBackend) note(method string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = append(b.seen, method)
}

func (b *proxyBackend) log(method string, count int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logged[method] += count
}

func (b *proxyBackend) list() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Clone(b.seen)
	for method, count := range b.logged {
		all = append(all, slices.Repeat([]string{method}, max(count, 0))...)
	}
	return all
}

func (b *proxyBackend) since(before []string) []string {
	all := b.list()
	for _, method := range before {
		if at := slices.Index(all, method); at >= 0 {
			all = slices.Delete(all, at, at+1)
		}
	}
	return all
}

// startProxyBackend serves as the corpus is played against, and notes what it sees.
func startProxyBackend(t *testing.T) (address string, b *proxyBackend) {
	t.Helper()
	b = &proxyBackend{logged: map[string]int{}}
	f := rawFixture(t, nil)
	handler, unread := f.server.http.Handler, f.server.http.ErrorHandler
	f.server.config.AccessLog = func(r AccessRecord) { b.log(r.Method, 1) }
	f.server.http.Handler = func(ctx *fasthttp.RequestCtx) {
		b.note(string(ctx.Method()))
		handler(ctx)
		b.log(counters.MethodLabel(ctx.Method()), -1)
	}
	f.server.http.ErrorHandler = func(ctx *fasthttp.RequestCtx, err error) {
		b.note(unreadWord)
		if unread(ctx, err); len(ctx.Response.Body()) > 0 { // else the connection is closed without a response
			b.log(counters.MethodLabel(ctx.Method()), -1)
		}
	}
	return serveFixture(t, f).address, b
}

// proxyResults is what came of the cases that the proxies of a kind were sent: how many of what.
type proxyResults struct {
	mu     sync.Mutex
	counts map[string]int
}

func (p *proxyResults) count(what string, many int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[what] += many
}

// TestFaultsO6_BehindProxies plays the corpus through nginx and haproxy, whose connections to the node are shared
// by all clients: the node sees as many requests as the proxy sent, and of the same methods, and behind each case
// another client's request gets its own answer. The cases are shared out to several proxies, each with a back of
// its own.
func TestFaultsO6_BehindProxies(t *testing.T) {
	cases := must(readRawCorpus())
	for _, kind := range proxyKinds() {
		t.Run(kind.name, func(t *testing.T) {
			total := &proxyResults{counts: map[string]int{}}
			var playing sync.WaitGroup
			for shard := range proxyShards {
				address, b := startProxyBackend(t)
				p := startProxy(t, kind, address)
				playing.Go(func() {
					for i := shard; i < len(cases); i += proxyShards {
						playProxied(t, p, b, cases[i], i, total.count)
					}
				})
			}
			playing.Wait()
			t.Logf("FIGURE %s: %v", kind.name, total.counts)
			n := total.counts
			if n["cases"] < 200 || n["requests sent whole"] < n["cases"] || n["refused by the node"] == 0 || n["refused by the proxy"] == 0 {
				t.Errorf("too little was played: %v", n)
			}
		})
	}
}

// playProxied sends one case and, behind it, a request of another client, and compares what both sides counted.
func playProxied(t *testing.T, p *proxy, b *proxyBackend, c rawCase, number int, count func(string, int)) {
	wrong := func(format string, args ...any) { t.Errorf("%s, %s: %s", p.name, c.Name, fmt.Sprintf(format, args...)) }
	frontBefore, loggedBefore := p.seen(t)
	backBefore := b.list()
	answers, err := askProxy(p.socket, c)
	switch {
	case errors.Is(err, errOtherProtocol) && speaksOtherProtocol(c):
		count("in another protocol", 1)
	case err != nil:
		wrong("%v", err)
	}
	target := proxyAnswer + strconv.Itoa(number)
	other, err := askProxy(p.socket, rawCase{Request: rawText("GET " + target + " HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n"), Connection: "close"})
	if err != nil || len(other) != 1 || other[0].target != target {
		wrong("another client's request for %s is answered %+v, %v", target, other, err)
	}
	front, logged, seen := p.settled(t, b, frontBefore, backBefore)
	if !sameRequests(front, seen) {
		wrong("the proxy sent %+v, the node saw %v", front, seen)
	}
	if len(answers) > logged-loggedBefore-1 {
		wrong("%d answers to %d requests", len(answers), logged-loggedBefore-1)
	}
	for what, many := range map[string]int{
		"cases": 1, "requests sent whole": len(front.whole), "broken off": len(front.broken), "seen": len(seen), "answers": len(answers) + len(other),
	} {
		count(what, many)
	}
	for i, a := range answers {
		switch ours := a.code != "" || a.target != ""; {
		case a.status >= 500 && ours && a.code != "not_implemented": // a chunked body
			wrong("an answer of the node is %d", a.status)
		case a.status >= 400 && ours:
			count("refused by the node", 1)
		case a.status >= 400:
			count("refused by the proxy", 1)
		case i == 0 && c.mustRefuse():
			count("made good by the proxy", 1)
		}
	}
}

// settled waits until both sides have counted the same, or for as long as it is reasonable.
func (p *proxy) settled(t *testing.T, b *proxyBackend, frontBefore sent, backBefore []string) (front sent, logged int, seen []string) {
	for deadline := after(3 * time.Second); ; {
		all, logged := p.seen(t)
		front, seen = all.since(frontBefore), b.since(backBefore)
		if len(front.whole) > 0 && sameRequests(front, seen) || bubbleNow().After(deadline) {
			return front, logged, seen
		}
		bubbleSleep(2 * time.Millisecond)
	}
}

// sameRequests compares methods as multisets: a proxy logs at the end of an answer. A request that the node
// could not read may have any method. Each request that the proxy sent whole is counted by the node, and the other way
// round. The node need not count a request that was broken off, because it did no work for it.
func sameRequests(front sent, seen []string) bool {
	whole, broken := slices.Clone(front.whole), slices.Clone(front.broken)
	unread := 0
	for _, method := range seen {
		if method == unreadWord {
			unread++
		} else if at := slices.Index(whole, method); at >= 0 {
			whole = slices.Delete(whole, at, at+1)
		} else if at := slices.Index(broken, method); at >= 0 {
			broken = slices.Delete(broken, at, at+1)
		} else {
			return false
		}
	}
	return len(whole) <= unread && unread <= len(whole)+len(broken)
}

var errOtherProtocol = errors.New("this is another protocol")

// speaksOtherProtocol: to these a proxy may answer by HTTP/0.9 or HTTP/2, which it ends itself.
func speaksOtherProtocol(c rawCase) bool {
	return strings.HasPrefix(c.Name, "request-line/http09") || strings.HasPrefix(c.Name, "request-line/h2") || c.Name == "pipeline/preface-good"
}

// askProxy plays a case over a connection of its own, then the probe, and gives all answers but the probe's.
func askProxy(socket string, c rawCase) ([]rawAnswer, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	defer conn.Close()
	_, _ = conn.Write(c.Request)
	if c.EOF {
		_ = conn.(*net.UnixConn).CloseWrite()
	}
	var got bytes.Buffer
	quiet := proxyQuiet
	if len(c.Category) == 0 || c.EOF {
		quiet = proxyPatience // it ends by itself
	}
	if !readUntilQuiet(conn, &got, quiet) && !c.EOF {
		_, _ = io.WriteString(conn, rawProbe)
		_ = readUntilQuiet(conn, &got, 4*time.Second)
	}
	if got.Len() > 0 && !bytes.HasPrefix(got.Bytes(), []byte("HTTP/1.")) {
		return nil, fmt.Errorf("%w: %.40q", errOtherProtocol, got.Bytes())
	}
	return c.readAll(bufio.NewReader(&got), nil)
}

func readUntilQuiet(conn net.Conn, got *bytes.Buffer, quiet time.Duration) bool {
	buffer := make([]byte, 4096)
	for {
		_ = conn.SetReadDeadline(after(quiet))
		n, err := conn.Read(buffer)
		got.Write(buffer[:n])
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return false
		}
		if err != nil {
			return true
		}
	}
}

// proxyKind is a program that stands in front of a node. Its log has a line for each request: where it went, how
// that ended, the method.
type proxyKind struct {
	name, program string
	config        func(dir, socket, back string) string
	args          func(dir string) []string
	// fate reads the first two words of a line: whether anything went to the back, and whether the proxy, or the
	// client, broke off then.
	fate func(where, end string) (sent, brokenOff bool)
}

// proxyKinds keep their connections to the back and share them among clients, and pass bodies on as they come: what
// a smuggler hopes for.
func proxyKinds() []proxyKind {
	return []proxyKind{
		{
			name: "nginx", program: "nginx",
			config: func(dir, socket, back string) string {
				return fmt.Sprintf(`daemon off;
master_process off;
user root;
pid %[1]s/pid;
error_log %[1]s/errors;
events { worker_connections 256; }
http {
	log_format front "$upstream_bytes_sent $upstream_status $request_method";
	access_log %[1]s/log front;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxied;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	upstream back { server %[3]s; keepalive 4; }
	server {
		listen unix:%[2]s;
		location / {
			proxy_pass http://back;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header Host $http_host;
			proxy_request_buffering off;
			proxy_next_upstream off;
			client_body_timeout 2s;
		}
	}
}
`, dir, socket, back)
			},
			args: func(dir string) []string {
				return []string{"-p", dir, "-c", filepath.Join(dir, "config"), "-e", filepath.Join(dir, "errors")}
			},
			fate: func(bytes, status string) (sent, brokenOff bool) { return bytes != "-" && bytes != "0", status == "-" },
		},
		{
			name: "haproxy", program: "haproxy",
			config: func(_, socket, back string) string {
				return fmt.Sprintf(`global
	log stdout format raw local0
	maxconn 256
defaults
	mode http
	log global
	log-format "%%s %%ts %%HM"
	timeout connect 2s
	timeout client 2s
	timeout server 2s
	retries 0
	http-reuse always
frontend front
	bind unix@%s
	default_backend back
backend back
	server back %s
`, socket, back)
			},
			args: func(dir string) []string { return []string{"-db", "-f", filepath.Join(dir, "config")} },
			fate: func(server, end string) (sent, brokenOff bool) {
				return server == "back", strings.ContainsAny(end[:1], "CP")
			},
		},
	}
}

type proxy struct {
	proxyKind
	socket, log string
}

// proxyPatience bounds the wait for a proxy to start, to end, or to have written its log.
const proxyPatience = 10 * time.Second

// startProxy runs a proxy in front of back, in a directory of its own, until the test ends.
func startProxy(t *testing.T, kind proxyKind, back string) *proxy {
	t.Helper()
	if _, err := exec.LookPath(kind.program); err != nil {
		t.Skipf("NEEDS %s: apt-get install nginx-light haproxy", kind.program)
	}
	dir := must(os.MkdirTemp("", "front")) // the path of a socket must be short
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &proxy{kind, filepath.Join(dir, "front.sock"), filepath.Join(dir, "log")}
	ok(t, os.WriteFile(filepath.Join(dir, "config"), []byte(kind.config(dir, p.socket, back)), 0o600))
	log := must(os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))
	t.Cleanup(func() { _ = log.Close() })
	var complaints bytes.Buffer
	command := exec.Command(kind.program, kind.args(dir)...)
	command.Stdout, command.Stderr = log, &complaints
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	ok(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		timer := time.AfterFunc(proxyPatience, func() { _ = command.Process.Kill() })
		defer timer.Stop()
		_ = command.Wait()
	})
	for deadline := after(proxyPatience); ; bubbleSleep(time.Millisecond) {
		if conn, err := net.Dial("unix", p.socket); err == nil {
			_ = conn.Close()
			return p
		}
		if bubbleNow().After(deadline) {
			errors, _ := os.ReadFile(filepath.Join(dir, "errors"))
			t.Fatalf("%s does not start: %s%s", kind.name, complaints.String(), errors)
		}
	}
}

// present is what a proxy says that it has sent to the back: the methods of requests that were answered, and of
// those that broke off.
type sent struct{ whole, broken []string }

func (s sent) since(before sent) sent {
	return sent{s.whole[len(before.whole):], s.broken[len(before.broken):]}
}

// seen reads the log; logged counts every request in it, also those that went nowhere.
func (p *proxy) seen(t *testing.T) (all sent, logged int) {
	t.Helper()
	file := must(os.Open(p.log))
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Split(lines.Text(), " ")
		if len(words) != 3 {
			continue // what a program says when it starts
		}
		logged++
		method := strings.ReplaceAll(words[2], "#23", "#") // as haproxy writes it
		switch sent, broken := p.fate(words[0], words[1]); {
		case sent && broken:
			all.broken = append(all.broken, method)
		case sent:
			all.whole = append(all.whole, method)
		}
	}
	ok(t, lines.Err())
	return all, logged
}

// Limits of the timing tests (reliability S3, S4).
const (
	welchMax = 4.5
	// plantedDelay is the smallest difference that a test must see to count.
	plantedDelay = 5 * time.Microsecond
	// timingCrop is the share of samples that is kept: the slowest were held up by something else.
	timingCrop = 0.8
)

// timingPair is two kinds of requests of the same length. The duration of an answer must not reveal the kind.
type timingPair struct {
	name string
	a, b func(i int) exchange
}

// The code of a refusal is in the answer (decision E1), so only keys with the same refusal are compared.
func timingPairs() []timingPair {
	codes := func(name string) func(int) exchange {
		return func(i int) exchange {
			return exchange{method: "POST", target: codesPath, lines: []string{jsonLine}, body: fmt.Sprintf(`{"email":"%s%02d@example.do"}`, name, i%timingKnown)}
		}
	}
	sessions := func(name string) func(int) exchange {
		return func(i int) exchange {
			return exchange{method: "POST", target: sessionsPath, lines: []string{jsonLine},
				body: fmt.Sprintf(`{"email":"%s%02d@example.do","code":"%08d"}`, name, i%timingKnown, i%1000)}
		}
	}
	keys := func(number func(int) int, target string) func(int) exchange {
		return func(i int) exchange {
			return exchange{method: "GET", target: target, lines: []string{bearer(testKey(number(i % timingKnown)))}}
		}
	}
	return []timingPair{
		{"S3 codes: known and unknown", codes("known"), codes("other")},
		{"S3 sessions: known and unknown", sessions("known"), sessions("other")},
		{"S4 keys: nearly a known one and unknown", keys(nearKeys, "/v1/currencies"), keys(farKeys, "/v1/currencies")},
		{"S4 usage: nearly a known one and unknown", keys(nearKeys, usagePath), keys(farKeys, usagePath)},
	}
}

// timingKnown is how many addresses and keys there are of a kind.
const timingKnown = 100

// The numbers of keys: known ones, unknown ones that share all but their end with those, and unknown ones that
// share nothing.
func knownKeys(i int) int { return int(mix(uint64(i)) % 1e18) }
func nearKeys(i int) int  { return knownKeys(i)/10*10 + (knownKeys(i)+1)%10 }
func farKeys(i int) int   { return knownKeys(i + timingKnown) }

// refusingAccounts refuses all requests alike; work, when set, is a planted difference.
type refusingAccounts struct {
	*fakeAccounts
	work func(known bool)
}

func (e *refusingAccounts) RequestCode(to account.Email, _ account.Requester) error {
	if e.work != nil {
		e.work(to.String()[0] == 'k')
	}
	return nil
}

func (e *refusingAccounts) OpenSession(of account.Email, _ string, from account.Requester) (account.Secret, time.Time, error) {
	_ = e.RequestCode(of, from)
	return account.Secret{}, time.Time{}, fault(engine.CodeInvalidCode, "The code is not valid.", 0)
}

func (e *refusingAccounts) KeyUsage(account.Digest) (account.QuotaResult, error) {
	return account.QuotaResult{}, fault(engine.CodeInvalidKey, "The key is not valid.", 0)
}

type refusingAdmitter struct{ *fakeAdmitter }

func (g refusingAdmitter) Admit(account.Caller) (account.Admission, error) {
	return account.Admission{}, fault(engine.CodeInvalidKey, "The key is not valid.", 0)
}

// stopwatch sends requests one after the other, over one connection as long as the answers leave it open.
type stopwatch struct {
	dial   func() (net.Conn, *bufio.Reader)
	conn   net.Conn
	wire   *bufio.Reader
	room   []byte
	closes bool // the answers of the pair end their connection
}

func (w *stopwatch) connect() {
	if w.conn != nil {
		_ = w.conn.Close()
	}
	w.conn, w.wire = w.dial()
}

// length is how long the answer to a request is, with its headers.
func (w *stopwatch) length(t *testing.T, e exchange) int {
	t.Helper()
	w.connect()
	var copied bytes.Buffer
	must(w.conn.Write(e.bytes()))
	w.closes = parseAnswer(t, bufio.NewReaderSize(io.TeeReader(w.wire, &copied), 1), e.method).closes
	return copied.Len()
}

func (w *stopwatch) time(t *testing.T, request []byte, length int) float64 {
	t.Helper()
	if w.closes {
		w.connect()
	}
	begin := bubbleNow()
	must(w.conn.Write(request))
	must(io.ReadFull(w.wire, w.room[:length]))
	return float64(bubbleNow().Sub(begin))
}

// compare times a pair, in an order of chance, and gives Welch's t over what the crop leaves.
func (w *stopwatch) compare(t *testing.T, pair timingPair, samples int, chance *rand.Rand) float64 {
	t.Helper()
	length := w.length(t, pair.a(0))
	if other := w.length(t, pair.b(0)); other != length {
		t.Fatalf("%s: answers of %d and %d bytes", pair.name, length, other)
	}
	var times [2][]float64
	for i := range samples {
		requests := [2][]byte{pair.a(i).bytes(), pair.b(i).bytes()}
		first := chance.IntN(2)
		for _, which := range []int{first, 1 - first} {
			times[which] = append(times[which], w.time(t, requests[which], length))
		}
	}
	pooled := slices.Sorted(slices.Values(slices.Concat(times[0], times[1])))
	limit := pooled[int(timingCrop*float64(len(pooled)-1))]
	return welch(crop(times[0], limit), crop(times[1], limit))
}

func crop(times []float64, limit float64) (kept []float64) {
	for _, d := range times {
		if d <= limit {
			kept = append(kept, d)
		}
	}
	return kept
}

func welch(a, b []float64) float64 {
	meanA, errorA := meanAndError(a)
	meanB, errorB := meanAndError(b)
	return (meanA - meanB) / math.Sqrt(errorA+errorB)
}

// meanAndError is the mean and the square of its standard error.
func meanAndError(times []float64) (mean, squared float64) {
	for _, d := range times {
		mean += d
	}
	mean /= float64(len(times))
	for _, d := range times {
		squared += (d - mean) * (d - mean)
	}
	n := float64(len(times))
	return mean, squared / (n - 1) / n
}

func spin(d time.Duration) {
	for begin := bubbleNow(); bubbleNow().Sub(begin) < d; {
	}
}

// playTiming first looks for the planted difference, with more samples until it sees it, then holds the pairs to
// the limit.
func playTiming(t *testing.T, least, most int) {
	t.Helper()
	accounts := &refusingAccounts{fakeAccounts: newFakeAccounts(fakeNow)}
	s := serve(t, func(c *Config) {
		admitter := newFakeAdmitter(c.Clock)
		admitter.transition = keysRequiredIn(-time.Hour)
		c.Admitter, c.Accounts = refusingAdmitter{admitter}, accounts
	})
	w := &stopwatch{room: make([]byte, 1<<16), dial: func() (net.Conn, *bufio.Reader) {
		conn, err := net.Dial("tcp", s.address)
		ok(t, err)
		return conn, bufio.NewReaderSize(conn, 1<<16)
	}}
	defer func() { _ = w.conn.Close() }()
	chance := rand.New(rand.NewPCG(1, 2))
	pairs := timingPairs()
	samples := least
	for ; ; samples *= 2 {
		if samples > most {
			t.Fatalf("a difference of %v is not seen with %d samples", plantedDelay, samples/2)
		}
		accounts.work = func(known bool) {
			if known {
				spin(plantedDelay)
			}
		}
		if seen := w.compare(t, pairs[0], samples, chance); seen > welchMax {
			t.Logf("control: a difference of %v gives t = %.1f with %d samples", plantedDelay, seen, samples)
			break
		}
	}
	accounts.work = nil
	for _, pair := range pairs {
		seen := w.compare(t, pair, samples, chance)
		t.Logf("%s: t = %.2f with %d samples", pair.name, seen, samples)
		if math.Abs(seen) > welchMax {
			t.Errorf("%s: t = %.2f, at most %.1f", pair.name, seen, welchMax)
		}
	}
}

// TestFaultsS3_S4_Timing: the time of an answer does not depend on whether an account or a key is there.
func TestFaultsS3_S4_Timing(t *testing.T) { playTiming(t, 100_000, 400_000) }
