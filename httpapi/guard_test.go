package httpapi

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
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
