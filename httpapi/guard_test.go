package httpapi

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/httpapi/conn"
)

type rawVerdict struct {
	refused, method, target string
	body                    string
}

// FuzzGuard feeds raw bytes to a server in memory. Nothing may panic; the
// verdict must depend on neither repetition nor the pieces in which the bytes come;
// a refusal is the last answer; and net/http, where it takes a request
// that the guard lets pass, must see the same method, target and body.
func FuzzGuard(f *testing.F) {
	for _, c := range must(readRawCorpus()) {
		f.Add([]byte(c.Request))
	}
	server := recordingServer(f)
	f.Fuzz(func(t *testing.T, request []byte) {
		whole := &rawConn{in: request, step: rawBufferBytes}
		wholeErr := server.ServeConn(whole)
		pieces := &rawConn{in: request, step: 1}
		piecesErr := server.ServeConn(pieces)
		if !slices.Equal(whole.seen, pieces.seen) {
			t.Fatalf("in one piece %+v (%v), byte by byte %+v (%v)", whole.seen, wholeErr, pieces.seen, piecesErr)
		}
		for i, v := range whole.seen {
			if v.refused != "" && i != len(whole.seen)-1 {
				t.Fatalf("request %d was served after a refusal: %+v", i+2, whole.seen)
			}
		}
		if difference := differenceToNetHTTP(request, whole.seen); difference != "" {
			t.Fatal(difference)
		}
	})
}

// differenceToNetHTTP is the first difference to what the standard library reads, until one of the two refuses
// something.
func differenceToNetHTTP(request []byte, seen []rawVerdict) string {
	br := bufio.NewReader(bytes.NewReader(request))
	for i, v := range seen {
		other, err := http.ReadRequest(br)
		if v.refused != "" || err != nil {
			return ""
		}
		body, err := io.ReadAll(other.Body)
		if err != nil {
			return ""
		}
		if other.Method != v.method || other.RequestURI != v.target || string(body) != v.body {
			return fmt.Sprintf("request %d: here %+v, net/http %s %s %q", i+1, v, other.Method, other.RequestURI, body)
		}
	}
	return ""
}

// recordingServer notes in its rawConn what the handler sees. It panics when the guard contradicts itself.
func recordingServer(t testing.TB) *fasthttp.Server {
	server := rawFixture(t, nil).server.http
	server.Handler = func(ctx *fasthttp.RequestCtx) {
		var head conn.HeadInfo
		first, second := conn.Malformed(ctx, &head), conn.Malformed(ctx, new(conn.HeadInfo))
		if first != second {
			panic("two verdicts: " + first + " / " + second)
		}
		if head.Chunked() && first == "" {
			first = "chunked"
		}
		raw := ctx.Conn().(*rawConn)
		raw.seen = append(raw.seen, rawVerdict{first, string(ctx.Method()), string(ctx.Request.Header.RequestURI()), string(ctx.Request.Body())})
		if first != "" {
			ctx.SetConnectionClose()
		}
	}
	return server
}

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
