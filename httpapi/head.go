package httpapi

import (
	"bytes"
	"fmt"
	"net/netip"
	"strconv"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/params"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// All header lines of a 200 or 304 with data are set at once. Setting a dozen headers one by one would take longer than
// the rest of the request: for each header the HTTP library (fasthttp) searches the headers already set, checks the
// value, and copies name and value twice. So setHeaderLines sets a single header, whose name contains all the lines
// except the last value. The library does not check header names. Danger: the lines must not contain text from a
// request.

// headBufferBytes is the size of the stack buffer for header lines. Only a long Config.KeysLink needs more.
const headBufferBytes = 1536

// constantHeaders are the header lines that all responses of a kind share.
type constantHeaders struct {
	withBody    []byte // of a 200 with data; only these include Content-Type
	withoutBody []byte // of a 304
	errors      []byte // of errors, and of other responses without data
	accounts    []byte // of account operations: web pages of other origins must not read the response
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
	conn.HeadInfo
	conn           *conn.Conn // nil if the connection was not accepted by a conn.Listener, as in some tests
	caller         account.Caller
	now            int64          // time of the response, in Unix nanoseconds; set by setTime
	second         *currentSecond // contains now
	query          params.Query
	response       dataResponse
	admitDone      bool // admit was called
	asked          bool // admit called Config.Admitter
	admission      account.Admission
	panicked       *expressPanic // the express path panicked
	admitErr       error         // from Config.Admitter
	limitsEnforced bool          // quotas apply: the response needs rate-limit headers for admission
	isShared       bool          // the response is the same for all callers, so a shared cache may store it
	keyIgnored     bool          // the key is not usable, so the request counts as anonymous
	headWritten    bool          // writeHead was called
	route          int           // for the counters: index of routeNames
	id             RequestID     // set by appendHead; for other responses idOf returns the id

	// The next request reuses these buffers.
	out    []byte          // responses of the express path
	etag   []byte          // ETag of a conversion
	body   []byte          // body of a conversion
	holes  []rendered.Span // the parts of body that differ between conversions: amounts and generatedAt
	packed []byte          // compressed body of a conversion
}

// begin clears a for a new request on c. Clearing takes a hundred instructions less than allocating a new state.
func (a *requestState) begin(c *conn.Conn) {
	*a = requestState{conn: c, out: a.out, etag: a.etag, body: a.body, holes: a.holes, packed: a.packed}
}

// ranking returns the query for /v1/convert if forConvert is true, else for /v1/rates/best.
func (a *requestState) ranking(forConvert bool) engine.RankingQuery {
	q := &a.query
	return engine.RankingQuery{Filter: q.Filter, PageRequest: q.PageRequest, Operation: q.Operation, ForConvert: forConvert, At: a.now}
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
	// keyIgnoredLine is a header line of the response to a request with an unusable API key, while keys are not
	// required. Such a request counts as anonymous.
	keyIgnoredLine = "X-Key-Status: ignored\r\n"
	noStore        = "no-store"
	// exposedHeaders are the response headers that web pages of other origins may read.
	exposedHeaders = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, " +
		"Retry-After, Deprecation, Sunset, Link, ETag, X-Request-Id"
)

// templateLines returns the headers common to all responses of the API, except Content-Type and X-Request-Id, with the
// values for an error response. hasAdmitter means that API keys are checked; then the response depends on the key, and
// Vary includes Authorization.
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
		{fasthttp.HeaderContentSecurityPolicy, rendered.ContentPolicy},
		{fasthttp.HeaderReferrerPolicy, "no-referrer"},
		{headerResourcePolicy, "cross-origin"},
	}
}

// bytesOf returns a string's bytes without a copy. Danger: do not change them.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

const (
	// maxAgeSeconds is the maximum max-age of a response, and staleSecondsMax the maximum stale-while-revalidate.
	maxAgeSeconds   = 60
	staleSecondsMax = 60
)

// currentSecond contains values common to all requests in the current second.
type currentSecond struct {
	rendered.Second
	date  []byte // in the format of the Date header
	today engine.Date
	// nextChange is the next time at which any response may change, in Unix nanoseconds: the next collection of rates
	// (engine.NextRefresh) or the next midnight, whichever is earlier.
	nextChange int64
}

func newCurrentSecond(now time.Time) *currentSecond {
	m := &currentSecond{Second: rendered.SecondOf(now), date: fasthttp.AppendHTTPDate(nil, now), today: engine.DateOf(now)}
	nextChange := engine.NextRefresh(now)
	if midnight := engine.NextMidnight(now); midnight.Before(nextChange) {
		nextChange = midnight
	}
	m.nextChange = nextChange.UnixNano()
	return m
}

// newCacheControl returns the Cache-Control header lines, by the number of seconds during which the response cannot
// change: up to maxAgeSeconds + staleSecondsMax. shared means that responses are the same for all callers: a cache in
// front of the node may then store them, and may serve them while it revalidates (stale-while-revalidate).
func newCacheControl(shared bool) (lines [][]byte) {
	for seconds := range maxAgeSeconds + staleSecondsMax + 1 {
		value := "private, max-age=" + strconv.Itoa(min(seconds, maxAgeSeconds))
		if shared {
			value = fmt.Sprintf("public, max-age=%d, stale-while-revalidate=%d", min(seconds, maxAgeSeconds), max(0, seconds-maxAgeSeconds))
		}
		lines = append(lines, appendHeaderLine(nil, fasthttp.HeaderCacheControl, bytesOf(value)))
	}
	return lines
}
