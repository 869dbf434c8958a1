package conn

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

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
