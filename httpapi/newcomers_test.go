package httpapi

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"
)

// TestO3_FirstInTime: the first request has its time, however often something of it comes. A connection that was never
// used is closed without a word.
func TestO3_FirstInTime(t *testing.T) {
	const patience = 300 * time.Millisecond
	for name, said := range map[string]string{
		"nothing": "", "a line": "GET /v1/currencies HTTP/1.1\r\nX-", "a body": "POST /v1/rates HTTP/1.1\r\nHost: a\r\nContent-Length: 4000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(c *Config) { c.Limits.ReadTimeout = patience })
			began := bubbleNow()
			conn, wire := s.dial(t)
			write(t, conn, said)
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
