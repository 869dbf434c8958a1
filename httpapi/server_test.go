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

	"go.uber.org/goleak"

	"github.com/tasard/tasard/engine"
)

// leakOptions are goroutines of the library that nobody can wait for: one keeps the Date header for as long as the process
// lives, one looks after idle workers and sees only every ten seconds that its server has ended.
func leakOptions() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreCurrent(),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	}
}

// serving is a fixture that listens on loopback.
type serving struct {
	*fixture
	address string
	served  chan error
}

func serve(t *testing.T, change func(*Config)) *serving {
	t.Helper()
	return serveAsleep(t, false, change)
}

// serveAsleep is serve where each connection sleeps as often as it can.
func serveAsleep(t *testing.T, sleeps bool, change func(*Config)) *serving {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &serving{newFixture(t, change), ln.Addr().String(), make(chan error, 1)}
	if sleeps {
		sleepAtOnce(s.server)
	}
	go func() { s.served <- s.server.Serve(ln) }()
	return s
}

// stop shuts down and waits for Serve.
func (s *serving) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := <-s.served; err != nil {
		t.Errorf("serve: %v", err)
	}
}

func (s *serving) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil { //nolint:forbidigo // a network deadline is real time
		t.Fatal(err)
	}
	return conn
}

// TestE1_Unread: what never reaches the handler is answered with the error object too, and the connection ends.
func TestE1_Unread(t *testing.T) {
	defer goleak.VerifyNone(t, leakOptions()...)
	s := serve(t, func(c *Config) {
		c.Limits = Limits{ReadTimeout: 300 * time.Millisecond, HeaderBytesMax: 2048, BodyBytesMax: 100}
	})
	defer s.stop(t)
	const host = "Host: api.example.do\r\n"
	tests := []struct {
		name, request string
		status        int
		code          engine.Code
	}{
		{"malformed", "GET /v1/rates HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc", 400, engine.CodeMalformedRequest},
		{"no request", "nonsense\r\n\r\n", 400, engine.CodeMalformedRequest},
		{"no host", "GET /v1/rates HTTP/1.1\r\n\r\n", 400, engine.CodeMalformedRequest},
		{"too slow", "GET /v1/rates HTTP/1.1\r\nHost: a", 408, engine.CodeRequestTimeout},
		{"slow body", "POST /v1/rates HTTP/1.1\r\n" + host + "Content-Length: 50\r\n\r\nabc", 408, engine.CodeRequestTimeout},
		{"headers too long", "GET /v1/rates HTTP/1.1\r\n" + host + "X-A: " + strings.Repeat("a", 4000) + "\r\n\r\n", 431, engine.CodeHeadersTooLarge},
		{"target too long", "GET /" + strings.Repeat("a", 4000) + " HTTP/1.1\r\n" + host + "\r\n", 431, engine.CodeHeadersTooLarge},
		{"body too long", "POST /v1/rates HTTP/1.1\r\n" + host + "Content-Length: 101\r\n\r\n" + strings.Repeat("a", 101), 413, engine.CodePayloadTooLarge},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			conn := s.dial(t)
			defer conn.Close()
			if _, err := io.WriteString(conn, test.request); err != nil {
				t.Fatal(err)
			}
			wire := bufio.NewReader(conn)
			a := parseAnswer(t, wire, "GET")
			checkAnswer(t, test.name, "GET", a)
			if a.status != test.status || engine.Code(a.fault(t).Error.Code) != test.code {
				t.Errorf("%d %s, want %d %s", a.status, a.body, test.status, test.code)
			}
			if rest, _ := io.ReadAll(wire); len(rest) > 0 || !a.closes {
				t.Errorf("the connection goes on: %v, %q", a.header, rest)
			}
		})
	}
}

func TestServer_KeepAliveAndClient(t *testing.T) {
	defer goleak.VerifyNone(t, leakOptions()...)
	s := serve(t, nil)
	defer s.stop(t)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for operation, target := range goldenTargets() {
		response, err := client.Get("http://" + s.address + target)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if err := shapes()[operation](body); err != nil {
			t.Errorf("%s: %v", operation, err)
		}
	}
}

// gatedService lets a request stay in flight until the test opens the gate.
type gatedService struct {
	*fakeService
	entered, gate chan struct{}
}

func (g *gatedService) Currencies() (*engine.Page[engine.CurrencyItem], error) {
	close(g.entered)
	<-g.gate
	return g.fakeService.Currencies()
}

// TestServer_Shutdown: a request in flight is answered, an idle connection is closed, a new one is not accepted.
func TestServer_Shutdown(t *testing.T) {
	defer goleak.VerifyNone(t, leakOptions()...)
	gated := &gatedService{newFakeService(), make(chan struct{}), make(chan struct{})}
	s := serve(t, func(c *Config) { c.Service = gated })
	idle := s.dial(t)
	defer idle.Close()
	if _, err := io.WriteString(idle, "GET /v1/rates HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	idleWire := bufio.NewReader(idle)
	parseAnswer(t, idleWire, "GET")
	busy := s.dial(t)
	defer busy.Close()
	if _, err := io.WriteString(busy, "GET /v1/currencies HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-gated.entered
	stopped := make(chan error, 1)
	go func() { stopped <- s.server.Shutdown(context.Background()) }()
	if _, err := idleWire.ReadByte(); err == nil {
		t.Error("the idle connection says something instead of closing")
	}
	if conn, err := net.Dial("tcp", s.address); err == nil {
		conn.Close()
		t.Error("a new connection is accepted")
	}
	close(gated.gate)
	a := parseAnswer(t, bufio.NewReader(busy), "GET")
	if a.status != 200 || !a.closes {
		t.Errorf("the request in flight got %d, %v", a.status, a.header)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if err := <-s.served; err != nil {
		t.Error(err)
	}
}

// TestServer_ShutdownGivesUp: the context bounds the wait.
func TestServer_ShutdownGivesUp(t *testing.T) {
	gated := &gatedService{newFakeService(), make(chan struct{}), make(chan struct{})}
	s := serve(t, func(c *Config) { c.Service = gated })
	busy := s.dial(t)
	defer busy.Close()
	if _, err := io.WriteString(busy, "GET /v1/currencies HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-gated.entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.server.Shutdown(ctx); err == nil {
		t.Error("shutdown says that it is done")
	}
	close(gated.gate)
	if err := <-s.served; err != nil {
		t.Error(err)
	}
}

func TestServer_ServeAfterShutdown(t *testing.T) {
	f := newFixture(t, nil)
	if err := f.server.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.server.Serve(ln); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		conn.Close()
		t.Error("the listener is open")
	}
}

func TestNew_RefusesHalfAConfig(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New takes a Config without a service")
		}
	}()
	New(Config{Clock: fakeNow})
}
