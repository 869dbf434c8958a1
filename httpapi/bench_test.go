package httpapi

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine/account"
)

// addressedConn is what connections in memory share: they have addresses and know no deadline.
type addressedConn struct{}

func (addressedConn) Close() error                     { return nil }
func (addressedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (addressedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (addressedConn) SetDeadline(time.Time) error      { return nil }
func (addressedConn) SetReadDeadline(time.Time) error  { return nil }
func (addressedConn) SetWriteDeadline(time.Time) error { return nil }

// repeatingConn is a client in memory: it hands out the same request count times, one for each Read, and drops the
// answers.
type repeatingConn struct {
	addressedConn
	request []byte
	count   int
	written int
	remote  net.Addr
}

func newRepeatingConn(request []byte, count int) *repeatingConn {
	return &repeatingConn{request: request, count: count, remote: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40000}}
}

func (c *repeatingConn) RemoteAddr() net.Addr { return c.remote }

func (c *repeatingConn) Read(b []byte) (int, error) {
	if c.count == 0 {
		return 0, io.EOF
	}
	c.count--
	return copy(b, c.request), nil
}

func (c *repeatingConn) Write(b []byte) (int, error) {
	c.written += len(b)
	return len(b), nil
}

func readRequest(t testing.TB, ctx *fasthttp.RequestCtx, request []byte) {
	t.Helper()
	ok(t, ctx.Request.Header.Read(bufio.NewReader(bytes.NewReader(request))))
}

func benchRequest(target string, lines string) []byte {
	return []byte("GET " + target + " HTTP/1.1\r\nHost: api.example.do\r\nUser-Agent: client/1.0\r\nAccept: */*\r\n" + lines + "\r\n")
}

type lastMail struct{ account.LoginMail }

func (b *lastMail) Send(l account.LoginMail) error {
	b.LoginMail = l
	return nil
}

// tickingClock goes on with each look, so that no window of a quota fills up.
func tickingClock() func() time.Duration {
	var looks atomic.Int64
	return func() time.Duration { return time.Duration(looks.Add(1)) * 10 * time.Millisecond }
}

// newBenchSystem is a node with an account that has a key.
func newBenchSystem(t testing.TB) (system *actors.System, key string) {
	t.Helper()
	box, monotonic := new(lastMail), tickingClock()
	system = must(actors.Open(actors.Config{
		Dir: t.TempDir(), Clock: func() time.Time { return fakeNow().Add(monotonic() / 1000) }, Monotonic: monotonic, Mailer: box,
		Log: actors.LogConfig{ReserveBytes: -1}, QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Day: 1e9, Minute: 100_000}, LeaseSize: 100_000},
	}))
	t.Cleanup(func() {
		if err := system.Close(); err != nil {
			t.Error(err)
		}
	})
	<-system.Ready()
	ana, from := email("ana@example.do"), netip.MustParseAddr("198.18.0.1")
	ok(t, system.RequestCode(ana, account.Requester{Address: from}))
	token, _, err := system.OpenSession(ana, box.Code.Reveal(), account.Requester{Address: from})
	ok(t, err)
	_, secret, err := system.CreateKey(token.Digest(), "bench")
	ok(t, err)
	return system, secret.Reveal()
}
