package conn

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
)

// TestMain wants every goroutine ended.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// must is the value of what a test can't go on without.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// ok ends a test that can't go on.
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

// fakeNow is a clock that stands.
func fakeNow() time.Time { return time.Date(2025, 11, 21, 14, 0, 0, 0, time.UTC) }

// queueAgeMax bounds what goes over loopback.
const patience = 20 * time.Second

// eventually waits for what another goroutine does.
func eventually(t testing.TB, done func() bool) {
	t.Helper()
	look, late := time.NewTicker(time.Millisecond), time.NewTimer(patience)
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

// logTo is a log of everything.
func logTo(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// listen is a listener on loopback.
func listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	return ln
}

// dial opens a connection that ends with the test.
func dial(t testing.TB, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	ok(t, err)
	t.Cleanup(func() { conn.Close() })
	ok(t, conn.SetDeadline(bubbleNow().Add(patience)))
	return conn
}

func write(t testing.TB, conn net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(conn, text)
	ok(t, err)
}

// readRequest reads the head of a request as the library does.
func readRequest(t testing.TB, ctx *fasthttp.RequestCtx, raw []byte) {
	t.Helper()
	ok(t, ctx.Request.Header.Read(bufio.NewReader(bytes.NewReader(raw))))
}

// rawConn is a connection in memory: it hands out in at once, then EOF.
type rawConn struct{ in []byte }

func (c *rawConn) Read(p []byte) (int, error) {
	if len(c.in) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.in)
	c.in = c.in[n:]
	return n, nil
}

func (c *rawConn) Write(p []byte) (int, error)      { return len(p), nil }
func (c *rawConn) Close() error                     { return nil }
func (c *rawConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *rawConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *rawConn) SetDeadline(time.Time) error      { return nil }
func (c *rawConn) SetReadDeadline(time.Time) error  { return nil }
func (c *rawConn) SetWriteDeadline(time.Time) error { return nil }
