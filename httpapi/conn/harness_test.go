package conn

import (
	"io"
	"log/slog"
	"net"
	"testing"

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
