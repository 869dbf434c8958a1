package httpapi

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// The head of a good answer is written in one piece. Most of its lines are the same for all answers, others are the same for all
// answers of a page, and setting a dozen headers one by one costs more than all the rest of a request: the library looks for each
// name among those that are there, cleans its value and copies both twice.
//
// Danger: the library takes the name of a header as it is, so that lines can pass for the beginning of a name. Nothing of a request
// may get into them.

// headRoom is the buffer of a head on the stack: more than any needs whose links to pages are not very long.
const headRoom = 1536

// constants are lines that never change.
type constants struct {
	full  []byte // of an answer with a body
	empty []byte // of a 304
}

// newConstants are the lines that both templates of an answer share, without those that each answer has of its own.
func newConstants(gated bool) constants {
	var c constants
	for _, line := range templateLines(gated) {
		if line[0] != headerRequestID && line[0] != fasthttp.HeaderCacheControl {
			c.empty = appendLine(c.empty, line[0], bytesOf(line[1]))
		}
	}
	c.full = append(appendLine(nil, fasthttp.HeaderContentType, bytesOf(contentTypeJSON)), c.empty...)
	return c
}

func appendLine(dst []byte, name string, value []byte) []byte {
	dst = append(append(dst, name...), ": "...)
	return append(append(dst, value...), "\r\n"...)
}

// setLines puts whole lines, each with its CR LF, on an answer. The value of the last one must not hold a colon. Header.Peek finds none
// of them.
func setLines(header *fasthttp.ResponseHeader, lines []byte) {
	lines = lines[:len(lines)-len("\r\n")]
	colon := bytes.LastIndexByte(lines, ':')
	header.SetCanonical(lines[:colon], lines[colon+len(": "):])
}

// asked is a data request on its way to its answer.
type asked struct {
	conn.Framing
	conn    *conn.Conn // nil: one that no listener of ours gave
	on      *connState // of conn; nil without it
	now     instant
	plan    *plan        // of a question that was asked before, else nil
	hash    uint64       // of the request target, for a new plan
	query   params.Query // as it was read without a plan
	grant   account.Grant
	limited bool   // the answer says where its caller stands: grant
	headed  bool   // the head is written, limits included
	row     row    // where it is counted
	id      string // of the request, where the head is written in one piece
}

// writeHead writes the head of a 200 or, without a body, of a 304. coding is "" or gzip.
func (s *Server) writeHead(ctx *fasthttp.RequestCtx, a *asked, etag []byte, maxAge int, coding string) {
	var room [headRoom]byte
	a.id = s.config.RequestID()
	lines := appendLine(room[:0], headerRequestID, bytesOf(a.id))
	lines = append(lines, s.maxAges[maxAge]...)
	lines = appendLine(lines, fasthttp.HeaderETag, etag)
	if coding != "" {
		lines = appendLine(lines, fasthttp.HeaderContentEncoding, bytesOf(coding))
	}
	if a.limited {
		lines = s.appendLimits(lines, &a.grant.Verdict, a.now.at)
	}
	if n := s.notice(); n != nil {
		lines = append(lines, n.lines...)
	}
	constant := s.constants.full
	if ctx.Response.StatusCode() == fasthttp.StatusNotModified {
		constant = s.constants.empty
	}
	ctx.Response.Header.SetNoDefaultContentType(true) // it is among the constants
	setLines(&ctx.Response.Header, append(lines, constant...))
	if s.harness != nil {
		s.date(&ctx.Response.Header)
	}
	a.headed = true
}

// notModified ends the answer with 304 when the caller has it already (Q12).
func (s *Server) notModified(ctx *fasthttp.RequestCtx, a *asked, etag []byte, maxAge int) bool {
	if !a.Conditional || !fields.NoneMatch(ctx.Request.Header.PeekAll(fasthttp.HeaderIfNoneMatch), etag) {
		return false
	}
	ctx.SetStatusCode(fasthttp.StatusNotModified)
	s.writeHead(ctx, a, etag, maxAge, "")
	return true
}

// coding is how a body of so many bytes is sent: gzip, or "" for as it is (Q11).
func (a *asked) coding(ctx *fasthttp.RequestCtx, size int) string {
	if a.Encodings == 0 || size < gzipBytesMin {
		return ""
	}
	one := [1][]byte{a.Encoding}
	lines := one[:]
	if a.Encodings > 1 {
		lines = ctx.Request.Header.PeekAll(fasthttp.HeaderAcceptEncoding)
	}
	if !fields.AcceptsGzip(lines) {
		return ""
	}
	return gzipCoding
}
