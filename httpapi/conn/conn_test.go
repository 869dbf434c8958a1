package conn

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
)

// cutConn is a connection in memory whose bytes come in pieces: the given ones, then pieces of random lengths.
type cutConn struct {
	rawConn
	pieces []string
	chance *rand.Rand
	out    bytes.Buffer
}

func (c *cutConn) Read(p []byte) (int, error) {
	if len(c.pieces) > 0 {
		n := copy(p, c.pieces[0])
		c.pieces = c.pieces[1:]
		return n, nil
	}
	if len(c.in) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.in[:min(len(c.in), 1+c.chance.IntN(60))])
	if c.chance.IntN(2) == 0 { // often all that is there, as on a network
		n += copy(p[n:], c.in[n:])
	}
	c.in = c.in[n:]
	return n, nil
}

func (c *cutConn) Write(b []byte) (int, error) { return c.out.Write(b) }

type oneListener struct {
	net.Listener
	conn net.Conn
}

func (l *oneListener) Accept() (net.Conn, error) { return l.conn, nil }

// targetsSeen serves raw bytes, and returns the targets of all requests in order, and how many Express answered.
func targetsSeen(t *testing.T, c *cutConn, express bool) (targets []string, expressed int) {
	t.Helper()
	config := Config{MaxConns: 1}
	if express {
		config.Express = func(_ *Conn, read []byte) (used int, err error) {
			for used < len(read) {
				get, ok := ParsePlainGet(read[used:])
				if !ok || strings.HasPrefix(string(get.Target), "/left") {
					break
				}
				targets, expressed, used = append(targets, string(get.Target)), expressed+1, used+get.Length
			}
			return used, nil
		}
	}
	server := &fasthttp.Server{ReadBufferSize: 1 << 10, MaxRequestBodySize: 1 << 10, NoDefaultDate: true, Handler: func(ctx *fasthttp.RequestCtx) {
		var head HeadInfo
		switch reason := Malformed(ctx, &head); {
		case reason != "", head.Chunked():
			ctx.SetConnectionClose()
			targets = append(targets, "refused")
			return
		case head.HasBody():
			ctx.SetConnectionClose()
		default:
			ctx.Conn().(*Conn).EndRequest()
		}
		targets = append(targets, string(ctx.Request.Header.RequestURI()))
	}, ErrorHandler: func(*fasthttp.RequestCtx, error) { targets = append(targets, "refused") }}
	if err := server.ServeConn(must(Listen(&oneListener{conn: c}, config).Accept())); err != nil && errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	return targets, expressed
}

// FuzzEndRequest: Express never gets bytes that do not begin a request: whatever comes, in whatever pieces, the same
// requests are seen with it and without it.
func FuzzEndRequest(f *testing.F) {
	const get, left = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /left HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, requests := range []string{
		get + get + get, left + get, get + left + get + get, "\r\n" + get + left, "\r\n\r\n" + get, left + "\r\n" + get, left + "\r\n\r\n" + get,
		"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 29\r\n\r\n" + get + get, "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n" + get,
		"POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + get, "GET /left HTTP/1.1\nHost: a\r\n\r\n" + get,
		"GET /left HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get, "HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n" + get, "GET /left HTTP/1.1\r\nHost: a\n\r\n" + get,
		"GET /left HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n" + get, "GET /left HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n" + get, left + "GET /a",
	} {
		f.Add([]byte(requests), uint64(1))
		f.Add([]byte(requests), uint64(2))
	}
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		cut := func() *cutConn {
			return &cutConn{rawConn: rawConn{in: bytes.Clone(raw)}, chance: rand.New(rand.NewPCG(seed, 1))}
		}
		plain, _ := targetsSeen(t, cut(), false)
		express, _ := targetsSeen(t, cut(), true)
		if !slices.Equal(plain, express) {
			t.Fatalf("%q: without the express path %q, with it %q", raw, plain, express)
		}
	})
}

// TestEndRequest_ExpressComesBack: after a request that Express left, it gets the next one; after one in two pieces,
// the next but one.
func TestEndRequest_ExpressComesBack(t *testing.T) {
	const get, left = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /left HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, test := range map[string]struct {
		pieces    []string
		expressed int
	}{
		"whole": {[]string{get, left, get, left, get}, 3}, "in two pieces": {[]string{left[:20], left[20:], get, get, get}, 2},
		"two at once": {[]string{left + left, get, get}, 1},
	} {
		if _, expressed := targetsSeen(t, &cutConn{pieces: test.pieces}, true); expressed != test.expressed {
			t.Errorf("%s: %d requests took the fast way, want %d", name, expressed, test.expressed)
		}
	}
}

// stuckConn is a connection whose peer does not read.
type stuckConn struct {
	net.Conn
	writes int
}

func (s *stuckConn) Write([]byte) (int, error) {
	s.writes++
	return 0, os.ErrDeadlineExceeded
}

// TestO3_OneTimeoutForAClientThatDoesNotRead: the error response behind a write that failed does not wait for another
// timeout.
func TestO3_OneTimeoutForAClientThatDoesNotRead(t *testing.T) {
	stuck := &stuckConn{}
	c := &Conn{Conn: stuck}
	if err := c.WriteBoth([]byte("head"), []byte("body")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the first write: %v", err)
	}
	if _, err := c.Write([]byte("408")); !errors.Is(err, os.ErrDeadlineExceeded) || stuck.writes != 1 {
		t.Errorf("the second write: %v, %d writes reach the network, want 1", err, stuck.writes)
	}
}

// TestMain wants every goroutine ended.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

func logTo(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// rawConn is a connection in memory: it hands out in at once, then EOF.
type rawConn struct {
	net.Conn
	in []byte
}

func (c *rawConn) Read(p []byte) (int, error) {
	if len(c.in) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.in)
	c.in = c.in[n:]
	return n, nil
}

func (c *rawConn) Close() error         { return nil }
func (c *rawConn) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// scriptedListener gives the errors of its script in turn, nil for a connection, then connections; after Close
// net.ErrClosed.
type scriptedListener struct {
	net.Listener
	mu     sync.Mutex
	script []error
	calls  []time.Time
	closed bool
}

func (l *scriptedListener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, time.Now()) //nolint:forbidigo // the time of a bubble
	if l.closed {
		return nil, net.ErrClosed
	}
	if len(l.script) > 0 {
		err := l.script[0]
		l.script = l.script[1:]
		if err != nil {
			return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
		}
	}
	return &rawConn{}, nil
}

func (l *scriptedListener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return nil
}

// pauses returns the times between calls of Accept.
func (l *scriptedListener) pauses() (all []time.Duration) {
	for i := 1; i < len(l.calls); i++ {
		all = append(all, l.calls[i].Sub(l.calls[i-1]))
	}
	return all
}

// TestO4_AcceptRetries: temporary errors are retried, others returned. Control: the bare listener fails.
func TestO4_AcceptRetries(t *testing.T) { synctest.Test(t, testAcceptRetries) }

func testAcceptRetries(t *testing.T) {
	const ms = time.Millisecond
	doubling := []time.Duration{5 * ms, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, time.Second, time.Second}
	same := slices.Repeat([]time.Duration{5 * ms}, len(doubling))
	for want, wanted := range map[error][]time.Duration{
		syscall.EMFILE: doubling, syscall.ENFILE: doubling, syscall.ENOBUFS: doubling, syscall.ENOMEM: doubling,
		syscall.ECONNABORTED: same, syscall.EPROTO: same, syscall.EPERM: same, syscall.EHOSTUNREACH: same,
	} {
		if _, err := (&scriptedListener{script: []error{want}}).Accept(); !errors.Is(err, want) {
			t.Fatalf("control: the bare listener gives %v", err)
		}
		var text bytes.Buffer
		below := &scriptedListener{script: slices.Repeat([]error{want}, len(doubling))}
		must(Listen(below, Config{MaxConns: 100, Log: logTo(&text)}).Accept())
		if got := below.pauses(); !slices.Equal(got, wanted) {
			t.Errorf("%v: pauses %v, want %v", want, got, wanted)
		}
		if lines := strings.Count(text.String(), "\n"); lines != 1 || !strings.Contains(text.String(), want.Error()) {
			t.Errorf("%d lines, want 1 that names the error:\n%s", lines, text.String())
		}
	}
	for _, want := range []error{syscall.EBADF, syscall.EINVAL, net.ErrClosed, io.EOF} {
		below := &scriptedListener{script: slices.Repeat([]error{want}, 3)}
		ln := Listen(below, Config{MaxConns: 1})
		for range 3 {
			if _, err := ln.Accept(); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		if _, err := ln.Accept(); err != nil || slices.Max(below.pauses()) > 0 {
			t.Errorf("after three times %v: %v, pauses %v", want, err, below.pauses())
		}
	}
}

// TestO4_OneLineAMinute: the next line tells of all errors since the last.
func TestO4_OneLineAMinute(t *testing.T) {
	var e eventLog
	for i, step := range []struct {
		now  time.Duration
		want int
	}{{0, 1}, {0, 0}, {logInterval - 1, 0}, {logInterval, 3}, {2*logInterval - 1, 0}, {5 * logInterval, 2}} {
		if got := e.count(step.now); got != step.want {
			t.Errorf("step %d: %d events, want %d", i, got, step.want)
		}
	}
}

// TestO4_CloseEndsAccept wherever it waits: in a pause, or at the cap.
func TestO4_CloseEndsAccept(t *testing.T) {
	for name, script := range map[string][]error{"in a pause": {syscall.EMFILE}, "at the cap": nil} {
		synctest.Test(t, func(t *testing.T) {
			ln := Listen(&scriptedListener{script: script}, Config{MaxConns: 1})
			if script == nil {
				must(ln.Accept())
			}
			ended := make(chan error, 1)
			go func() {
				_, err := ln.Accept()
				ended <- err
			}()
			synctest.Wait()
			if len(ended) != 0 {
				t.Fatalf("%s: Accept did not wait: %v", name, <-ended)
			}
			_ = ln.Close()
			ok(t, ln.Close())
			_, err := ln.Accept()
			for _, err := range []error{<-ended, err} {
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("%s: got %v, want %v", name, err, net.ErrClosed)
				}
			}
		})
	}
}

// TestO1_CapHoldsAcceptBack: at the cap one connection waits, and the listener below is not asked for more; one Close
// lets one in, a second Close none.
func TestO1_CapHoldsAcceptBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := &scriptedListener{}
		ln := Listen(below, Config{MaxConns: 2})
		accepted := make(chan net.Conn, 10)
		go func() {
			for {
				conn, err := ln.Accept()
				if err != nil {
					close(accepted)
					return
				}
				accepted <- conn
			}
		}()
		expect := func(calls int) {
			t.Helper()
			synctest.Wait()
			below.mu.Lock()
			defer below.mu.Unlock()
			if len(below.calls) != calls {
				t.Fatalf("%d connections taken, want %d", len(below.calls), calls)
			}
		}
		expect(3)
		first, second := <-accepted, <-accepted
		for i, conn := range []net.Conn{first, second} {
			ok(t, conn.Close())
			ok(t, conn.Close())
			expect(4 + i)
		}
		ok(t, ln.Close())
		synctest.Wait()
	})
}

// blockingConn is a connection whose Close blocks, as that of TLS does while it sends its alert to a peer that does
// not read.
type blockingConn struct{ net.Conn }

func (*blockingConn) Close() error { select {} }

// TestO5_EvictionBelowTLS: a newcomer takes the place of an idle connection whose peer does not read. Without that,
// Accept never returns here.
func TestO5_EvictionBelowTLS(t *testing.T) {
	below := must(net.Listen("tcp", "127.0.0.1:0"))
	ln := Listen(below, Config{MaxConns: 1})
	accept := func() *Conn {
		client := must(net.Dial("tcp", below.Addr().String()))
		t.Cleanup(func() { client.Close() })
		return must(ln.Accept()).(*Conn)
	}
	idle, ended := accept(), make(chan error, 1)
	idle.Conn = &blockingConn{idle.Conn}
	go func() {
		_, err := idle.Read(make([]byte, 1))
		ended <- err
	}()
	newcomer := accept()
	if err := <-ended; err == nil {
		t.Error("the idle connection goes on")
	}
	ok(t, newcomer.Close())
	ok(t, ln.Close())
}

// TestO3_SendBuffer: the kernel keeps no more than sendBufferBytes for a client that does not read.
func TestO3_SendBuffer(t *testing.T) {
	below := must(net.Listen("tcp", "127.0.0.1:0"))
	ln := Listen(below, Config{MaxConns: 1})
	client := must(net.Dial("tcp", below.Addr().String()))
	defer client.Close()
	served := must(ln.Accept()).(*Conn)
	ok(t, must(served.tcp.SyscallConn()).Control(func(fd uintptr) {
		if got := must(syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF)); got > 2*sendBufferBytes { // Linux doubles it
			t.Errorf("the send buffer has %d bytes", got)
		}
	}))
	ok(t, served.Close())
	ok(t, ln.Close())
}

// TestE1_LingerOnClose: a client that is still sending reads the end of the answer, and no reset.
func TestE1_LingerOnClose(t *testing.T) {
	below := must(net.Listen("tcp", "127.0.0.1:0"))
	ln := Listen(below, Config{MaxConns: 1})
	client := must(net.Dial("tcp", below.Addr().String()))
	served := must(ln.Accept()).(*Conn)
	must(client.Write(make([]byte, 1000)))
	must(served.Read(make([]byte, 1)))
	served.LingerOnClose()
	closed := make(chan error, 1)
	go func() { closed <- served.Close() }()
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the client reads %v", err)
	}
	ok(t, client.Close())
	ok(t, <-closed)
	ok(t, ln.Close())
}

// TestO5_OneClient: how many of 200 connections from each of some addresses stay open.
func TestO5_OneClient(t *testing.T) {
	proxy := func(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.2") }
	for name, c := range map[string]struct {
		limit, maxConns int
		exempt          func(netip.Addr) bool
		sources         []string
		kept            int
	}{
		"IPv4, two addresses":           {128, 16384, nil, []string{"127.0.0.2", "127.0.0.3"}, 2 * 128},
		"IPv4, a fifth of 200":          {128, 200, nil, []string{"127.0.0.2"}, 40},
		"IPv6, two addresses of a /64":  {128, 16384, nil, []string{"2001:db8:1::1", "2001:db8:1::2"}, 128},
		"IPv6, zones of one address":    {128, 16384, nil, []string{"fe80::1%a", "fe80::1%b"}, 128},
		"IPv6, two networks":            {128, 16384, nil, []string{"2001:db8:1::1", "2001:db8:2::1"}, 2 * 128},
		"a trusted proxy":               {128, 16384, proxy, []string{"127.0.0.2", "127.0.0.3"}, 200 + 128},
		"no limit":                      {0, 16384, nil, []string{"127.0.0.2", "127.0.0.3"}, 400},
		"no limit, as for a bare field": {-1, 16384, nil, []string{"127.0.0.2"}, 200},
	} {
		l, kept := newClientLimit(c.limit, c.maxConns, c.exempt), 0
		for range 2 { // as many again when all have left
			var open []netip.Addr
			for _, source := range c.sources {
				for range 200 {
					if key := l.keyOf(netip.MustParseAddr(source)); l.acquire(key) {
						open = append(open, key)
					}
				}
			}
			kept = len(open)
			for _, key := range open {
				l.release(key)
			}
		}
		if kept != c.kept || len(l.open) > 0 {
			t.Errorf("%s: %d connections stay open, want %d; %d clients are still counted", name, kept, c.kept, len(l.open))
		}
	}
}

const guardRequest = "GET /v1/rates/best?currency=USD&operation=buy&limit=10 HTTP/1.1\r\n" +
	"Host: api.example.do\r\n" +
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n" +
	"Accept: application/json\r\n" +
	"Accept-Encoding: gzip\r\n" +
	"Authorization: Bearer trd_live_abcdefgh_0123456789abcdef0123456789abcdef\r\n\r\n"

// parseGuarded returns the context that a handler would get, without the body.
func parseGuarded(t testing.TB, request string) *fasthttp.RequestCtx {
	t.Helper()
	ctx := new(fasthttp.RequestCtx)
	ok(t, ctx.Request.Header.Read(bufio.NewReader(strings.NewReader(request))))
	return ctx
}

// TestE1_GuardReasons: each refusal names its own reason.
func TestE1_GuardReasons(t *testing.T) {
	const host = "Host: a\r\n"
	tests := []struct{ name, request, want string }{
		{"ordinary", guardRequest, ""},
		{"http10 bare", "GET / HTTP/1.0\r\n\r\n", ""},
		{"chunked", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n", ""},
		{"version", "GET / HTTP/9.9\r\n" + host + "\r\n", reasonVersion},
		{"target", "GET ftp://a/ HTTP/1.1\r\n" + host + "\r\n", reasonTarget},
		{"target userinfo", "GET http://u@a/ HTTP/1.1\r\n" + host + "\r\n", reasonTarget},
		{"target byte", "GET /\xe9 HTTP/1.1\r\n" + host + "\r\n", reasonTargetByte},
		{"target hash", "GET /#a HTTP/1.1\r\n" + host + "\r\n", reasonTargetByte},
		{"asterisk", "GET * HTTP/1.1\r\n" + host + "\r\n", reasonAsterisk},
		{"bare lf", "GET / HTTP/1.1\r\nX-A: b\n" + host + "\r\n", reasonLineEnd},
		{"fold", "GET / HTTP/1.1\r\n" + host + "X-A: b\r\n c\r\n\r\n", reasonFold},
		{"name", "GET / HTTP/1.1\r\n" + host + "X A: b\r\n\r\n", reasonName},
		{"repeated", "GET / HTTP/1.1\r\n" + host + "Authorization: a\r\nauthorization: a\r\n\r\n", reasonRepeated},
		{"host", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", reasonHost},
		{"host on http10", "GET / HTTP/1.0\r\nHost: a/b\r\n\r\n", reasonHost},
		{"two lengths", "POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", reasonTwoLengths},
		{"coding", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: identity\r\n\r\n", reasonCoding},
		{"body on get", "GET / HTTP/1.1\r\n" + host + "Content-Length: 1\r\n\r\n", reasonBodyForRead},
		{"chunked head", "HEAD / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n", reasonBodyForRead},
	}
	for _, test := range tests {
		if got := Malformed(parseGuarded(t, test.request), new(HeadInfo)); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// TestE1_GuardWithoutLibrary: what the library refuses today the guard refuses by itself where it sees it.
func TestE1_GuardWithoutLibrary(t *testing.T) {
	tests := []struct{ raw, want string }{
		{"Host: a\r\nHost: a\r\n\r\n", reasonRepeated},
		{"Content-Length: 1\r\nContent-Length: 1\r\n\r\n", reasonRepeated},
		{"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", reasonRepeated},
		{"Host : a\r\n\r\n", reasonName},
		{"Host\t: a\r\n\r\n", reasonName},
		{": a\r\n\r\n", reasonName},
		{"Host\r\n\r\n", reasonName},
		{" Host: a\r\n\r\n", reasonFold},
		{"\n", reasonLineEnd},
		{"Host: a", reasonLineEnd},
		{"", ""},
	}
	for _, test := range tests {
		var f HeadInfo
		if got := f.scan([]byte(test.raw)); got != test.want {
			t.Errorf("scan(%q) = %q, want %q", test.raw, got, test.want)
		}
	}
	for _, length := range []string{"", "+1", "1 2", "0x1"} {
		f := HeadInfo{seen: seenLength, length: []byte(length)}
		if got := f.checkBody(true, false); got != reasonLength {
			t.Errorf("length %q: got %q, want %q", length, got, reasonLength)
		}
	}
	f := HeadInfo{seen: seenCoding, coding: []byte("chunked")}
	if got := f.checkBody(false, false); got != reasonCoding {
		t.Errorf("chunked on HTTP/1.0: got %q, want %q", got, reasonCoding)
	}
	if got := (&HeadInfo{}).checkHost(true); got != reasonNoHost {
		t.Errorf("no host: got %q, want %q", got, reasonNoHost)
	}
}

// TestE1_TargetBytes: eight bytes at a time means the same as one at a time.
func TestE1_TargetBytes(t *testing.T) {
	for c := range 256 {
		for length := 1; length <= 20; length++ {
			for at := range length {
				target := bytes.Repeat([]byte{'a'}, length)
				target[at] = byte(c)
				want := c > ' ' && c < 0x7f && c != '#'
				if got := visibleTarget(target); got != want {
					t.Fatalf("byte %#x at %d of %d: %v, want %v", c, at, length, got, want)
				}
			}
		}
	}
}

// TestE1_PlainGetIsStrict: these heads are left to fasthttp and Malformed.
func TestE1_PlainGetIsStrict(t *testing.T) {
	for name, lines := range map[string]string{
		"no Host": "X: y", "Host twice": "Host: a\r\nHost: a", "Authorization twice": "Host: a\r\nAuthorization: x\r\nAuthorization: x",
		"connection options": "Host: a\r\nConnection: te, close", "a length": "Host: a\r\nContent-Length: 0", "a fold": "Host: a\r\nX: y\r\n\tz",
	} {
		if _, ok := ParsePlainGet([]byte("GET / HTTP/1.1\r\n" + lines + "\r\n\r\n")); ok {
			t.Errorf("%s: taken for a plain GET", name)
		}
	}
}

// FuzzPlainGet: what ParsePlainGet accepts, fasthttp and Malformed accept too, with the same end and the same values.
func FuzzPlainGet(f *testing.F) {
	for _, lines := range []string{
		"Host: a", "Host: a\r\nAuthorization: Bearer x\r\nAccept-Encoding: gzip", "host: a\r\nConnection: Keep-Alive\r\nIf-None-Match: *", "Host: a\r\nX-Forwarded-For: 1.2.3.4",
		"Host: a\r\nCookie: a=b; c", "Host: a\r\nContent-Length: 0", "Host: a\r\nTrailer: x", "Host: a\r\nTE: trailers", "Host: a\r\nX-Y:", "Host: [::1]:80\r\nUpgrade: h2c", "Host: [::ffff:127...001]", "Host: a\r\n X: y", "Host: a\r\nTransfer-Encoding: chunked",
		"Host: a\r\nConnection: close", "Host: a\r\nProxy-Connection: close", "Host: a\r\nExpect: 100-continue", "Host: a\r\nRange: bytes=0-1",
	} {
		f.Add([]byte("GET /v1/rates?limit=3 HTTP/1.1\r\n" + lines + "\r\n\r\n"))
	}
	f.Fuzz(func(t *testing.T, read []byte) {
		g, ok := ParsePlainGet(read)
		if !ok {
			return
		}
		ctx, info := new(fasthttp.RequestCtx), HeadInfo{}
		r := bufio.NewReaderSize(bytes.NewReader(read[:g.Length]), 1<<16)
		if err := ctx.Request.Read(r); err != nil || r.Buffered() > 0 {
			t.Fatalf("%q: fasthttp: %v, %d bytes left", read, err, r.Buffered())
		}
		header := &ctx.Request.Header
		if reason := Malformed(ctx, &info); reason != "" || info.HasBody() || header.ConnectionClose() || ctx.Response.ConnectionClose() || ctx.Request.MayContinue() || len(ctx.Request.Body()) > 0 {
			t.Fatalf("%q: %s", read, reason)
		}
		if !header.IsGet() || !bytes.Equal(header.RequestURI(), g.Target) || !bytes.Equal(info.Authorization, g.Authorization) || !bytes.Equal(header.Peek("Accept-Encoding"), g.AcceptEncoding) ||
			!bytes.Equal(header.Peek("If-None-Match"), g.IfNoneMatch) || !bytes.Equal(header.Peek("X-Forwarded-For"), g.XForwardedFor) {
			t.Fatalf("%q: other values", read)
		}
	})
}
