package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestExpect_Continue: 100 comes before a body (RFC 9110 10.1.1), but not in HTTP/1.0 and not without a body.
func TestExpect_Continue(t *testing.T) {
	t.Parallel()
	s := serve(t, withLimits(nil))
	const body = "Content-Length: 26\r\n"
	for name, test := range map[string]struct {
		line, lines string
		want        []int
	}{
		"a body":      {"POST " + codesPath + " HTTP/1.1", body + "Expect: 100-continue\r\n", []int{100, 202}},
		"in capitals": {"POST " + codesPath + " HTTP/1.1", body + "Expect: 100-Continue\r\n", []int{100, 202}},
		"HTTP/1.0":    {"POST " + codesPath + " HTTP/1.0", body + "Expect: 100-continue\r\n", []int{202}},
		"no body":     {"GET " + bestTarget + " HTTP/1.1", "Expect: 100-continue\r\n", []int{200}},
		"chunked":     {"POST " + codesPath + " HTTP/1.1", "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n", []int{501}},
		"too long":    {"POST " + codesPath + " HTTP/1.1", "Content-Length: 5000\r\nExpect: 100-continue\r\n", []int{100, 413}},
	} {
		conn, wire := s.dial(t)
		write(t, conn, test.line+"\r\nHost: a\r\n"+jsonLine+"\r\n"+test.lines+"\r\n")
		for _, want := range test.want {
			if want == http.StatusAccepted { // it waits for the body
				write(t, conn, anaBody)
			}
			response, err := http.ReadResponse(wire, &http.Request{Method: "POST"})
			ok(t, err)
			if response.StatusCode != want {
				t.Errorf("%s: %d, want %d", name, response.StatusCode, want)
			}
			_ = response.Body.Close()
		}
		conn.Close()
	}
}

// TestE1_LongBodyAlwaysGets413: the client is still sending when the answer comes. A closed connection with unread
// bytes would be a reset, which can overtake the answer.
func TestE1_LongBodyAlwaysGets413(t *testing.T) {
	t.Parallel()
	plain := serve(t, withLimits(nil))
	secure, authority := serveTLS(t, withLimits(nil))
	for name, dial := range map[string]func() net.Conn{
		"TCP": func() net.Conn { conn, _ := plain.dial(t); return conn },
		"TLS": func() net.Conn { conn, _ := secure.dialed(t, authority, nil); return conn },
	} {
		for i := range 10 {
			conn, length := dial(), 300_000+i*200_000
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\n%s\r\nContent-Length: %d\r\n\r\n", codesPath, jsonLine, length)
				_, _ = io.Copy(conn, strings.NewReader(strings.Repeat("x", length))) // how it ends is the server's choice
			}()
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || response.StatusCode != http.StatusRequestEntityTooLarge {
				t.Fatalf("%s, %d bytes: %v, %v", name, length, response, err)
			}
			_ = response.Body.Close()
			<-sent
			conn.Close()
		}
	}
}
