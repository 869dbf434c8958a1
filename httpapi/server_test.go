package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// TestE1_K7_Unread: what never reaches the handler is answered with the error object too, says what is announced,
// and ends the connection.
func TestE1_K7_Unread(t *testing.T) {
	t.Parallel()
	pending := keysRequiredIn(time.Hour)
	s := serve(t, withLimits(func(c *Config) {
		c.Admitter.(*fakeAdmitter).transition = pending
		c.Limits = Limits{ReadTimeout: 2 * time.Second, HeaderBytesMax: 2048, BodyBytesMax: 100}
	}))
	const get, post = "GET /v1/rates HTTP/1.1\r\nHost: a\r\n", "POST /v1/rates HTTP/1.1\r\nHost: a\r\n"
	for _, test := range []struct{ name, request, want string }{
		{"malformed", get + "Content-Length: 3\r\n\r\nabc", "400 malformed_request"},
		{"no request", "nonsense\r\n\r\n", "400 malformed_request"},
		{"no host", "GET /v1/rates HTTP/1.1\r\n\r\n", "400 malformed_request"},
		{"too slow", "GET /v1/rates HTTP/1.1\r\nHost: a", "408 request_timeout"},
		{"slow body", post + "Content-Length: 50\r\n\r\nabc", "408 request_timeout"},
		{"headers too long", get + "X-A: " + strings.Repeat("a", 4000) + "\r\n\r\n", "431 headers_too_large"},
		{"target too long", "GET /" + strings.Repeat("a", 4000) + " HTTP/1.1\r\n\r\n", "431 headers_too_large"},
		{"long body announced", post + "Expect: 100-continue\r\nContent-Length: 101\r\n\r\n", "413 payload_too_large"},
		{"body too long", post + "Content-Length: 101\r\n\r\n" + strings.Repeat("a", 101), "413 payload_too_large"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			conn, wire := s.dial(t)
			write(t, conn, test.request)
			a := parseAnswer(t, wire, "GET")
			checkAnswer(t, test.name, "GET", "/v1/rates", a)
			if got, notice := a.code(t), deprecationProblems(a, &pending); got != test.want || len(notice) > 0 || a.limits() != "" {
				t.Errorf("%s %s, want %s; %v", got, a.limits(), test.want, notice)
			}
			if rest, _ := io.ReadAll(wire); len(rest) > 0 || !a.closes {
				t.Errorf("the connection goes on: %v, %q", a.header, rest)
			}
		})
	}
}

// blockingService lets a request stay in flight until the test opens the gate.
type blockingService struct {
	*fakeService
	entered, gate chan struct{}
}

func (g *blockingService) Currencies() (*engine.Page[engine.CurrencyItem], error) {
	close(g.entered)
	<-g.gate
	return g.fakeService.Currencies()
}

// TestServer_Shutdown: a request in flight is answered, an idle connection closed, a new one not accepted; also
// after a wait given up.
func TestServer_Shutdown(t *testing.T) {
	t.Parallel()
	gated := &blockingService{newFakeService(), make(chan struct{}), make(chan struct{})}
	s := serve(t, func(c *Config) { c.Service = gated })
	conn, busy := s.dial(t)
	write(t, conn, request("/v1/currencies"))
	<-gated.entered
	idle, idleWire := s.dial(t)
	askOn(t, idle, idleWire, "/v1/rates")
	ctx, cancel := context.WithCancel(context.Background())
	gaveUp, stopped := make(chan error, 1), make(chan error, 1)
	go func() { gaveUp <- s.server.Shutdown(ctx) }()
	if _, err := idleWire.ReadByte(); err != io.EOF {
		t.Errorf("the idle connection ends with %v", err)
	}
	cancel()
	if err := <-gaveUp; err == nil {
		t.Error("shutdown says that it is done")
	}
	go func() { stopped <- s.server.Shutdown(context.Background()) }()
	if conn, err := net.Dial("tcp", s.address); err == nil {
		conn.Close()
		t.Error("a new connection is accepted")
	}
	close(gated.gate)
	if a := parseAnswer(t, busy, "GET"); a.status != 200 || !a.closes {
		t.Errorf("the request in flight got %d, %v", a.status, a.header)
	}
	ok(t, <-stopped)
}

func TestServer_ServeAfterShutdown(t *testing.T) {
	f := newFixture(t, nil)
	ok(t, f.server.Shutdown(context.Background()))
	ln := listen(t)
	ok(t, f.server.Serve(ln))
	if conn, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		conn.Close()
		t.Error("the listener is open")
	}
}

// TestDrain_EveryAnswerClosesItsConnection: whatever comes is still answered, and its client sent to another
// connection.
func TestDrain_EveryAnswerClosesItsConnection(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	conn, wire := s.dial(t)
	askOn(t, conn, wire, "/v1/rates")
	s.server.Drain()
	for _, target := range []string{"/v1/rates", "/readyz", "/v1/no-such", "/v1/rates?limit=x"} {
		if a := askOn(t, conn, wire, target); !a.closes {
			t.Errorf("%s: the connection goes on: %v", target, a.header)
		}
		if _, err := wire.ReadByte(); err == nil {
			t.Errorf("%s: more came", target)
		}
		conn, wire = s.dial(t)
	}
}

// TestDrain_Grace: a request that comes on a kept connection just when accepting has ended gets its whole answer.
func TestDrain_Grace(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	kept, wire := s.dial(t)
	askOn(t, kept, wire, "/v1/rates")
	ended := make(chan error, 1)
	go func() { ended <- s.server.Shutdown(context.Background()) }()
	eventually(t, func() bool { return s.server.load.draining.Load() != nil })
	if a := askOn(t, kept, wire, "/v1/rates"); a.status != http.StatusOK || !a.closes {
		t.Errorf("%d %v", a.status, a.header)
	}
	ok(t, <-ended)
}

// TestHarness: the Date header is the clock's, faults are planted behind the route, and go around what was read.
func TestHarness(t *testing.T) {
	plant, around := (*engine.Error)(nil), 0
	g := newFixtureWithLimits(t, func(c *Config) {
		c.Harness = &Harness{Around: func(next fasthttp.RequestHandler) fasthttp.RequestHandler {
			return func(ctx *fasthttp.RequestCtx) {
				around++
				if plant != nil {
					Plant(ctx, plant)
				}
				next(ctx)
			}
		}}
	})
	for i, c := range []struct {
		target string
		plant  engine.Code
		status int
	}{
		{"/v1/rates", "", 200}, {"/v1/nothing", engine.CodeOverloaded, 404}, {"/v1/rates", engine.CodeOverloaded, 503},
		{"/v1/rates", engine.CodeInternalError, 500}, {"/v1/rates", engine.CodeRateLimited, 429}, {"/v1/rates", engine.CodeQuotaExceeded, 429},
		{"/v1/account/keys", "", 401},
	} {
		if plant = nil; c.plant != "" {
			plant = &engine.Error{Code: c.plant}
		}
		conn := &rawConn{in: []byte("GET " + c.target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), step: rawBufferBytes}
		ok(t, g.server.ServeConn(conn))
		a := parseAnswer(t, bufio.NewReader(&conn.out), "GET")
		if dates := a.header.Values("Date"); a.status != c.status || len(dates) != 1 || dates[0] != fakeNow().UTC().Format(http.TimeFormat) || around != i+1 {
			t.Errorf("%s: %d, want %d; Date %q; around %d", c.target, a.status, c.status, dates, around)
		}
	}
}

// TestO3_FirstInTime: the first request has its time, however often something of it comes, and so has the one after an
// answer of the express path. A connection that was never used is closed without a word.
func TestO3_FirstInTime(t *testing.T) {
	const patience = 2 * time.Second
	for name, said := range map[string]string{
		"nothing": "", "a line": "GET /v1/currencies HTTP/1.1\r\nX-",
		"another line": request("/v1/currencies") + "GET / HTTP/1.1\r\nX-",
		"a body":       "POST /v1/rates HTTP/1.1\r\nHost: a\r\nContent-Length: 4000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(c *Config) { c.Limits.ReadTimeout, c.Limits.WriteTimeout = patience, patience/2 })
			began := bubbleNow()
			conn, wire := s.dial(t)
			write(t, conn, said)
			if name == "another line" {
				if a := parseAnswer(t, wire, "GET"); a.status != http.StatusOK {
					t.Errorf("the first request gets %d", a.status)
				}
			}
			dripped := make(chan struct{})
			go func() {
				defer close(dripped)
				for beat := time.NewTicker(patience / 30); said != ""; <-beat.C {
					if _, err := conn.Write([]byte("x")); err != nil {
						return
					}
				}
			}()
			if said == "" { // a browser may open a connection and never use it
				if rest, _ := io.ReadAll(wire); len(rest) > 0 {
					t.Errorf("a client that said nothing gets %q", rest)
				}
			} else if a := parseAnswer(t, wire, "GET"); a.status != http.StatusRequestTimeout || !a.closes {
				t.Errorf("answered %d, and closes %t; want 408", a.status, a.closes)
			}
			if took := bubbleNow().Sub(began); took < patience || took > 2*patience {
				t.Errorf("it took %v, want %v", took, patience)
			}
			conn.Close()
			<-dripped
		})
	}
}

// TestO3_ShutdownAndNewcomers: at the end a client that has said nothing is closed, and one that has begun its
// first request may end it.
func TestO3_ShutdownAndNewcomers(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	within, wire := s.dial(t)
	write(t, within, "GET /v1/rates HTTP/1.1\r\nHos")
	still, _ := s.dial(t)
	eventually(t, func() bool { return series(t, s.server)["tasard_http_connections_accepted_total"] == 2 })
	ended := make(chan error, 1)
	go func() { ended <- s.server.Shutdown(context.WithoutCancel(t.Context())) }()
	if n, err := still.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("a client that asked nothing is answered")
	}
	select {
	case err := <-ended:
		t.Fatal("the stop did not wait for a request that had begun", err)
	default:
	}
	write(t, within, "t: a\r\n\r\n")
	if a := parseAnswer(t, wire, "GET"); a.status != http.StatusOK || !a.closes {
		t.Errorf("answered %d, and closes %t", a.status, a.closes)
	}
	ok(t, <-ended)
}

// certificateAuthority makes certificates for loopback, and is the pool that trusts each of them.
type certificateAuthority struct{ pool *x509.CertPool }

func newCertificateAuthority() *certificateAuthority {
	return &certificateAuthority{x509.NewCertPool()}
}

func (a *certificateAuthority) certify(number int64) *tls.Certificate {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	made := &x509.Certificate{
		SerialNumber: big.NewInt(number), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: bubbleNow().Add(-time.Hour), NotAfter: bubbleNow().Add(time.Hour),
	}
	raw := must(x509.CreateCertificate(rand.Reader, made, made, key.Public(), key))
	a.pool.AddCert(must(x509.ParseCertificate(raw)))
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

func fixedCertificate(c *tls.Certificate) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c, nil }
}

func serveTLS(t *testing.T, change func(*Config)) (*serving, *certificateAuthority) {
	t.Helper()
	a := newCertificateAuthority()
	one := a.certify(2)
	return serve(t, func(c *Config) {
		c.Certificate = fixedCertificate(one)
		if change != nil {
			change(c)
		}
	}), a
}

func (a *certificateAuthority) dial(address string, change func(*tls.Config)) (*tls.Conn, error) {
	config := &tls.Config{RootCAs: a.pool}
	if change != nil {
		change(config)
	}
	return tls.DialWithDialer(&net.Dialer{Deadline: networkDeadline()}, "tcp", address, config)
}

func (s *serving) dialed(t *testing.T, a *certificateAuthority, change func(*tls.Config)) (*tls.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := a.dial(s.address, change)
	ok(t, err)
	t.Cleanup(func() { conn.Close() })
	ok(t, conn.SetDeadline(networkDeadline()))
	return conn, bufio.NewReader(conn)
}

// TestTLS_SameAnswers: every operation answers over TLS what it answers without, on one connection, with either
// version. Plain requests do not reach the library.
func TestTLS_SameAnswers(t *testing.T) {
	t.Parallel()
	s, a := serveTLS(t, nil)
	s.server.http.Handler = func(*fasthttp.RequestCtx) { t.Error("the library reads a plain request") }
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		conn, wire := s.dialed(t, a, func(c *tls.Config) { c.MaxVersion = version })
		for operation, target := range goldenTargets() {
			for range 3 {
				got, want := askOn(t, conn, wire, target), s.get(t, target)
				if got.status != want.status || string(got.body) != string(want.body) {
					t.Errorf("%s: %d, %d bytes; want %d, %d bytes", operation, got.status, len(got.body), want.status, len(want.body))
				}
			}
		}
		if state := conn.ConnectionState(); state.Version != version || state.NegotiatedProtocol == "h2" {
			t.Errorf("version %x, protocol %q", state.Version, state.NegotiatedProtocol)
		}
	}
}

// TestTLS_Refused: old versions, other protocols and plain clients get an error that they can read; silent clients
// are let go.
func TestTLS_Refused(t *testing.T) {
	t.Parallel()
	s, a := serveTLS(t, func(c *Config) { c.Limits = Limits{ReadTimeout: 2 * time.Second} })
	for want, change := range map[string]func(*tls.Config){
		"protocol version":        func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 },
		"no application protocol": func(c *tls.Config) { c.NextProtos = []string{"h2"} },
	} {
		if _, err := a.dial(s.address, change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	conn, wire := s.dial(t)
	got := askOn(t, conn, wire, "/v1/currencies")
	if got.code(t) != "400 malformed_request" || !got.closes || strings.Contains(string(got.body), "USD") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if rest, _ := io.ReadAll(wire); len(rest) > 0 {
		t.Errorf("more: %q", rest)
	}
	var silent []net.Conn
	for _, said := range []string{"", "\x16\x03\x01\x02\x00\x01", "\x16\x03\x01\x00\x04\x01\x00\x00"} {
		conn, _ := s.dial(t)
		_, _ = io.WriteString(conn, said) // on a busy machine it may be let go already
		silent = append(silent, conn)
	}
	for _, conn := range silent {
		if rest, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(rest), "HTTP") {
			t.Errorf("%q, %v", rest, err)
		}
	}
	good, wire := s.dialed(t, a, nil)
	if a := askOn(t, good, wire, "/v1/currencies"); a.status != http.StatusOK {
		t.Errorf("a good client is answered %d afterwards", a.status)
	}
}

// TestTLS_AnswersBehindADeadline: the deadline of an answer that was written long ago ends no later one half-way.
func TestTLS_AnswersBehindADeadline(t *testing.T) {
	t.Parallel()
	s, a := serveTLS(t, func(c *Config) { c.Limits = Limits{WriteTimeout: 400 * time.Millisecond} })
	conn, wire := s.dialed(t, a, nil)
	for range 3 {
		if a := askOn(t, conn, wire, "/v1/currencies"); a.status != http.StatusOK {
			t.Fatalf("status %d", a.status)
		}
		bubbleSleep(450 * time.Millisecond) // the deadline is one of the kernel's sockets: real time
	}
}

// TestTLS_NewCertificate: a certificate that changes is that of the next connection; one that is open goes on.
func TestTLS_NewCertificate(t *testing.T) {
	t.Parallel()
	var present atomic.Pointer[tls.Certificate]
	s, a := serveTLS(t, func(c *Config) {
		c.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return present.Load(), nil }
	})
	present.Store(a.certify(7))
	first, wire := s.dialed(t, a, nil)
	present.Store(a.certify(8))
	second, _ := s.dialed(t, a, nil)
	for number, conn := range map[int64]*tls.Conn{7: first, 8: second} {
		if got := conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != number {
			t.Errorf("certificate %d, want %d", got, number)
		}
	}
	if a := askOn(t, first, wire, "/v1/currencies"); a.status != http.StatusOK {
		t.Errorf("status %d on the first connection", a.status)
	}
}

// TestTLS_ShutdownSendsCloseNotify: an idle connection ends with TLS's alert for it, so that its client knows that
// nothing is missing.
func TestTLS_ShutdownSendsCloseNotify(t *testing.T) {
	t.Parallel()
	s, a := serveTLS(t, nil)
	plain, _ := s.dial(t)
	below := &countedReads{Conn: plain}
	conn := tls.Client(below, &tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1"})
	wire := bufio.NewReader(conn)
	askOn(t, conn, wire, "/v1/currencies")
	before := below.bytes
	s.stop(t)
	if rest, err := io.ReadAll(wire); err != nil || len(rest) > 0 || below.bytes == before {
		t.Errorf("%q, %v, %d bytes of TLS", rest, err, below.bytes-before)
	}
}

type countedReads struct {
	net.Conn
	bytes int
}

func (c *countedReads) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes += n
	return n, err
}

// checkAnswer holds an answer of a server with an admitter against what all answers share.
func checkAnswer(t *testing.T, what, method, target string, a answer) {
	t.Helper()
	wrong := func(problem string) {
		t.Errorf("%s: %s %s: %d: %s: %v %s", what, method, target, a.status, problem, a.header, a.body)
	}
	for _, problem := range securityProblems(strings.HasPrefix(target, accountPrefix), a) {
		wrong(problem)
	}
	if (a.status == 405) != (a.header.Get("Allow") != "") && a.status != 204 || a.status >= 400 && a.header.Get("ETag") != "" {
		wrong("Allow or ETag")
	}
	if a.status >= 400 && bytes.Contains(a.body, []byte("secret")) {
		wrong("the answer tells a cause or a key")
	}
	if a.status >= 400 && method != http.MethodHead && a.fault(t).Error.RequestID != a.header.Get("X-Request-Id") {
		wrong("the body has another id than the header")
	}
}

// TestE5_CauseOnlyInLog: the caller gets an id, the log the cause under it, and the server lives. Shedding load
// writes no line.
func TestE5_CauseOnlyInLog(t *testing.T) {
	var log bytes.Buffer
	f := newFixture(t, func(c *Config) { c.Logger = logTo(&log) })
	f.service.fault = fault(engine.CodeOverloaded, "Busy.", 0)
	f.get(t, bestTarget)
	if log.Len() > 0 {
		t.Error(log.String())
	}
	f.service.fault = errors.New("disk on fire")
	failed := f.get(t, bestTarget, "Authorization: Bearer canary")
	f.service.fault, f.service.panics = nil, "index out of order"
	panicked := f.get(t, bestTarget, "Authorization: Bearer canary")
	f.service.panics = nil
	for cause, a := range map[string]answer{"disk on fire": failed, "index out of order": panicked} {
		if a.status != 500 || strings.Contains(string(a.body), cause) {
			t.Errorf("%d %s", a.status, a.body)
		}
		var line string
		for l := range strings.Lines(log.String()) {
			if strings.Contains(l, a.fault(t).Error.RequestID) {
				line = l
			}
		}
		if !strings.Contains(line, cause) {
			t.Errorf("the log has no line with the id and %q: %s", cause, log.String())
		}
	}
	if strings.Contains(log.String(), "canary") || strings.Contains(log.String(), "currency=USD") {
		t.Errorf("the log quotes the request: %s", log.String())
	}
	f.takes(t, bestTarget)
	log.Reset()
	libraryLog{logTo(&log)}.Printf("error when serving %q: %v", "canary", context.Canceled)
	if !strings.Contains(log.String(), "error when serving") || strings.Contains(log.String(), "canary") {
		t.Errorf("the library's words: %s", log.String())
	}
}

func TestE4_Unavailable(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		0: "1", -time.Second: "1", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Minute: "60",
	} {
		f := newFixture(t, nil)
		f.service.fault = fault(engine.CodeDataUnavailable, "Nothing is loaded yet.", wait)
		if a := f.get(t, "/v1/rates"); a.code(t) != "503 data_unavailable" || a.header.Get("Retry-After") != want {
			t.Errorf("%v: %d, Retry-After %q", wait, a.status, a.header.Get("Retry-After"))
		}
		f.takes(t, "/v1/currencies", "/v1/institutions", "/v1/institutions/bhd")
	}
}

// plantHeader says where in a handler a panic is planted: before it, or behind it, when the answer is made and
// perhaps sent aside.
const plantHeader = "X-Plant"

// plantPanics puts handlers that panic when asked to in the place of all that are routed to. reached has their
// patterns.
func plantPanics(s *Server) (patterns []string, reached map[string]bool) {
	planted := map[string]endpoint{}
	reached = map[string]bool{}
	for pattern, real := range s.paths {
		patterns = append(patterns, pattern)
		planted[pattern] = endpoint{real.routeID, func(ctx *fasthttp.RequestCtx, a *requestState) {
			where := string(ctx.Request.Header.Peek(plantHeader))
			if where == "before" {
				reached[pattern] = true
				panic("planted before " + pattern)
			}
			real.answer(ctx, a)
			if where == "behind" {
				panic("planted behind " + pattern)
			}
		}}
	}
	s.paths = planted
	return patterns, reached
}

// panicExchanges reach each pattern of a path.
func panicExchanges() []exchange {
	exchanges := []exchange{{method: "GET", target: livezPath}, {method: "GET", target: healthzPath}, {method: "GET", target: readyzPath}}
	for _, target := range goldenTargets() {
		exchanges = append(exchanges, exchange{method: "GET", target: target}, exchange{method: "HEAD", target: target})
	}
	for _, e := range accountGood() {
		exchanges = append(exchanges, e)
	}
	return exchanges
}

// TestO9_PanicInAnyHandler: a panic in any handler of a path, before it has begun or when its answer is made, is a 500
// with the id of its line in the log; its connection goes on, the next request is answered, and nothing is charged for
// it (decision L6). TestExpress_SameAnswers has the panics of the express path.
func TestO9_PanicInAnyHandler(t *testing.T) {
	var log bytes.Buffer
	f := newFixtureWithLimits(t, func(c *Config) {
		c.Admitter.(*fakeAdmitter).allowance = account.Quota{Day: 1 << 20, Minute: 1 << 20}
		c.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	})
	patterns, reached := plantPanics(f.server)
	fired, answered := 0, 0 // answered: and charged, before the panic behind it
	for _, where := range []string{"before", "behind"} {
		for _, e := range panicExchanges() {
			e.lines = append(slices.Clone(e.lines), plantHeader+": "+where)
			a := f.send(t, e)
			fired++
			if where == "behind" && strings.HasPrefix(e.target, "/v1/") && !strings.HasPrefix(e.target, accountPrefix) {
				answered++
			}
			for _, problem := range panicProblems(e.method, e.body != "", a, log.String()) {
				t.Errorf("%s %s, %s: %s", e.method, e.target, where, problem)
			}
			f.takes(t, "/v1/currencies")
		}
	}
	if got := f.admitter.charged(peerDefault); got != fired+answered {
		t.Errorf("%d charged for %d good answers", got, fired+answered)
	}
	for _, pattern := range patterns {
		if !reached[pattern] {
			t.Errorf("nothing panicked in %s", pattern)
		}
	}
	if lines := strings.Count(log.String(), "a request ended in a panic"); lines != fired || len(patterns) < 12 {
		t.Errorf("%d panics, %d lines, %d patterns", fired, lines, len(patterns))
	}
}

// panicProblems holds the answer to a request that panicked against what it must be.
func panicProblems(method string, closes bool, a answer, log string) (problems []string) {
	id := a.header.Get(headerRequestID)
	if a.status != http.StatusInternalServerError || len(id) != len(RequestID{}) || a.closes != closes {
		problems = append(problems, "not a 500 with an id on a connection that goes on, unless it had a body")
	}
	if !strings.Contains(log, `"a request ended in a panic","requestId":"`+id+`"`) {
		problems = append(problems, "no line in the log has the id "+id)
	}
	if method != http.MethodHead && !bytes.Contains(a.body, []byte(`{"error":{"code":"internal_error","message":"`+internalMessage+`","requestId":"`+id+`"}}`)) {
		problems = append(problems, "the body is "+string(a.body))
	}
	if bytes.Contains(a.body, []byte("planted")) {
		problems = append(problems, "the body tells the cause")
	}
	return problems
}
