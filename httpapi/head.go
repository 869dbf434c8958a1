package httpapi

import (
	"bytes"
	"net/netip"
	"unsafe"

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
// values of KeysLink make it so long.
const headBufferBytes = 1536

// constantHeaders are the header lines that are the same in all responses of a kind, except Content-Type.
type constantHeaders struct {
	withBody    []byte // of a 200 with data
	withoutBody []byte // of a 304
	errors      []byte // of errors, and of other responses without data
	accounts    []byte // of account operations: a web page of another origin must not read the response
}

func newConstantHeaders(hasAdmitter bool) (c constantHeaders) {
	for _, line := range templateLines(hasAdmitter) {
		value := bytesOf(line[1])
		c.errors = appendHeaderLine(c.errors, line[0], value)
		if line[0] != fasthttp.HeaderCacheControl {
			c.withoutBody = appendHeaderLine(c.withoutBody, line[0], value)
		}
		switch line[0] {
		case fasthttp.HeaderAccessControlAllowOrigin, fasthttp.HeaderAccessControlExposeHeaders:
		case headerResourcePolicy:
			c.accounts = appendHeaderLine(c.accounts, line[0], bytesOf("same-origin"))
		default:
			c.accounts = appendHeaderLine(c.accounts, line[0], value)
		}
	}
	c.withBody = append(appendHeaderLine(nil, fasthttp.HeaderContentType, bytesOf(contentTypeJSON)), c.withoutBody...)
	return c
}

func appendHeaderLine(dst []byte, name string, value []byte) []byte {
	dst = append(append(dst, name...), ": "...)
	return append(append(dst, value...), "\r\n"...)
}

// setHeaderLines adds whole lines, each with CR LF, to a header. Header.Peek does not find these headers.
func setHeaderLines(header *fasthttp.ResponseHeader, lines []byte) {
	lines = lines[:len(lines)-len("\r\n")]
	colon := max(0, bytes.LastIndexByte(lines, '\n'))
	colon += bytes.IndexByte(lines[colon:], ':')
	header.SetCanonical(lines[:colon], lines[colon+len(": "):])
}

// requestState is the state of a request while it is answered.
type requestState struct {
	requestData
	requestScratch
}

// requestData is the part that begin clears: to clear it in place takes a hundred instructions less than a new state.
type requestData struct {
	conn.HeadInfo
	conn           *conn.Conn // nil if the connection was not accepted by a conn.Listener, as in some tests
	caller         account.Caller
	now            requestTime
	query          params.Query
	response       dataResponse
	admitDone      bool // admit was called
	asked          bool // Config.Admitter was asked
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
	out    []byte          // buffer for responses of the express path
	etag   []byte          // buffer for the ETag of a conversion in the express path
	body   []byte          // buffer for the body of a conversion in the express path
	holes  []rendered.Span // buffer for the holes of a conversion
	packed []byte          // buffer for the compressed body
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

// setCaller sets the caller: its address, and the value of its Authorization header, nil without the header. The caller
// does not point into the request.
func (a *requestState) setCaller(address netip.Addr, authorization []byte) {
	a.caller.Address = address
	if authorization == nil {
		return
	}
	if token, ok := bearerText(authorization); ok {
		a.caller.Key, a.caller.HasKey = account.ParseKey(token)
	}
	a.caller.HasMalformedKey = !a.caller.HasKey
}

// charged reports whether the request was for data and was admitted.
func (a *requestState) charged() bool {
	return a.admitDone && a.admitErr == nil && (!a.limitsEnforced || a.admission.Admitted)
}

// Names and values of headers.
const (
	headerRequestID      = "X-Request-Id"
	contentTypeJSON      = "application/json; charset=utf-8"
	headerResourcePolicy = "Cross-Origin-Resource-Policy"
	// keyIgnoredLine is the header line of a response to an unusable API key before keys are required. The request was
	// answered as an anonymous one.
	keyIgnoredLine = "X-Key-Status: ignored\r\n"
	noStore        = "no-store"
	methodsAllowed = "GET, HEAD, OPTIONS"
	// contentPolicy is for a browser that shows a response as a page. The browser must not execute or load anything in it.
	contentPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
	// exposedHeaders are the headers of a response that a web page of another origin may read.
	exposedHeaders = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, " +
		"Retry-After, Deprecation, Sunset, Link, ETag, X-Request-Id"
	// preflightSeconds is the time for which a browser may cache the response to OPTIONS.
	preflightSeconds = "86400"
	// preflightHeaders are the headers of a request that a web page of another origin may set. Browser libraries set some
	// of them on a GET; they are harmless.
	preflightHeaders = "Accept, Content-Type, If-None-Match, X-Request-Id"
	// preflightHeadersWithAuth is used instead of preflightHeaders if Config.AllowAuthorizationHeader is set.
	preflightHeadersWithAuth = preflightHeaders + ", Authorization"
)

// templateLines returns the names and values of the headers that all responses of the API have, except Content-Type
// and X-Request-Id.
// The values are those for an error. hasAdmitter means that API keys are checked. The response then depends on the key,
// so Vary names Authorization.
func templateLines(hasAdmitter bool) [][2]string {
	vary := fasthttp.HeaderAcceptEncoding
	if hasAdmitter {
		vary += ", " + fasthttp.HeaderAuthorization
	}
	return [][2]string{
		{fasthttp.HeaderCacheControl, noStore},
		{fasthttp.HeaderVary, vary},
		{fasthttp.HeaderAccessControlAllowOrigin, "*"},
		{fasthttp.HeaderAccessControlExposeHeaders, exposedHeaders},
		{fasthttp.HeaderXContentTypeOptions, "nosniff"},
		{fasthttp.HeaderContentSecurityPolicy, contentPolicy},
		{fasthttp.HeaderReferrerPolicy, "no-referrer"},
		{headerResourcePolicy, "cross-origin"},
	}
}

// bytesOf returns the bytes of a string without a copy. Danger: the caller must not change them.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }
