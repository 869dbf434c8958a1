package httpapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
)

// TestMain wants every goroutine ended but two of the library: the Date header's, and one that sees the end after
// ten seconds.
func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite the golden files")
	flag.Parse()
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// sampledOrWhole returns whole when SWEEP=whole asks for complete sweeps, as make check does, and sample otherwise.
func sampledOrWhole(sample, whole int) int {
	if os.Getenv("SWEEP") == "whole" {
		return whole
	}
	return sample
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Tests have no clock of their own but this: bubbleNow and bubbleSleep are the doors to the time of a bubble, which
// costs none.
func bubbleNow() time.Time { return time.Now() } //nolint:forbidigo // see above

func bubbleSleep(d time.Duration) { <-time.NewTimer(d).C }

func networkDeadline() time.Time { return time.Now().Add(time.Minute) } //nolint:forbidigo // a network deadline is real time

func after(d time.Duration) time.Time { return bubbleNow().Add(d) }

func eventually(t testing.TB, done func() bool) {
	t.Helper()
	look, late := time.NewTicker(time.Millisecond), time.NewTimer(time.Minute)
	defer look.Stop()
	defer late.Stop()
	for !done() {
		select {
		case <-look.C:
		case <-late.C:
			t.Fatal("it never came")
		}
	}
}

func countingIDs() func() RequestID {
	var number atomic.Uint64
	return func() RequestID { return RequestID([]byte(fmt.Sprintf("%016d", number.Add(1)))) }
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept.Write(p)
}

func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept.String()
}

func logTo(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// fixture is a server over fakes with a clock that stands. It has an admitter and accounts unless it was made without.
type fixture struct {
	server   *Server
	service  *fakeService
	clock    *fakeClock
	admitter *fakeAdmitter
	accounts *fakeAccounts
}

// newFixture has neither an admitter nor accounts. change may alter the configuration; nil leaves it.
func newFixture(t testing.TB, change func(*Config)) *fixture {
	t.Helper()
	f := &fixture{service: newFakeService(), clock: newFakeClock(fakeNow())}
	config := Config{Service: f.service, Catalogue: f.service.catalogue, Clock: f.clock.now, RequestID: countingIDs()}
	if change != nil {
		change(&config)
	}
	f.admitter, _ = config.Admitter.(*fakeAdmitter)
	f.accounts, _ = config.Accounts.(*fakeAccounts)
	f.server = New(config)
	return f
}

// withLimits gives a configuration an admitter and accounts.
func withLimits(change func(*Config)) func(*Config) {
	return func(c *Config) {
		c.Admitter, c.Accounts = newFakeAdmitter(c.Clock), newFakeAccounts(c.Clock)
		c.KeysLink = "https://tasard.example/keys"
		if change != nil {
			change(c)
		}
	}
}

func newFixtureWithLimits(t testing.TB, change func(*Config)) *fixture {
	t.Helper()
	return newFixture(t, withLimits(change))
}

// exchange is a request with a body and a peer. The zero peer is peerDefault.
type exchange struct {
	method, target string
	lines          []string
	body           string
	peer           string
}

func (e exchange) bytes() []byte {
	text := e.method + " " + e.target + " HTTP/1.1\r\nHost: api.example.do\r\n"
	for _, line := range e.lines {
		text += line + "\r\n"
	}
	if e.body != "" {
		text += fmt.Sprintf("Content-Length: %d\r\n", len(e.body))
	}
	return []byte(text + "\r\n" + e.body)
}

func (f *fixture) send(t testing.TB, e exchange) answer {
	t.Helper()
	var ctx fasthttp.RequestCtx
	// The longest of these requests is longer than a server would read.
	wire := bufio.NewReaderSize(bytes.NewReader(e.bytes()), 1<<20)
	if err := ctx.Request.Header.Read(wire); err != nil {
		t.Fatalf("read %s %s: %v", e.method, e.target, err)
	}
	ctx.Request.SetBodyString(e.body)
	peer := e.peer
	if peer == "" {
		peer = peerDefault
	}
	ctx.SetRemoteAddr(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(peer), 40000)))
	f.server.serve(&ctx)
	return written(t, &ctx, e.method)
}

func (f *fixture) do(t testing.TB, method, target string, lines ...string) answer {
	t.Helper()
	return f.send(t, exchange{method: method, target: target, lines: lines})
}

func (f *fixture) get(t testing.TB, target string, lines ...string) answer {
	t.Helper()
	return f.do(t, http.MethodGet, target, lines...)
}

type answer struct {
	status int
	header http.Header
	body   []byte // as sent, perhaps compressed
	closes bool   // it announces the end of the connection
}

// written is the answer as it goes over the wire, read back by another library.
func written(t testing.TB, ctx *fasthttp.RequestCtx, method string) answer {
	t.Helper()
	ctx.Response.SkipBody = ctx.Response.SkipBody || method == http.MethodHead
	var wire bytes.Buffer
	out := bufio.NewWriter(&wire)
	ok(t, ctx.Response.Write(out))
	ok(t, out.Flush())
	return parseAnswer(t, bufio.NewReader(&wire), method)
}

func parseAnswer(t testing.TB, wire *bufio.Reader, method string) answer {
	t.Helper()
	response, err := http.ReadResponse(wire, &http.Request{Method: method})
	ok(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	ok(t, err)
	return answer{response.StatusCode, response.Header, body, response.Close}
}

func (a answer) plain(t testing.TB) []byte {
	t.Helper()
	if a.header.Get("Content-Encoding") != "gzip" {
		return a.body
	}
	unpacker, err := gzip.NewReader(bytes.NewReader(a.body))
	ok(t, err)
	plain, err := io.ReadAll(unpacker)
	ok(t, err)
	return plain
}

type errorBody struct {
	Error struct {
		Code      string
		Message   string
		RequestID string
		Details   []struct {
			Path    []any
			Message string
		}
	}
}

func (a answer) fault(t testing.TB) errorBody {
	t.Helper()
	var body errorBody
	decoder := json.NewDecoder(bytes.NewReader(a.plain(t)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil || body.Error.Code == "" || body.Error.Message == "" {
		t.Fatalf("the body of a %d is no error object: %v: %s", a.status, err, a.body)
	}
	return body
}

func (a answer) code(t testing.TB) string {
	t.Helper()
	if a.status < http.StatusBadRequest {
		return strconv.Itoa(a.status)
	}
	return fmt.Sprint(a.status, " ", a.fault(t).Error.Code)
}

// problems lists the details of a 400 as "path: message".
func (a answer) problems(t testing.TB) (found []string) {
	t.Helper()
	if a.status != http.StatusBadRequest {
		t.Fatalf("status %d, want 400: %s", a.status, a.body)
	}
	for _, d := range a.fault(t).Error.Details {
		found = append(found, fmt.Sprint(d.Path)+": "+d.Message)
	}
	return found
}

// paths are the paths of the problems, or the code where there are none.
func (a answer) paths(t testing.TB) string {
	t.Helper()
	fault := a.fault(t).Error
	if len(fault.Details) == 0 {
		return fault.Code
	}
	var paths []string
	for _, d := range fault.Details {
		paths = append(paths, fmt.Sprint(d.Path))
	}
	return strings.Join(paths, " ")
}

// limits is what the headers say: limit, remaining, reset. "" where there is none.
func (a answer) limits() string {
	get := a.header.Get
	return strings.TrimSpace(get("X-Ratelimit-Limit") + " " + get("X-Ratelimit-Remaining") + " " + get("X-Ratelimit-Reset"))
}

type listed struct {
	Data []map[string]any
	Meta struct {
		Total         int
		NextCursor    *int
		GeneratedAt   string
		QuoteCurrency string
	}
	Operation string
}

func (a answer) list(t testing.TB) listed {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	var body listed
	ok(t, json.Unmarshal(a.plain(t), &body))
	return body
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	return ln
}

func dial(t testing.TB, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	ok(t, err)
	t.Cleanup(func() { conn.Close() })
	ok(t, conn.SetDeadline(networkDeadline()))
	return conn
}

func write(t testing.TB, conn net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(conn, text)
	ok(t, err)
}

func request(target string) string { return "GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n" }

func askOn(t testing.TB, conn net.Conn, wire *bufio.Reader, target string) answer {
	t.Helper()
	write(t, conn, request(target))
	return parseAnswer(t, wire, http.MethodGet)
}

// serving is a server that listens on loopback, until the test ends.
type serving struct {
	*fixture
	address string
	served  chan error // what Serve returned; closed behind it
}

func serve(t testing.TB, change func(*Config)) *serving {
	t.Helper()
	return serveFixture(t, newFixture(t, change))
}

func serveFixture(t testing.TB, f *fixture) *serving {
	t.Helper()
	ln := listen(t)
	s := &serving{f, ln.Addr().String(), make(chan error, 1)}
	go func() {
		s.served <- s.server.Serve(ln)
		close(s.served)
	}()
	t.Cleanup(func() { s.stop(t) })
	return s
}

func (s *serving) stop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := <-s.served; err != nil {
		t.Errorf("serve: %v", err)
	}
}

func (s *serving) dial(t testing.TB) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn := dial(t, s.address)
	return conn, bufio.NewReader(conn)
}

type goldenCase struct {
	name string
	exchange
	arrange func(*fixture) // prepares the fakes; nil leaves them
	bare    bool           // the server has no gate
}

func (c goldenCase) run(t testing.TB) (*fixture, answer) {
	t.Helper()
	f := newFixtureWithLimits
	if c.bare {
		f = newFixture
	}
	made := f(t, nil)
	if c.arrange != nil {
		c.arrange(made)
	}
	return made, made.send(t, c.exchange)
}

func (c goldenCase) text(a answer) []byte {
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

// playGolden holds cases against the files of a folder, which has no others.
func playGolden(t *testing.T, folder string, cases []goldenCase) {
	t.Helper()
	files := map[string][]byte{}
	for _, c := range cases {
		_, a := c.run(t)
		files[c.name] = c.text(a)
	}
	holdGolden(t, folder, files)
}

// holdGolden holds texts, by the names of their files, against the files of a folder, which has no others.
func holdGolden(t *testing.T, folder string, files map[string][]byte) {
	t.Helper()
	update := flag.Lookup("update").Value.String() == "true"
	for name, got := range files {
		path := filepath.Join("testdata", folder, name+".http")
		if update {
			ok(t, os.WriteFile(path, got, 0o644))
		}
		if want, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v; run with -update to write it: got\n%s\nwant\n%s", path, err, got, want)
		}
	}
	for _, path := range must(filepath.Glob(filepath.Join("testdata", folder, "*.http"))) {
		if _, known := files[strings.TrimSuffix(filepath.Base(path), ".http")]; !known {
			t.Errorf("%s belongs to no case", path)
		}
	}
}
