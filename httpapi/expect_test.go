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

// TestExpect_Continue: 100 comes before a body that is wanted, and only then (RFC 9110 10.1.1).
func TestExpect_Continue(t *testing.T) {
	t.Parallel()
	s := serve(t, withLimits(nil))
	const json, length, session = jsonLine + "\r\n", "Content-Length: 26\r\n", keysPath
	token := bearer(testSession(100)) + "\r\n"
	for name, test := range map[string]struct {
		line, lines string
		want        int // the first answer
	}{
		"wanted":               {"POST " + codesPath + " HTTP/1.1", json + length, 100},
		"in capitals":          {"POST " + codesPath + " HTTP/1.1", json + length + "X: 1\r\n", 100},
		"with a session":       {"POST " + session + " HTTP/1.1", json + length + token, 100},
		"HTTP/1.0":             {"POST " + codesPath + " HTTP/1.0", json + length, 0},
		"no body":              {"GET " + bestTarget + " HTTP/1.1", "", 200},
		"nothing is there":     {"POST /v1/none HTTP/1.1", json + length, 404},
		"another method":       {"PUT " + codesPath + " HTTP/1.1", json + length, 405},
		"a data operation":     {"POST " + bestTarget + " HTTP/1.1", json + length, 405},
		"no session":           {"POST " + session + " HTTP/1.1", json + length, 401},
		"a session of nobody":  {"POST " + session + " HTTP/1.1", json + length + bearer(testSession(7)) + "\r\n", 401},
		"another media type":   {"POST " + codesPath + " HTTP/1.1", "Content-Type: text/plain\r\n" + length, 415},
		"another site":         {"POST " + codesPath + " HTTP/1.1", json + length + "Origin: https://evil.example\r\n", 400},
		"too long":             {"POST " + codesPath + " HTTP/1.1", json + "Content-Length: 5000\r\n", 413},
		"chunked":              {"POST " + codesPath + " HTTP/1.1", json + "Transfer-Encoding: chunked\r\n", 501},
		"a body for no reader": {"DELETE " + sessionsPath + " HTTP/1.1", length + token, 400},
	} {
		expect := "Expect: 100-continue\r\n"
		if name == "in capitals" {
			expect = "Expect: 100-Continue\r\n"
		}
		conn, wire := s.dial(t)
		write(t, conn, test.line+"\r\nHost: a\r\n"+test.lines+expect+"\r\n")
		if test.want == 0 { // it waits for the body
			write(t, conn, `{"email":"ana@example.do"}`)
			test.want = http.StatusAccepted
		}
		response, err := http.ReadResponse(wire, &http.Request{Method: "POST"})
		ok(t, err)
		if response.StatusCode != test.want {
			t.Errorf("%s: %d, want %d", name, response.StatusCode, test.want)
		}
		_ = response.Body.Close()
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
