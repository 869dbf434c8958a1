package httpapi

import (
	"bytes"
	"net/netip"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/params"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// setHeaderLines sets all header lines of a 200 or 304 of a data operation at once. (Data operations are all of /v1
// except /v1/account.) Setting a dozen headers one by one would take longer than the rest of the request: for each
// header the HTTP library (fasthttp) searches the headers already set, checks the value, and copies name and value
// twice.
//
// Danger: the HTTP library does not check header names. A name can therefore contain whole lines, which must not
// contain text from a request.

// headBufferBytes is the size of the stack buffer for header lines. A longer head is allocated, but only a long
// KeysLink causes that.
const headBufferBytes = 1536

// constantHeaders are header lines that all responses of a kind share, without Content-Type.
type constantHeaders struct {
	withBody    []byte // of a 200 with data
	withoutBody []byte // of a 304
	errors      []byte // of errors, and of other responses without data
	accounts    []byte // of account operations: other origins' web pages must not read the response
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

// requestState is the state of a request in progress.
type requestState struct {
	requestData
	requestScratch
}

// requestData is the part cleared by begin: clearing it in place takes a hundred instructions less than a new state.
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
	limitsEnforced bool          // quotas apply: the response needs rate-limit headers for admission
	isShared       bool          // the response is the same for all callers, so caches may share it
	keyIgnored     bool          // the request's key is not usable, so it counts as anonymous
	headWritten    bool          // writeHead was called
	route          routeID       // for the counters
	id             RequestID     // set by appendHead; other responses have the id only in their header
}

// requestScratch is the part reused by the next request. sync.Pool usually keeps a requestState on one processor.
type requestScratch struct {
	out    []byte          // buffer for responses of the express path
	etag   []byte          // buffer for the ETag of a conversion in the express path
	body   []byte          // buffer for the body of a conversion in the express path
	holes  []rendered.Span // buffer for the holes of a conversion
	packed []byte          // buffer for the compressed body
}

// setCaller sets the caller from its address and the value of its Authorization header (nil without one). The caller
// shares no memory with the request.
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
	// keyIgnoredLine is the header line of a response to an unusable API key before keys are required. Such a request
	// is answered as an anonymous one.
	keyIgnoredLine = "X-Key-Status: ignored\r\n"
	noStore        = "no-store"
	methodsAllowed = "GET, HEAD, OPTIONS"
	// contentPolicy forbids a browser that shows a response as a page to execute or load anything in it.
	contentPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
	// exposedHeaders are the response headers that other origins' web pages may read.
	exposedHeaders = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, " +
		"Retry-After, Deprecation, Sunset, Link, ETag, X-Request-Id"
	// preflightSeconds is how long a browser may cache the response to OPTIONS.
	preflightSeconds = "86400"
	// preflightHeaders are the request headers that other origins' web pages may set. Browser libraries set some of
	// them on a GET; they are harmless.
	preflightHeaders = "Accept, Content-Type, If-None-Match, X-Request-Id"
	// preflightHeadersWithAuth replaces preflightHeaders if Config.AllowAuthorizationHeader is set.
	preflightHeadersWithAuth = preflightHeaders + ", Authorization"
)

// templateLines returns the headers common to all responses of the API, except Content-Type and X-Request-Id. The
// values are those of an error. hasAdmitter means that API keys are checked. Responses then depend on the key, so Vary
// names Authorization.
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

// bytesOf returns a string's bytes without a copy. Danger: do not change them.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }
