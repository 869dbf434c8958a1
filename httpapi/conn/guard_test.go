package conn

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

const guardRequest = "GET /v1/rates/best?currency=USD&operation=buy&limit=10 HTTP/1.1\r\n" +
	"Host: api.example.do\r\n" +
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n" +
	"Accept: application/json\r\n" +
	"Accept-Encoding: gzip\r\n" +
	"Authorization: Bearer trd_live_abcdefgh_0123456789abcdef0123456789abcdef\r\n\r\n"

// parseGuarded returns the context that a handler would get, without the body.
func parseGuarded(t testing.TB, request string) *fasthttp.RequestCtx {
	t.Helper()
	ctx := new(fasthttp.RequestCtx)
	ok(t, ctx.Request.Header.Read(bufio.NewReader(strings.NewReader(request))))
	return ctx
}

// TestE1_GuardReasons: each refusal names its own reason.
func TestE1_GuardReasons(t *testing.T) {
	const host = "Host: a\r\n"
	tests := []struct{ name, request, want string }{
		{"ordinary", guardRequest, ""},
		{"http10 bare", "GET / HTTP/1.0\r\n\r\n", ""},
		{"chunked", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n", ""},
		{"version", "GET / HTTP/9.9\r\n" + host + "\r\n", reasonVersion},
		{"target", "GET ftp://a/ HTTP/1.1\r\n" + host + "\r\n", reasonTarget},
		{"target userinfo", "GET http://u@a/ HTTP/1.1\r\n" + host + "\r\n", reasonTarget},
		{"target byte", "GET /\xe9 HTTP/1.1\r\n" + host + "\r\n", reasonTargetByte},
		{"target hash", "GET /#a HTTP/1.1\r\n" + host + "\r\n", reasonTargetByte},
		{"asterisk", "GET * HTTP/1.1\r\n" + host + "\r\n", reasonAsterisk},
		{"bare lf", "GET / HTTP/1.1\r\nX-A: b\n" + host + "\r\n", reasonLineEnd},
		{"fold", "GET / HTTP/1.1\r\n" + host + "X-A: b\r\n c\r\n\r\n", reasonFold},
		{"name", "GET / HTTP/1.1\r\n" + host + "X A: b\r\n\r\n", reasonName},
		{"repeated", "GET / HTTP/1.1\r\n" + host + "Authorization: a\r\nauthorization: a\r\n\r\n", reasonRepeated},
		{"host", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", reasonHost},
		{"host on http10", "GET / HTTP/1.0\r\nHost: a/b\r\n\r\n", reasonHost},
		{"two lengths", "POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", reasonTwoLengths},
		{"coding", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: identity\r\n\r\n", reasonCoding},
		{"body on get", "GET / HTTP/1.1\r\n" + host + "Content-Length: 1\r\n\r\n", reasonBodyForRead},
		{"chunked head", "HEAD / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n", reasonBodyForRead},
	}
	for _, test := range tests {
		if got := Malformed(parseGuarded(t, test.request), new(HeadInfo)); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// TestE1_GuardWithoutLibrary: what the library refuses today the guard refuses by itself where it sees it.
func TestE1_GuardWithoutLibrary(t *testing.T) {
	tests := []struct{ raw, want string }{
		{"Host: a\r\nHost: a\r\n\r\n", reasonRepeated},
		{"Content-Length: 1\r\nContent-Length: 1\r\n\r\n", reasonRepeated},
		{"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", reasonRepeated},
		{"Host : a\r\n\r\n", reasonName},
		{"Host\t: a\r\n\r\n", reasonName},
		{": a\r\n\r\n", reasonName},
		{"Host\r\n\r\n", reasonName},
		{" Host: a\r\n\r\n", reasonFold},
		{"\n", reasonLineEnd},
		{"Host: a", reasonLineEnd},
		{"", ""},
	}
	for _, test := range tests {
		var f HeadInfo
		if got := f.scan([]byte(test.raw)); got != test.want {
			t.Errorf("scan(%q) = %q, want %q", test.raw, got, test.want)
		}
	}
	for _, length := range []string{"", "+1", "1 2", "0x1"} {
		f := HeadInfo{seen: seenLength, length: []byte(length)}
		if got := f.checkBody(true, false); got != reasonLength {
			t.Errorf("length %q: got %q, want %q", length, got, reasonLength)
		}
	}
	f := HeadInfo{seen: seenCoding, coding: []byte("chunked")}
	if got := f.checkBody(false, false); got != reasonCoding {
		t.Errorf("chunked on HTTP/1.0: got %q, want %q", got, reasonCoding)
	}
	if got := (&HeadInfo{}).checkHost(true); got != reasonNoHost {
		t.Errorf("no host: got %q, want %q", got, reasonNoHost)
	}
}

// TestE1_TargetBytes: eight bytes at a time means the same as one at a time.
func TestE1_TargetBytes(t *testing.T) {
	for c := range 256 {
		for length := 1; length <= 20; length++ {
			for at := range length {
				target := bytes.Repeat([]byte{'a'}, length)
				target[at] = byte(c)
				want := c > ' ' && c < 0x7f && c != '#'
				if got := visibleTarget(target); got != want {
					t.Fatalf("byte %#x at %d of %d: %v, want %v", c, at, length, got, want)
				}
			}
		}
	}
}

// FuzzPlainGet: what ParsePlainGet accepts, fasthttp and Malformed accept too, with the same end and the same values.
func FuzzPlainGet(f *testing.F) {
	for _, lines := range []string{
		"Host: a", "Host: a\r\nAuthorization: Bearer x\r\nAccept-Encoding: gzip", "host: a\r\nConnection: Keep-Alive\r\nIf-None-Match: *", "Host: a\r\nX-Forwarded-For: 1.2.3.4",
		"Host: a\r\nCookie: a=b; c", "Host: a\r\nContent-Length: 0", "Host: a\r\nTrailer: x", "Host: a\r\nTE: trailers", "Host: a\r\nX-Y:", "Host: [::1]:80\r\nUpgrade: h2c", "Host: [::ffff:127...001]", "Host: a\r\n X: y", "Host: a\r\nTransfer-Encoding: chunked",
		"Host: a\r\nConnection: close", "Host: a\r\nProxy-Connection: close", "Host: a\r\nExpect: 100-continue", "Host: a\r\nRange: bytes=0-1",
	} {
		f.Add([]byte("GET /v1/rates?limit=3 HTTP/1.1\r\n" + lines + "\r\n\r\n"))
	}
	f.Fuzz(func(t *testing.T, read []byte) {
		g, ok := ParsePlainGet(read)
		if !ok {
			return
		}
		ctx, info := new(fasthttp.RequestCtx), HeadInfo{}
		r := bufio.NewReaderSize(bytes.NewReader(read[:g.Length]), 1<<16)
		if err := ctx.Request.Read(r); err != nil || r.Buffered() > 0 {
			t.Fatalf("%q: fasthttp: %v, %d bytes left", read, err, r.Buffered())
		}
		header := &ctx.Request.Header
		if reason := Malformed(ctx, &info); reason != "" || info.HasBody() || header.ConnectionClose() || ctx.Response.ConnectionClose() || ctx.Request.MayContinue() || len(ctx.Request.Body()) > 0 {
			t.Fatalf("%q: %s", read, reason)
		}
		if !header.IsGet() || !bytes.Equal(header.RequestURI(), g.Target) || !bytes.Equal(info.Authorization, g.Authorization) || !bytes.Equal(header.Peek("Accept-Encoding"), g.AcceptEncoding) ||
			!bytes.Equal(header.Peek("If-None-Match"), g.IfNoneMatch) || !bytes.Equal(header.Peek("X-Forwarded-For"), g.XForwardedFor) {
			t.Fatalf("%q: other values", read)
		}
	})
}
