package conn

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/valyala/fasthttp"
)

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
