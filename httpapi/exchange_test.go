package httpapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// answer is what a request got, as a client reads it.
type answer struct {
	status int
	header http.Header
	body   []byte // as sent, perhaps compressed
	closes bool   // it announces the end of the connection
}

// do sends one request through the handler. lines are further header lines.
func (f *fixture) do(t testing.TB, method, target string, lines ...string) answer {
	t.Helper()
	text := method + " " + target + " HTTP/1.1\r\nHost: api.example.do\r\n"
	for _, line := range lines {
		text += line + "\r\n"
	}
	var ctx fasthttp.RequestCtx
	request := bufio.NewReader(strings.NewReader(text + "\r\n"))
	if err := ctx.Request.Header.Read(request); err != nil {
		t.Fatalf("read %s %s: %v", method, target, err)
	}
	f.server.Handler()(&ctx)
	return written(t, &ctx, method)
}

// written is the answer as it goes over the wire, read back by another library.
func written(t testing.TB, ctx *fasthttp.RequestCtx, method string) answer {
	t.Helper()
	ctx.Response.SkipBody = ctx.Response.SkipBody || method == http.MethodHead
	var wire bytes.Buffer
	out := bufio.NewWriter(&wire)
	if err := ctx.Response.Write(out); err != nil {
		t.Fatal(err)
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	return parseAnswer(t, bufio.NewReader(&wire), method)
}

func parseAnswer(t testing.TB, wire *bufio.Reader, method string) answer {
	t.Helper()
	response, err := http.ReadResponse(wire, &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, body, response.Close}
}

func (f *fixture) get(t testing.TB, target string, lines ...string) answer {
	t.Helper()
	return f.do(t, http.MethodGet, target, lines...)
}

// plain is the body, unpacked where it was compressed.
func (a answer) plain(t testing.TB) []byte {
	t.Helper()
	if a.header.Get("Content-Encoding") != "gzip" {
		return a.body
	}
	unpacker, err := gzip.NewReader(bytes.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(unpacker)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// errorBody is the error object.
type errorBody struct {
	Error struct {
		Code      string
		Message   string
		RequestID string
		Details   []struct {
			Path    []any
			Message string
		}
	}
}

func (a answer) fault(t testing.TB) errorBody {
	t.Helper()
	var body errorBody
	decoder := json.NewDecoder(bytes.NewReader(a.plain(t)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		t.Fatalf("the body of a %d is no error object: %v: %s", a.status, err, a.body)
	}
	return body
}

// listed is the body of a list.
type listed struct {
	Data []map[string]any
	Meta struct {
		Total         int
		NextCursor    *int
		GeneratedAt   string
		QuoteCurrency string
	}
	Operation string
}

func (a answer) list(t testing.TB) listed {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	var body listed
	if err := json.Unmarshal(a.plain(t), &body); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return body
}
