package httpapi

import (
	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

const expectContinue = "100-continue"

// beforeBody is called when the head of a request has been read. It makes the HTTP library (fasthttp) understand
// Expect in any case, and ignore it where RFC 9110 10.1.1 says so: in HTTP/1.0, and without a body. It also keeps the
// library from reading a chunked body, because serve refuses the request whatever the body is.
func beforeBody(header *fasthttp.RequestHeader) (unchanged fasthttp.RequestConfig) {
	const chunked = -1
	if header.ContentLength() == chunked {
		header.SetContentLength(0)
	}
	switch expect := header.Peek(fasthttp.HeaderExpect); {
	case len(expect) == 0:
	case header.ContentLength() <= 0 || !header.IsHTTP11():
		header.Del(fasthttp.HeaderExpect)
	case fields.EqualFold(expect, expectContinue):
		header.Set(fasthttp.HeaderExpect, expectContinue)
	}
	return unchanged
}
