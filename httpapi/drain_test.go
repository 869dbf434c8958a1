package httpapi

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestDrain_EveryAnswerEndsItsConnection: a client that goes on asking is sent to its next connection, while one that asks nobody any more
// is not needed: whatever comes is still answered.
func TestDrain_EveryAnswerEndsItsConnection(t *testing.T) {
	defer goleak.VerifyNone(t, leakOptions()...)
	s := serve(t, nil)
	defer s.stop(t)
	kept := s.dial(t)
	if status := request(t, kept, bufio.NewReader(kept)); status != http.StatusOK {
		t.Fatal(status)
	}
	s.server.Drain()
	for _, conn := range []net.Conn{kept, s.dial(t)} { // a newcomer is served too
		for _, target := range []string{"/v1/rates", "/readyz", "/v1/no-such", "/v1/rates?limit=x"} {
			if conn == nil {
				conn = s.dial(t)
			}
			wire := bufio.NewReader(conn)
			write(t, conn, "GET "+target+" HTTP/1.1\r\nHost: a\r\n\r\n")
			if a := parseAnswer(t, wire, "GET"); !a.closes {
				t.Errorf("%s: the connection goes on: %v", target, a.header)
			}
			if _, err := wire.ReadByte(); err == nil {
				t.Errorf("%s: more came", target)
			}
			conn.Close()
			conn = nil
		}
	}
}

// TestDrain_LastCall: a request that comes on a kept connection just when accepting has ended gets its whole answer.
func TestDrain_LastCall(t *testing.T) {
	defer goleak.VerifyNone(t, leakOptions()...)
	s := serve(t, nil)
	kept := s.dial(t)
	wire := bufio.NewReader(kept)
	if status := request(t, kept, wire); status != http.StatusOK {
		t.Fatal(status)
	}
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		ended <- s.server.Shutdown(ctx)
	}()
	for s.server.strain.draining.Load() == nil {
		runtime.Gosched()
	}
	write(t, kept, "GET /v1/rates HTTP/1.1\r\nHost: a\r\n\r\n")
	if a := parseAnswer(t, wire, "GET"); a.status != http.StatusOK || !a.closes {
		t.Errorf("%d %v", a.status, a.header)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := <-s.served; err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}
