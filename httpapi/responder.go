package httpapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/counters"
	"github.com/tasard/tasard/httpapi/internal/encode"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/params"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// responder contains the code common to all responses: request ids, times, heads and errors. It is safe for concurrent
// use.
type responder struct {
	config                        Config // with the defaults filled in
	proxies                       fields.TrustedProxies
	load                          *serverLoad
	counters                      *counters.Counters
	routeNames                    []string // by routeID
	constantHeaders               constantHeaders
	privateCaching, sharedCaching [][]byte                // see newCacheControl
	blank                         fasthttp.ResponseHeader // an empty header; with a Harness also without Date
	blankOnce                     sync.Once
	currentSecond                 atomic.Pointer[currentSecond]
	compressor                    rendered.Compressor
	requestStates                 sync.Pool // of *requestState
}

// newResponder returns a responder. c has its defaults filled in.
func newResponder(c Config) *responder {
	w := &responder{
		config: c, proxies: slices.Clone(c.TrustedProxies), routeNames: routeNames(),
		load:            &serverLoad{clock: c.Clock, conns: new(conn.Counts), connsMax: c.Limits.ConnsMax},
		constantHeaders: newConstantHeaders(c.Admitter != nil), privateCaching: newCacheControl(false), sharedCaching: newCacheControl(true),
	}
	w.counters = counters.New(w.routeNames, encode.Codes())
	w.requestStates.New = func() any { return &requestState{} }
	return w
}

// newRequestState returns the state of a new request.
func (w *responder) newRequestState(c *conn.Conn) *requestState {
	a := w.requestStates.Get().(*requestState)
	a.begin(c)
	return a
}

// setTime sets the time of the response.
func (w *responder) setTime(a *requestState, now time.Time) {
	a.now, a.second = now.UnixNano(), w.currentSecond.Load()
	if a.second == nil || a.second.Unix != now.Unix() {
		a.second = newCurrentSecond(now)
		w.currentSecond.Store(a.second)
	}
}

// startResponse sets the request id and the common headers of a response. Repeated calls do nothing. For the 200 and
// 304 responses of data operations, call writeHead instead.
func (w *responder) startResponse(ctx *fasthttp.RequestCtx) {
	if w.idOf(ctx) != nil {
		return
	}
	header := &ctx.Response.Header
	header.SetNoDefaultContentType(true)
	header.SetContentType(contentTypeJSON)
	id := w.config.RequestID()
	header.SetCanonical(bytesOf(headerRequestID), id[:])
	lines := w.constantHeaders.errors
	if w.config.Accounts != nil && isAccountTarget(ctx.Request.Header.RequestURI()) {
		lines = w.constantHeaders.accounts
	}
	w.setHeaderLines(header, w.appendDeprecation(lines[:len(lines):len(lines)]))
}

// setHeaderLines calls the function setHeaderLines. With a Harness it also adds the Date header.
func (w *responder) setHeaderLines(header *fasthttp.ResponseHeader, lines []byte) {
	if w.config.Harness != nil {
		lines = appendHeaderLine(slices.Clone(lines), fasthttp.HeaderDate, fasthttp.AppendHTTPDate(nil, w.config.Clock()))
	}
	setHeaderLines(header, lines)
}

// idOf returns the request id from startResponse, or nil before that.
func (w *responder) idOf(ctx *fasthttp.RequestCtx) []byte {
	return ctx.Response.Header.PeekCanonical(bytesOf(headerRequestID))
}

// answerError answers with an error of Config.Service, Config.Accounts or Config.Admitter. An unknown code becomes a
// 500. The cause of the error is logged, but not sent.
func (w *responder) answerError(ctx *fasthttp.RequestCtx, err error) {
	w.startResponse(ctx)
	var named *engine.Error
	if !errors.As(err, &named) {
		named = &engine.Error{Code: engine.CodeInternalError, Cause: err}
	}
	code, message := named.Code, named.Message
	answered, known := encode.Status(code)
	if !known || code == engine.CodeInternalError && named != engine.ErrOutcomeUnknown {
		code, message = engine.CodeInternalError, internalMessage
	}
	if answered == fasthttp.StatusInternalServerError || named.Cause != nil {
		w.config.Logger.LogAttrs(context.Background(), slog.LevelError, "a request could not be answered",
			slog.String("requestId", string(w.idOf(ctx))), slog.String("code", string(code)), slog.String("cause", err.Error()))
	}
	if code == engine.CodeOverloaded && !isAccountTarget(ctx.Request.Header.RequestURI()) { // not for account operations: a full mail queue gives the same code
		w.load.shedding.Report(w.load.clock())
	}
	switch answered {
	case fasthttp.StatusServiceUnavailable, fasthttp.StatusTooManyRequests:
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, fields.RetryAfter(named.RetryAfter))
	case fasthttp.StatusUnauthorized:
		w.challenge(ctx, code)
	}
	w.reject(ctx, code, message)
}

// reject answers with an API error without details.
func (w *responder) reject(ctx *fasthttp.RequestCtx, code engine.Code, message string) {
	w.rejectWithDetails(ctx, code, message, nil)
}

// rejectWithDetails answers with an API error. It panics if the code is not in statuses.
func (w *responder) rejectWithDetails(ctx *fasthttp.RequestCtx, code engine.Code, message string, details []params.Problem) {
	answered, known := encode.Status(code)
	if !known {
		panic("httpapi: no status for the code " + string(code))
	}
	w.counters.Error(code)
	w.startResponse(ctx)
	ctx.SetStatusCode(answered)
	ctx.Response.ResetBody()
	body := ctx.Response.SwapBody(nil)[:0]
	body = appendError(body, code, message, string(w.idOf(ctx)), details)
	ctx.Response.SwapBody(body)
	if len(body) >= rendered.GzipBytesMin && fields.AcceptsGzip(ctx.Request.Header.PeekAll(fasthttp.HeaderAcceptEncoding)) {
		ctx.Response.SetBodyRaw(w.compressor.Compress(body)) // the HTTP library's compression starts goroutines that never end
		ctx.Response.Header.SetContentEncoding(rendered.Gzip)
	}
}

// rejectPanic answers 500 and logs the panic with the request id.
func (w *responder) rejectPanic(ctx *fasthttp.RequestCtx, cause any) {
	stack := debug.Stack()
	if express, ok := cause.(*expressPanic); ok {
		cause, stack = express.cause, express.stack
	}
	ctx.Response.SkipBody = ctx.IsHead()
	mustClose := ctx.Response.ConnectionClose()
	w.blank.CopyTo(&ctx.Response.Header)
	if mustClose {
		ctx.SetConnectionClose()
	}
	w.startResponse(ctx)
	w.config.Logger.LogAttrs(context.Background(), slog.LevelError, "a request ended in a panic", slog.String("requestId", string(w.idOf(ctx))),
		slog.Any("cause", cause), slog.String("stack", string(stack)))
	w.reject(ctx, engine.CodeInternalError, internalMessage)
}

// challenge adds WWW-Authenticate to a 401. It adds error="invalid_token" if the request has an Authorization header,
// except for an invalid login code.
func (w *responder) challenge(ctx *fasthttp.RequestCtx, code engine.Code) {
	value := `Bearer realm="tasard"`
	if code != engine.CodeInvalidCode && ctx.Request.Header.Peek(fasthttp.HeaderAuthorization) != nil {
		value += `, error="invalid_token"`
	}
	ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, value)
}

// rejectMethod answers 405. noun is "operation" or "path", for the message.
func (w *responder) rejectMethod(ctx *fasthttp.RequestCtx, noun, allowed string) {
	w.startResponse(ctx)
	ctx.Response.Header.Set(fasthttp.HeaderAllow, allowed)
	w.reject(ctx, engine.CodeMethodNotAllowed, "This "+noun+" knows the methods "+allowed+".")
}

// answerOptions answers OPTIONS for data operations: 204 with the CORS preflight headers.
func (w *responder) answerOptions(ctx *fasthttp.RequestCtx) {
	w.startResponse(ctx)
	header := &ctx.Response.Header
	header.Set(fasthttp.HeaderAllow, rendered.MethodsAllowed)
	header.Set(fasthttp.HeaderAccessControlAllowMethods, rendered.MethodsAllowed)
	header.Set(fasthttp.HeaderAccessControlAllowHeaders, rendered.PreflightHeaders)
	if w.config.AllowAuthorizationHeader {
		header.Set(fasthttp.HeaderAccessControlAllowHeaders, rendered.PreflightHeaders+", Authorization")
	}
	header.Set(fasthttp.HeaderAccessControlMaxAge, rendered.PreflightSeconds)
	w.answerEmpty(ctx, fasthttp.StatusNoContent)
}

// answerEmpty answers with a status, without body and Content-Type.
func (w *responder) answerEmpty(ctx *fasthttp.RequestCtx, status int) {
	ctx.SetStatusCode(status)
	ctx.Response.Header.SetContentTypeBytes(nil)
	ctx.Response.ResetBody()
}

// writeHead sets the header lines of a 200 or 304.
func (w *responder) writeHead(ctx *fasthttp.RequestCtx, a *requestState) {
	var room [headBufferBytes]byte
	constant := w.constantHeaders.withBody
	if a.response.status == fasthttp.StatusNotModified {
		constant = w.constantHeaders.withoutBody
	}
	ctx.Response.Header.SetNoDefaultContentType(true) // Content-Type is in constantHeaders
	w.setHeaderLines(&ctx.Response.Header, append(w.appendHead(room[:0], a), constant...))
	a.headWritten = true
}

// appendHead appends the header lines of a 200 or 304 that are not in constantHeaders.
func (w *responder) appendHead(lines []byte, a *requestState) []byte {
	r := &a.response
	a.id = w.config.RequestID()
	lines = appendHeaderLine(lines, headerRequestID, a.id[:])
	caching, changesAt := w.privateCaching, a.second.nextChange
	if a.isShared {
		caching = w.sharedCaching
	}
	if !r.changesAt.IsZero() {
		changesAt = min(changesAt, r.changesAt.UnixNano())
	}
	seconds := (changesAt - a.now) / int64(time.Second)
	lines = append(lines, caching[max(0, min(maxAgeSeconds+staleSecondsMax, seconds))]...)
	lines = appendHeaderLine(lines, fasthttp.HeaderETag, r.etag)
	if r.coding != "" {
		lines = appendHeaderLine(lines, fasthttp.HeaderContentEncoding, bytesOf(r.coding))
	}
	if a.limitsEnforced {
		lines = w.appendLimits(lines, a)
	}
	return w.appendDeprecation(lines)
}

// appendLimits appends the rate-limit header lines for one of the two quota windows, day and minute: the one with less
// left. After a request with an unusable key it also appends X-Key-Status.
func (w *responder) appendLimits(dst []byte, a *requestState) []byte {
	if a.keyIgnored {
		dst = append(dst, keyIgnoredLine...)
	}
	tighter := a.admission.TighterWindow()
	dst = strconv.AppendInt(append(dst, "X-RateLimit-Limit: "...), int64(tighter.Limit), 10)
	dst = strconv.AppendInt(append(dst, "\r\nX-RateLimit-Remaining: "...), int64(tighter.Remaining), 10)
	dst = strconv.AppendInt(append(dst, "\r\nX-RateLimit-Reset: "...), epochSeconds(tighter.Reset), 10)
	return append(dst, "\r\n"...)
}

// epochSeconds returns a Unix time in seconds, rounded up.
func epochSeconds(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}

// appendDeprecation appends the header lines that announce the end of anonymous access. It appends nothing if there is
// no announcement, and after the end.
func (w *responder) appendDeprecation(lines []byte) []byte {
	if w.config.Admitter == nil {
		return lines
	}
	policy := w.config.Admitter.KeyPolicy()
	if policy.RequiredAt.IsZero() || !policy.Pending(w.config.Clock()) {
		return lines
	}
	lines = strconv.AppendInt(append(lines, "Deprecation: @"...), policy.AnnouncedAt.Unix(), 10) // the type Date of RFC 9651, see RFC 9745
	lines = fasthttp.AppendHTTPDate(append(lines, "\r\nSunset: "...), policy.RequiredAt)         // RFC 8594
	lines = append(lines, "\r\n"...)
	if page := w.config.KeysLink; page != "" {
		lines = append(lines, "Link: <"+page+`>; rel="deprecation", <`+page+">; rel=\"sunset\"\r\n"...)
	}
	return lines
}

// clientAddress returns the address of the peer or, if the peer is a trusted proxy, the client's address from
// X-Forwarded-For. The address has no zone, and an IPv4-mapped IPv6 address becomes IPv4. If the peer's address is
// unknown, the result is the zero Addr.
func (w *responder) clientAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	var peer netip.Addr
	if c, ok := ctx.Conn().(*conn.Conn); ok {
		peer = c.Peer()
	} else {
		peer = conn.PeerOf(ctx.RemoteAddr())
	}
	if !w.proxies.Contains(peer) {
		return peer
	}
	return w.proxies.ClientAddress(peer, ctx.Request.Header.PeekAll(forwardedFor))
}

// accessRecord returns the record of a response. began is the time at which the whole request had been read, or zero.
func (w *responder) accessRecord(a *requestState, began time.Time, method string, status, length int, client netip.Addr) AccessRecord {
	now := w.config.Clock()
	if began.IsZero() {
		began = now
	}
	return AccessRecord{
		RequestID: string(a.id[:]), At: began, Route: w.routeNames[a.route], Method: method, Status: status,
		Duration: max(0, now.Sub(began)), Bytes: length, Keyed: a.admission.Account != 0, Network: fields.LoggedNetwork(client),
	}
}

// RequestID identifies a request in X-Request-Id and in the log.
type RequestID [16]byte

// RequestIDs returns a function for Config.RequestID. Its ids are pseudorandom hexadecimal digits without repetition.
// Use a random seed, so that two processes have different ids.
func RequestIDs(seed uint64) func() RequestID {
	var number atomic.Uint64
	number.Store(mix(seed))
	return func() (id RequestID) {
		var b [len(id) / 2]byte
		binary.BigEndian.PutUint64(b[:], mix(number.Add(1)-1))
		hex.Encode(id[:], b[:])
		return id
	}
}

// mix is the last step of splitmix64. It is a bijection, so different numbers have different results.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// AccessRecord describes an answered request for an access log. It contains no path, query, header, key or full client
// address.
type AccessRecord struct {
	RequestID string
	At        time.Time // when the whole request had been read
	Route     string    // as in the metrics
	Method    string    // as in the metrics
	Status    int
	Duration  time.Duration // from At until the response was ready to be sent
	Bytes     int           // length of the response body as sent, compressed or not
	Keyed     bool          // Config.Admitter found an account for the request's API key
	Network   string        // of the client: the first 24 bits of an IPv4 address, or 48 of an IPv6 address
}

const (
	internalMessage  = "Something went wrong on our side. Report the request id if it goes on."
	malformedMessage = "The request is not well-formed HTTP/1.1. The connection is closed."
	timeoutMessage   = "The request did not arrive in time. The connection is closed."
	headersMessage   = "Request line and headers are too long. The connection is closed."
	bodyMessage      = "The request body is too long. The connection is closed."
	chunkedMessage   = "Transfer-Encoding is not understood here: send a body with Content-Length. The connection is closed."
)

func appendError(dst []byte, code engine.Code, message, requestID string, details []params.Problem) []byte {
	dst = append(dst, `{"error":{`...)
	dst = encode.Field(dst, "code", string(code))
	dst = encode.Field(dst, "message", message)
	dst = encode.Field(dst, "requestId", requestID)
	if len(details) > 0 {
		dst = append(encode.Name(dst, "details"), '[')
		for _, d := range details {
			dst = append(encode.Comma(dst), `{"path":[`...)
			dst = encode.Text(dst, d.Name)
			if d.Index > 0 {
				dst = strconv.AppendInt(append(dst, ','), int64(d.Index), 10)
			}
			dst = append(dst, ']')
			dst = encode.Field(dst, "message", d.Name+" "+d.Message)
			dst = append(dst, '}')
		}
		dst = append(dst, ']')
	}
	return append(dst, `}}`...)
}

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
