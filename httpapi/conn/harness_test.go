package conn

import (
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
)

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

// Tests have no clock of their own but this: bubbleNow and bubbleSleep are the doors to the time of a bubble, which
// costs none.
func bubbleNow() time.Time { return time.Now() } //nolint:forbidigo // see above

func bubbleSleep(d time.Duration) { <-time.NewTimer(d).C }

// fakeNow is a clock that stands.
func fakeNow() time.Time { return time.Date(2025, 11, 21, 14, 0, 0, 0, time.UTC) }

// patience bounds what goes over loopback.
const patience = 20 * time.Second

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

func logTo(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

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
