package httpapi

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// The head of a 200 or 304 is written in one piece. Most of its lines are the same for all answers, others are the
// same for all answers of a page. Setting a dozen headers one by one would cost more than the rest of a request: for
// each header, the library searches the names that are set, cleans the value and copies both twice.
//
// Danger: the library does not check the name of a header, so that whole lines can be passed as part of a name. Such
// lines must not hold any text of a request.

// headBufferBytes is the buffer of a head on the stack: more than any needs whose links to pages are not very long.
const headBufferBytes = 1536

// constantHeaders are lines that never change.
type constantHeaders struct {
	withBody    []byte // of an answer with a body
	withoutBody []byte // of a 304
}

// newConstantHeaders are the lines that both templates of an answer share, without those that each answer has of
// its own.
func newConstantHeaders(gated bool) constantHeaders {
	var c constantHeaders
	for _, line := range templateLines(gated) {
		if line[0] != headerRequestID && line[0] != fasthttp.HeaderCacheControl {
			c.withoutBody = appendHeaderLine(c.withoutBody, line[0], bytesOf(line[1]))
		}
	}
	c.withBody = append(appendHeaderLine(nil, fasthttp.HeaderContentType, bytesOf(contentTypeJSON)), c.withoutBody...)
	return c
}

func appendHeaderLine(dst []byte, name string, value []byte) []byte {
	dst = append(append(dst, name...), ": "...)
	return append(append(dst, value...), "\r\n"...)
}

// setHeaderLines puts whole lines, each with its CR LF, on an answer. The value of the last one must not hold a
// colon. Header.Peek finds none of them.
func setHeaderLines(header *fasthttp.ResponseHeader, lines []byte) {
	lines = lines[:len(lines)-len("\r\n")]
	colon := bytes.LastIndexByte(lines, ':')
	header.SetCanonical(lines[:colon], lines[colon+len(": "):])
}

// requestState is a data request on its way to its answer.
type requestState struct {
	conn.HeadInfo
	conn        *conn.Conn // nil: one that no listener of ours gave
	connState   *connState // of conn; nil without it
	now         requestTime
	query       params.Query
	asked       bool // the admitter was asked, or need not be
	admission   account.Admission
	refusal     error     // of the admitter
	tellsLimits bool      // the answer says where its caller stands: admission
	headWritten bool      // the head is written, limits included
	route       routeID   // where it is counted
	id          RequestID // where the head is written in one piece

	expressed bool // the express path has asked the load shedder
	shed      bool // which refuses the request
	panicked  *handedPanic

	requestScratch
}

// requestScratch is what one request leaves to the next that has the same requestState, as a rule on the same
// processor.
type requestScratch struct {
	shard   counterShard // where it is counted
	numbers numberBlock  // for ids
	out     []byte       // the answer of the express path
}

// appendHead appends the lines of a 200 or a 304 that differ between answers. coding is "" or gzip.
func (s *Server) appendHead(lines []byte, a *requestState, etag []byte, maxAge int, coding string) []byte {
	a.id = s.newID(a)
	lines = appendHeaderLine(lines, headerRequestID, a.id[:])
	lines = append(lines, s.cacheControlLines[maxAge]...)
	lines = appendHeaderLine(lines, fasthttp.HeaderETag, etag)
	if coding != "" {
		lines = appendHeaderLine(lines, fasthttp.HeaderContentEncoding, bytesOf(coding))
	}
	if a.tellsLimits {
		lines = s.appendLimits(lines, &a.admission.QuotaResult, a.now.nanos)
	}
	if n := s.deprecationNotice(); n != nil {
		lines = append(lines, n.lines...)
	}
	return lines
}

// writeHead writes the head of a 200 or, without a body, of a 304. coding is "" or gzip.
func (s *Server) writeHead(ctx *fasthttp.RequestCtx, a *requestState, etag []byte, maxAge int, coding string) {
	var room [headBufferBytes]byte
	lines := s.appendHead(room[:0], a, etag, maxAge, coding)
	constant := s.constantHeaders.withBody
	if ctx.Response.StatusCode() == fasthttp.StatusNotModified {
		constant = s.constantHeaders.withoutBody
	}
	ctx.Response.Header.SetNoDefaultContentType(true) // it is among the constants
	setHeaderLines(&ctx.Response.Header, append(lines, constant...))
	if s.harness != nil {
		s.date(&ctx.Response.Header)
	}
	a.headWritten = true
}

// notModified ends the answer with 304 when the caller has it already.
func (s *Server) notModified(ctx *fasthttp.RequestCtx, a *requestState, etag []byte, maxAge int) bool {
	if !a.HasIfNoneMatch || !fields.IfNoneMatchHits(ctx.Request.Header.PeekAll(fasthttp.HeaderIfNoneMatch), etag) {
		return false
	}
	ctx.SetStatusCode(fasthttp.StatusNotModified)
	s.writeHead(ctx, a, etag, maxAge, "")
	return true
}

// acceptsGzip tells whether the client takes gzip.
func (a *requestState) acceptsGzip(ctx *fasthttp.RequestCtx) bool {
	if a.AcceptEncodingLines == 0 {
		return false
	}
	one := [1][]byte{a.AcceptEncoding}
	lines := one[:]
	if a.AcceptEncodingLines > 1 {
		lines = ctx.Request.Header.PeekAll(fasthttp.HeaderAcceptEncoding)
	}
	return fields.AcceptsGzip(lines)
}
