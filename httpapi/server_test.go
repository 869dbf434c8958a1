package httpapi

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
)

// TestE1_K7_Unread: what never reaches the handler is answered with the error object too, says what is announced,
// and ends the connection.
func TestE1_K7_Unread(t *testing.T) {
	t.Parallel()
	pending := keysRequiredIn(time.Hour)
	s := serve(t, withLimits(func(c *Config) {
		c.Admitter.(*fakeAdmitter).transition = pending
		c.Limits = Limits{ReadTimeout: 300 * time.Millisecond, HeaderBytesMax: 2048, BodyBytesMax: 100}
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
