package httpapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/counters"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// Config configures a Server. Service, Catalogue, Clock and RequestID are required; all other fields may be zero.
type Config struct {
	// Service answers the data operations: all of /v1 except /v1/account. Danger: the pages of the Service cache
	// encoded bodies that contain FeeNotice, so all servers with the same Service must have the same FeeNotice.
	Service engine.Service
	// Catalogue lists the known currency codes and institution ids, to parse them without allocation.
	Catalogue *engine.Catalogue
	// Clock returns the present time.
	Clock func() time.Time
	// RequestID returns a new request id, which must be a valid header value. It must be safe for concurrent use. See
	// RequestIDs.
	RequestID func() RequestID
	// Admitter checks API keys and quotas of requests for data operations. nil: no keys and no limits.
	Admitter account.Admitter
	// Accounts answers the account operations (/v1/account). nil: these requests get 404.
	Accounts account.Service
	// TrustedProxies are networks of proxies with a trusted X-Forwarded-For. Danger: any host in these networks can
	// claim any client address, and so use another client's quota.
	TrustedProxies []netip.Prefix
	// KeysLink is the URL of a web page about the end of anonymous access (requests without an API key). Responses link
	// to it between the announcement and the end. "" means no link.
	KeysLink string
	// FeeNotice is the notice about fees in each conversion; "" means engine.FeeNotice.
	FeeNotice string
	// AllowUnknownParameters ignores unknown query parameters instead of rejecting them. A request with an API key in
	// the URL is still rejected, so that its developer notices.
	AllowUnknownParameters bool
	// AllowAuthorizationHeader lets web pages of other origins send Authorization. By default they can't, because API
	// keys should not be in web pages.
	AllowAuthorizationHeader bool
	// Logger logs panics and internal errors with their request id, but no header, path or query. It may be nil.
	Logger *slog.Logger
	Limits Limits
	// Health returns the health conditions of the rest of the node, for /readyz. It may be nil.
	Health engine.Health
	// Site answers requests for paths outside the API. It may be nil.
	Site Site
	// Certificate returns the certificate for a connection. If set, the server accepts only TLS 1.2 or later, and
	// listeners must be TCP. If nil, the server does not use TLS.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// AccessLog, if not nil, is called for every response before it is sent.
	AccessLog func(AccessRecord)
	// Harness is only for tests.
	Harness *Harness
}

// Limits are limits for clients. A zero field means the default.
type Limits struct {
	// ReadTimeout is the maximum time to receive a request, from its first byte. Default: 5 s. Shutdown waits no longer
	// than this for an incomplete request.
	ReadTimeout time.Duration
	// WriteTimeout is the maximum time to send a response. Default: 5 s.
	WriteTimeout time.Duration
	// IdleTimeout is the maximum time between two requests on a connection. Default: 60 s.
	IdleTimeout time.Duration
	// HeaderBytesMax is the maximum size of request line and headers; a longer head gets 431. Default: 4 KiB. Each
	// connection keeps a buffer of this size, even while idle.
	HeaderBytesMax int
	// BodyBytesMax is the maximum size of a request body; a longer body gets 413. Default: 4 KiB.
	BodyBytesMax int
	// ConnsMax is the maximum number of open connections. Default: 16,384. At the maximum, a new connection replaces
	// the idle connection whose last charged request is oldest. If all connections are busy, new ones wait.
	ConnsMax int
	// ConnsPerClient is the maximum number of connections of a client (an IPv4 address or an IPv6 /64). Default: 128,
	// but at most a fifth of ConnsMax. Negative means no limit. Config.TrustedProxies have no limit.
	ConnsPerClient int
}

func (l *Limits) setDefaults() {
	l.ReadTimeout = cmp.Or(max(0, l.ReadTimeout), 5*time.Second)
	l.WriteTimeout = cmp.Or(max(0, l.WriteTimeout), 5*time.Second)
	l.IdleTimeout = cmp.Or(max(0, l.IdleTimeout), time.Minute)
	l.HeaderBytesMax = cmp.Or(max(0, l.HeaderBytesMax), 4<<10)
	l.BodyBytesMax = cmp.Or(max(0, l.BodyBytesMax), 4<<10)
	l.ConnsMax = cmp.Or(max(0, l.ConnsMax), 16_384)
	l.ConnsPerClient = cmp.Or(l.ConnsPerClient, 128)
}

// Server answers requests over HTTP/1.1. It is safe for concurrent use.
type Server struct {
	*responder
	*dataAPI
	*accountAPI
	sitePages
	tls   *tls.Config // nil without TLS
	http  *fasthttp.Server
	paths map[string]endpoint // see byPath

	mu        sync.Mutex
	stopped   bool
	listeners []*conn.Listener
}

// New returns a server without a listener; see Serve.
func New(c Config) *Server {
	if c.Service == nil || c.Catalogue == nil || c.Clock == nil || c.RequestID == nil {
		panic("httpapi: Config needs Service, Catalogue, Clock and RequestID")
	}
	c.FeeNotice = cmp.Or(c.FeeNotice, engine.FeeNotice)
	c.Limits.setDefaults()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Harness != nil { // all test requests come from one address
		c.Limits.ConnsPerClient = -1
	}
	w, table := newResponder(c), params.NewTable()
	s := &Server{
		responder: w, dataAPI: newDataAPI(w, table), accountAPI: newAccountAPI(w, table), sitePages: sitePages{w},
		tls: conn.TLSConfig(c.Certificate, c.Clock),
	}
	s.paths = s.endpoints()
	s.http = s.newHTTP()
	if c.Harness != nil {
		s.http.NoDefaultDate = true
		if c.Harness.Around != nil {
			s.http.Handler = c.Harness.Around(s.serve)
		}
	}
	return s
}

func (s *Server) newHTTP() *fasthttp.Server {
	// Buffers of longer request bodies are not reused. Otherwise each connection would keep one of up to BodyBytesMax.
	fasthttp.SetBodySizePoolLimit(1<<10, -1)
	return &fasthttp.Server{
		Handler:        s.serve,
		ErrorHandler:   s.rejectUnreadable,
		Logger:         libraryLog{s.config.Logger},
		HeaderReceived: beforeBody,
		ExpectHandler:  s.answerExpectation,

		ReadTimeout:        s.config.Limits.ReadTimeout,
		WriteTimeout:       s.config.Limits.WriteTimeout,
		IdleTimeout:        s.config.Limits.IdleTimeout,
		ReadBufferSize:     s.config.Limits.HeaderBytesMax,
		WriteBufferSize:    4 << 10, // for response heads, pipelined responses, and all responses over TLS
		MaxRequestBodySize: s.config.Limits.BodyBytesMax,
		// Above Concurrency the HTTP library answers 503 without our error body, so ConnsMax must be reached first.
		Concurrency: 2 * (s.config.Limits.ConnsMax + 1),

		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true,
		DisablePreParseMultipartForm: true,
	}
}

// Serve accepts connections from ln and answers their requests. After Shutdown it closes ln and returns nil.
func (s *Server) Serve(ln net.Listener) error {
	l := conn.Listen(ln, s.connConfig())
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return l.Close()
	}
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	return s.http.Serve(l)
}

func (s *Server) connConfig() conn.Config {
	return conn.Config{
		MaxConns: s.config.Limits.ConnsMax, MaxConnsPerClient: s.config.Limits.ConnsPerClient, ExemptClients: s.proxies.Contains,
		ReadTimeout: s.config.Limits.ReadTimeout, WriteTimeout: s.config.Limits.WriteTimeout, IdleTimeout: s.config.Limits.IdleTimeout,
		TLS: s.tls, Log: s.config.Logger, Counts: s.load.conns,
		Express: s.express, OnShortage: func() { s.load.shortage.Report(s.load.clock()) },
	}
}

// Shutdown calls Drain, stops accepting connections, closes idle ones and waits for requests in flight. It returns nil
// when all connections are closed, or the error of ctx. An incomplete request delays Shutdown by up to ReadTimeout.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	conn.DrainListeners(ctx, s.listeners)  // needs no lock: after stopped, Serve does not change listeners
	return s.http.ShutdownWithContext(ctx) // closes the listeners again; they return the result of their first Close
}

// serve answers a request read by the HTTP library.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	a := s.requestStateOf(ctx)
	defer s.finish(ctx, a)
	if s.config.Harness != nil { // blank must be a copy: only the library can set its private field noDefaultDate
		s.blankOnce.Do(func() { ctx.Response.Header.CopyTo(&s.blank) })
	}
	if reason := conn.Malformed(ctx, &a.HeadInfo); reason != "" {
		closeUnread(ctx)
		s.reject(ctx, engine.CodeMalformedRequest, reason)
		return
	}
	if a.HasBody() {
		ctx.SetConnectionClose() // so that two parsers can't disagree about where the next request begins
	}
	if a.Chunked() {
		closeUnread(ctx)
		s.reject(ctx, engine.CodeNotImplemented, chunkedMessage)
		return
	}
	s.dispatch(ctx, a)
	if s.load.draining.Load() != nil {
		ctx.SetConnectionClose()
	}
}

// closeUnread closes the connection after the response, although the client may still be sending the request.
func closeUnread(ctx *fasthttp.RequestCtx) {
	ctx.SetConnectionClose()
	if c, ok := ctx.Conn().(*conn.Conn); ok {
		c.LingerOnClose()
	}
}

// requestStateOf returns the state of a request on the ordinary path: the state that the express path has left in
// Conn.User, or a new one.
func (s *Server) requestStateOf(ctx *fasthttp.RequestCtx) *requestState {
	c, _ := ctx.Conn().(*conn.Conn)
	if c == nil || c.User == nil {
		return s.newRequestState(c)
	}
	a := c.User.(*requestState)
	c.User = nil
	return a
}

// finish must be deferred for every request. It answers 500 after a panic, counts the response and calls the access
// log.
func (s *Server) finish(ctx *fasthttp.RequestCtx, a *requestState) {
	if cause := recover(); cause != nil {
		s.rejectPanic(ctx, cause)
	}
	elapsed := time.Since(ctx.Time()) //nolint:forbidigo // in real time, like the HTTP library
	s.counters.Answer(a.route, ctx.Method(), ctx.Response.StatusCode(), a.conn != nil, elapsed)
	if a.conn != nil && (a.route == routeSite || a.charged()) {
		a.conn.MarkCounted()
	}
	if a.conn != nil && !a.HasBody() {
		a.conn.EndRequest()
	}
	if s.config.AccessLog != nil {
		s.logAccess(ctx, a)
	}
	s.requestStates.Put(a)
}

// libraryLog logs the messages of the HTTP library without their arguments, which contain parts of requests.
type libraryLog struct{ log *slog.Logger }

// Printf implements fasthttp.Logger. It logs only the format.
func (l libraryLog) Printf(format string, _ ...any) {
	l.log.LogAttrs(context.Background(), slog.LevelDebug, "http library", slog.String("class", format))
}

// rejectUnreadable answers a request that the HTTP library could not read, and closes the connection. A connection that
// was never used is closed without a response.
func (s *Server) rejectUnreadable(ctx *fasthttp.RequestCtx, err error) {
	ctx.Response.SkipBody = ctx.IsHead()
	var small *fasthttp.ErrSmallBuffer
	var network net.Error
	timedOut := errors.As(err, &network) && network.Timeout()
	if c, ok := ctx.Conn().(*conn.Conn); ok {
		if timedOut && !c.Used {
			_ = c.Close() // so that the response of the library is not sent
			return
		}
		c.User = nil
		c.ExtendWrite()
	}
	closeUnread(ctx)
	switch {
	case errors.As(err, &small):
		s.reject(ctx, engine.CodeHeadersTooLarge, headersMessage)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		s.reject(ctx, engine.CodePayloadTooLarge, bodyMessage)
	case timedOut:
		s.reject(ctx, engine.CodeRequestTimeout, timeoutMessage)
	default:
		s.reject(ctx, engine.CodeMalformedRequest, malformedMessage)
	}
	s.finish(ctx, s.newRequestState(nil))
}

// answerExpectation handles "Expect: 100-continue", before the client sends the body. It returns 100 if the answer
// depends on the body. Otherwise it answers the request and returns the status, and the library closes the connection.
func (s *Server) answerExpectation(ctx *fasthttp.RequestCtx) int {
	switch {
	case ctx.Request.Header.ContentLength() > s.config.Limits.BodyBytesMax:
		s.rejectUnreadable(ctx, fasthttp.ErrBodyTooLarge)
	case s.wantsBody(ctx):
		return fasthttp.StatusContinue
	default:
		closeUnread(ctx)
		s.serve(ctx)
	}
	return ctx.Response.StatusCode()
}

// wantsBody reports whether the answer to a request depends on its body.
func (s *Server) wantsBody(ctx *fasthttp.RequestCtx) bool {
	if conn.Malformed(ctx, new(conn.HeadInfo)) != "" {
		return false
	}
	path, _ := splitTarget(ctx.Request.Header.RequestURI())
	if found, isAccount := byPath(s.accountPaths, path); isAccount {
		return s.wantsAccountBody(ctx, found)
	}
	return s.HasPage(string(path), acceptOf(ctx))
}

// endpoints returns all endpoints by pattern.
func (s *Server) endpoints() map[string]endpoint {
	all, ids := map[string]endpoint{}, routeIDs()
	add := func(pattern string, answer func(ctx *fasthttp.RequestCtx, a *requestState)) {
		all[pattern] = endpoint{ids[pattern], answer}
	}
	for _, route := range routes() {
		add(route.pattern, func(ctx *fasthttp.RequestCtx, a *requestState) { s.answer(ctx, &route, a) })
	}
	for pattern, path := range s.accountPaths {
		add(pattern, func(ctx *fasthttp.RequestCtx, _ *requestState) { s.answerAccount(ctx, path) })
	}
	for path, answer := range map[string]fasthttp.RequestHandler{livezPath: live, healthzPath: live, readyzPath: s.ready} {
		add(path, func(ctx *fasthttp.RequestCtx, _ *requestState) { s.answerProbe(ctx, answer) })
	}
	return all
}

// dispatch calls the endpoint for the path of a request. For an unknown path it calls Config.Site or answers 404.
func (s *Server) dispatch(ctx *fasthttp.RequestCtx, a *requestState) {
	a.route = routeUnmatched
	path, _ := splitTarget(ctx.Request.Header.RequestURI())
	if string(path) == "*" {
		a.route = routeAsterisk
		s.answerOptions(ctx)
		return
	}
	if found, ok := byPath(s.paths, path); ok {
		a.route = found.routeID
		if planted, _ := ctx.UserValue(plantedKey).(*engine.Error); planted != nil && s.config.Harness != nil {
			s.answerError(ctx, planted)
			return
		}
		found.answer(ctx, a)
		return
	}
	if s.HasPage(string(path), acceptOf(ctx)) {
		a.route = routeSite
		s.answerSite(ctx)
		return
	}
	s.reject(ctx, engine.CodeNotFound, "Nothing is at this path. Paths match exactly, without a slash at the end.")
}

// Drain prepares for Shutdown: /readyz answers 503, and every connection is closed after its next response, so that
// clients move to another node.
func (s *Server) Drain() {
	now := s.load.clock()
	s.load.draining.CompareAndSwap(nil, &now)
}

// Conditions implements engine.Health. It returns the conditions of Config.Health and then those of the server.
func (s *Server) Conditions() []engine.Condition {
	var all []engine.Condition
	if s.config.Health != nil {
		all = s.config.Health.Conditions()
	}
	return append(all, s.load.serverCondition(), s.load.loadCondition(), s.load.connectionsCondition())
}

// answerProbe answers a request for a health endpoint. It ignores the query.
func (s *Server) answerProbe(ctx *fasthttp.RequestCtx, answer fasthttp.RequestHandler) {
	s.startResponse(ctx)
	if !ctx.IsGet() && !ctx.IsHead() {
		s.rejectMethod(ctx, "path", methodsHealth)
		return
	}
	answer(ctx)
}

// ready answers /readyz with the health conditions. The status is 503 if the node is unavailable.
func (s *Server) ready(ctx *fasthttp.RequestCtx) {
	conditions := s.Conditions()
	readiness := engine.ReadinessOf(conditions)
	if readiness == engine.Unavailable {
		ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, readyRetry)
	}
	body := ctx.Response.SwapBody(nil)[:0]
	ctx.Response.SwapBody(appendReadiness(body, readiness, conditions))
}

// ServeConn answers the requests on a connection until the client closes it. Shutdown does not wait for ServeConn; the
// caller can close the connection.
func (s *Server) ServeConn(conn net.Conn) error { return s.http.ServeConn(conn) }

// Metrics returns the metrics of the server since its creation.
func (s *Server) Metrics() []prometheus.Collector {
	return s.counters.Collectors(s.load.conns, s.load.connsMax)
}

// Refused returns the numbers of requests refused because a minute's or a day's quota was used up.
func (s *Server) Refused() (minute, day uint64) { return s.counters.Refused() }

// logAccess passes a record of the response in ctx to Config.AccessLog.
func (s *Server) logAccess(ctx *fasthttp.RequestCtx, a *requestState) {
	if id := s.idOf(ctx); id != nil { // otherwise appendHead has already set a.id
		copy(a.id[:], id)
	}
	length := len(ctx.Response.Body())
	if ctx.IsHead() {
		length = 0
	}
	s.config.AccessLog(s.accessRecord(a, ctx.Time(), counters.MethodLabel(ctx.Method()), ctx.Response.StatusCode(), length, s.clientAddress(ctx)))
}

const expectContinue = "100-continue"

// beforeBody is called when the HTTP library has read the head of a request. It makes the value of Expect
// case-insensitive. It removes Expect where RFC 9110 10.1.1 says that it must be ignored: in HTTP/1.0, and without a
// body. It also stops the library from reading a chunked body, because serve refuses such a request anyway.
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

// Harness changes a server for tests (package apitest). Danger: a real node must not set it.
//
// With a Harness the Date header comes from Config.Clock, so that responses are the same on every machine. A test calls
// ServeConn instead of Serve, because Serve starts a goroutine of fasthttp (for Date) that never ends. In a bubble of
// testing/synctest all goroutines must end.
type Harness struct {
	// Around wraps the handler of all requests that the HTTP library could read. It may be nil.
	Around func(next fasthttp.RequestHandler) fasthttp.RequestHandler
}

// plantedKey is the name of the fasthttp user value in which Plant stores its error. A string name does not allocate.
const plantedKey = "planted"

// Plant makes the server answer a request for one of its paths with err. Such a request does not count against a quota.
// Without a Harness, Plant has no effect.
func Plant(ctx *fasthttp.RequestCtx, err *engine.Error) { ctx.SetUserValue(plantedKey, err) }
