package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	chunkedPost = "POST /v1/rates HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
	expecting   = "POST /v1/rates HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello"
)

// TestO3_FirstInPieces: wherever a client pauses in what it says first, it gets one answer to each request.
func TestO3_FirstInPieces(t *testing.T) {
	t.Parallel()
	get := request("/v1/currencies")
	const post = "POST /v1/rates HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
	long := "GET /v1/currencies HTTP/1.1\r\nHost: a\r\nX-Long: " + strings.Repeat("x", 20<<10) + "\r\n\r\n"
	s := serve(t, nil)
	for name, one := range map[string]struct {
		said     string
		statuses string
		cuts     int // 0: everywhere
	}{
		"one":               {get, "200", 0},
		"two":               {get + get, "200 200", 0},
		"an empty line":     {"\r\n" + get, "200", 0},
		"a body":            {post, "405", 0},
		"chunks":            {chunkedPost, "501", 0},
		"a head, expecting": {expecting, "405", len(expecting) - len("hello")},
		"a bare LF":         {"GET / HTTP/1.1\nHost: a\r\n\r\n", "404", 0},
		"what is no HTTP":   {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "400", 0},
		"too long":          {long, "431", 9 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for cut := range len(one.said) {
				if one.cuts != 0 && cut != one.cuts || one.cuts == 0 && cut%7 != 1 {
					continue
				}
				conn, wire := s.dial(t)
				write(t, conn, one.said[:cut])
				bubbleSleep(time.Millisecond)             // so that it is read by itself
				_, _ = conn.Write([]byte(one.said[cut:])) // it may have been refused by now
				var statuses []string
				for range strings.Fields(one.statuses) {
					statuses = append(statuses, fmt.Sprint(parseAnswer(t, wire, "GET").status))
				}
				if got := strings.Join(statuses, " "); got != one.statuses {
					t.Errorf("cut at %d: got %s, want %s", cut, got, one.statuses)
				}
				conn.Close()
			}
		})
	}
}

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
