package httpapi

import (
	"bytes"
	"net/netip"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/params"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// All header lines of a 200 or 304 of a data operation (all of /v1 except /v1/account) are set at once, by
// setHeaderLines. Setting a dozen headers one by one would take longer than the rest of the request: for each of them
// the HTTP library (fasthttp) searches the headers that are already set, checks the value, and copies name and value
// twice.
//
// Danger: the HTTP library does not check header names, so a name can contain whole lines. Such lines must not contain
// text from a request.

// headBufferBytes is the size of the buffer for header lines on the stack. A longer head is allocated, but only long
// values of DeprecationLink and SunsetLink make it so long.
const headBufferBytes = 1536

// constantHeaders are the header lines that are the same in all 200 or all 304 responses.
type constantHeaders struct {
	withBody    []byte // header lines of a 200
	withoutBody []byte // header lines of a 304
}

func newConstantHeaders(hasAdmitter bool) constantHeaders {
	var c constantHeaders
	for _, line := range templateLines(hasAdmitter) {
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

// setHeaderLines adds whole lines, each with CR LF, to a header. The value of the last line must not contain a colon.
// Header.Peek does not find these headers.
func setHeaderLines(header *fasthttp.ResponseHeader, lines []byte) {
	lines = lines[:len(lines)-len("\r\n")]
	colon := bytes.LastIndexByte(lines, ':')
	header.SetCanonical(lines[:colon], lines[colon+len(": "):])
}

// requestState is the state of a request while it is answered.
type requestState struct {
	requestData
	requestScratch
}

type requestData struct {
	conn.HeadInfo
	conn           *conn.Conn // nil if the connection was not accepted by a conn.Listener, as in some tests
	address        netip.Addr // of the client
	now            requestTime
	query          params.Query
	admitDone      bool // admit was called
	asked, hasKey  bool // Config.Admitter was asked, about a key
	admission      account.Admission
	panicked       *expressPanic // the express path panicked
	admitErr       error         // from Config.Admitter
	limitsEnforced bool          // quotas apply: the response must have the rate-limit headers for admission
	isShared       bool          // the response is the same for all callers: caches may share it
	keyIgnored     bool          // the request has a key that is not usable; it counts as anonymous
	headWritten    bool          // writeHead was called
	route          routeID       // for the counters
	id             RequestID     // set by appendHead; other responses have the id only in their header
}

// requestScratch is the part of a requestState that the next request reuses. sync.Pool usually keeps a requestState on
// one processor.
type requestScratch struct {
	shard   counterShard
	numbers numberBlock
	out     []byte          // buffer for responses of the express path
	etag    []byte          // buffer for the ETag of a conversion in the express path
	body    []byte          // buffer for the body of a conversion in the express path
	holes   []rendered.Span // buffer for the holes of a conversion
	packed  []byte          // buffer for the compressed body
}

// appendHead appends the header lines of a 200 or 304 that are not in constantHeaders. coding is "" or "gzip".
func (s *Server) appendHead(lines []byte, a *requestState, etag []byte, unchangedFor int, coding string) []byte {
	a.id = s.newID(a)
	return s.appendCallerHeaders(s.appendPageHeaders(lines, a, etag, unchangedFor, coding), a)
}

// appendPageHeaders appends the header line with the request id, and those that are the same for all callers.
func (s *Server) appendPageHeaders(lines []byte, a *requestState, etag []byte, unchangedFor int, coding string) []byte {
	lines = appendHeaderLine(lines, headerRequestID, a.id[:])
	caching := &s.privateCaching
	if a.isShared {
		caching = &s.sharedCaching
	}
	lines = append(lines, caching[unchangedFor]...)
	lines = appendHeaderLine(lines, fasthttp.HeaderETag, etag)
	if coding != "" {
		lines = appendHeaderLine(lines, fasthttp.HeaderContentEncoding, bytesOf(coding))
	}
	return lines
}

// appendCallerHeaders appends the header lines that depend on the caller: those of the quotas, and a notice that keys
// will be required.
func (s *Server) appendCallerHeaders(lines []byte, a *requestState) []byte {
	if a.limitsEnforced {
		lines = s.appendLimits(lines, a)
	}
	if n := s.deprecationNotice(); n != nil {
		lines = append(lines, n.lines...)
	}
	return lines
}

// writeHead sets the header lines of a 200 or 304. coding is "" or "gzip".
func (s *Server) writeHead(ctx *fasthttp.RequestCtx, a *requestState, etag []byte, unchangedFor int, coding string) {
	var room [headBufferBytes]byte
	lines := s.appendHead(room[:0], a, etag, unchangedFor, coding)
	constant := s.constantHeaders.withBody
	if ctx.Response.StatusCode() == fasthttp.StatusNotModified {
		constant = s.constantHeaders.withoutBody
	}
	ctx.Response.Header.SetNoDefaultContentType(true) // Content-Type is in constantHeaders
	setHeaderLines(&ctx.Response.Header, append(lines, constant...))
	if s.harness != nil {
		s.date(&ctx.Response.Header)
	}
	a.headWritten = true
}

// notModified answers 304 and returns true if the client has the response with this ETag.
func (s *Server) notModified(ctx *fasthttp.RequestCtx, a *requestState, etag []byte, unchangedFor int) bool {
	if !a.HasIfNoneMatch || !fields.IfNoneMatchHits(ctx.Request.Header.PeekAll(fasthttp.HeaderIfNoneMatch), etag) {
		return false
	}
	ctx.SetStatusCode(fasthttp.StatusNotModified)
	s.writeHead(ctx, a, etag, unchangedFor, "")
	return true
}

// acceptsGzip reports whether the client accepts gzip.
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
