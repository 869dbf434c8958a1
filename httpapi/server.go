package httpapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// Config configures a Server. Service, Catalogue, Clock and RequestID are required; all other fields may be zero.
type Config struct {
	// Service answers the data operations. Danger: a page keeps its encoded answer (engine.Page.Rendered), so servers that
	// share a service must have the same FeeNotice.
	Service engine.Service
	// Catalogue interns known currency codes and institution ids, so that parsing a query does not allocate.
	Catalogue *engine.Catalogue
	// Clock returns the present time.
	Clock func() time.Time
	// RequestID returns the id for the request with this number; each number is used once. It must be safe for
	// concurrent use, and ids must be valid header values. See RequestIDs.
	RequestID func(number uint64) RequestID
	// Admitter checks the keys and limits of data requests. If it is nil, there are no keys and no limits.
	Admitter account.Admitter
	// Accounts answers the account operations. If it is nil, they are answered 404.
	Accounts account.Service
	// TrustedProxies are the networks of the proxies in front of the server, whose X-Forwarded-For is trusted. Danger:
	// other hosts in these networks can choose whose quota they use.
	TrustedProxies []netip.Prefix
	// Realm is the realm in a 401; "" means tasard.
	Realm string
	// DeprecationLink and SunsetLink are URLs of pages that explain the end of anonymous access. Answers link to them
	// while the end is announced; "" means no link.
	DeprecationLink, SunsetLink string
	// FeeNotice is the notice about fees in each conversion; "" means engine.FeeNotice.
	FeeNotice string
	// AllowUnknownParameters ignores unknown query parameters instead of refusing them. A key in the URL is always
	// refused, because callers would keep sending it otherwise.
	AllowUnknownParameters bool
	// AllowAuthorizationHeader lets pages of other origins send Authorization. By default they can't, because keys
	// should be kept on servers.
	AllowAuthorizationHeader bool
	// Logger logs panics and internal errors with their request id, and never a header, a path or a query. It may be
	// nil.
	Logger *slog.Logger
	// Limits are the limits of a connection and of all connections.
	Limits Limits
	// Health reports the conditions of the rest of the node for /readyz; it may be nil.
	Health engine.Health
	// Site answers the paths without an operation: pages and documents. It may be nil.
	Site Site
	// Certificate returns the certificate of each connection and makes the server speak TLS, 1.2 and later. If it is
	// nil, there is no TLS. With TLS, listeners must be TCP, and each answer is copied once more.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// AccessLog, unless nil, is called for every answer whose status is at least AccessStatusMin. The client gets the
	// answer after the call.
	AccessLog       func(AccessRecord)
	AccessStatusMin int
	// Harness is only for tests.
	Harness *Harness
}

// Limits are limits for clients. A zero field means its default.
type Limits struct {
	// ReadTimeout is the time for a whole request from its first byte: 5 s. It is also the longest time for which
	// Shutdown waits for a client that does not complete a request.
	ReadTimeout time.Duration
	// WriteTimeout is the time for a whole answer: 5 s.
	WriteTimeout time.Duration
	// IdleTimeout is the time between two requests of a connection: 60 s.
	IdleTimeout time.Duration
	// HeaderBytesMax is the largest size of request line and headers together: 8 KiB; more is answered 431. Each
	// connection has a buffer of this size.
	HeaderBytesMax int
	// BodyBytesMax is the largest size of a request body: 4 KiB; more is answered 413.
	BodyBytesMax int
	// WriteBufferBytes is the size of each connection's write buffer: 4 KiB. It holds heads, answers to pipelined
	// requests, and bodies over TLS; other bodies are sent without a copy.
	WriteBufferBytes int
	// ConnsMax is the largest number of open connections: 16,384 (see conn.Config.MaxConns). Requests on connections
	// beyond it are answered 503, except for health requests.
	ConnsMax int
	// ConnsPerClient is the largest number of connections of one client address: 128, and at most a fifth of ConnsMax; a
	// negative number means no limit. Config.TrustedProxies are exempt.
	ConnsPerClient int
}

// Defaults of Limits.
const (
	readTimeoutDefault      = 5 * time.Second
	writeTimeoutDefault     = 5 * time.Second
	idleTimeoutDefault      = 60 * time.Second
	headerBytesMaxDefault   = 8 << 10
	bodyBytesMaxDefault     = 4 << 10
	writeBufferBytesDefault = 4 << 10
	connsDefault            = 16384
	connsPerClientDefault   = 128
	// reserveConnsDefault is the number of connections accepted beyond the cap, so that health requests are answered.
	reserveConnsDefault = 64
)

func (l *Limits) setDefaults() {
	l.ReadTimeout = cmp.Or(max(0, l.ReadTimeout), readTimeoutDefault)
	l.WriteTimeout = cmp.Or(max(0, l.WriteTimeout), writeTimeoutDefault)
	l.IdleTimeout = cmp.Or(max(0, l.IdleTimeout), idleTimeoutDefault)
	l.HeaderBytesMax = cmp.Or(max(0, l.HeaderBytesMax), headerBytesMaxDefault)
	l.BodyBytesMax = cmp.Or(max(0, l.BodyBytesMax), bodyBytesMaxDefault)
	l.WriteBufferBytes = cmp.Or(max(0, l.WriteBufferBytes), writeBufferBytesDefault)
	l.ConnsMax = cmp.Or(max(0, l.ConnsMax), connsDefault)
	l.ConnsPerClient = cmp.Or(l.ConnsPerClient, connsPerClientDefault)
}

// Server answers the data operations of /v1 over HTTP/1.1. It is safe for concurrent use.
type Server struct {
	config            Config // with defaults for Limits, FeeNotice, Realm and Logger
	proxies           fields.TrustedProxies
	load              *serverLoad
	counters          *counters
	tls               *tls.Config       // nil without TLS
	shedder           *conn.LoadShedder // nil in a test
	harness           *harness          // nil unless in a test
	http              *fasthttp.Server
	paths             map[string]endpoint // by pattern
	router            *router.Router
	params            params.Table
	heads             *knownHeads
	numbers           requestNumbers
	lastDate          atomic.Pointer[dateLine]
	errorHeaders      fasthttp.ResponseHeader // the headers of an error; read only
	accountHeaders    fasthttp.ResponseHeader // the same for account routes
	constantHeaders   constantHeaders
	cacheControlLines [maxAgeSeconds + 1][]byte
	rateLimitPolicy   atomic.Pointer[rateLimitPolicy]
	deprecation       atomic.Pointer[deprecationNotice]
	currentSecond     atomic.Pointer[currentSecond]
	gzippers          sync.Pool
	requestStates     sync.Pool // of *requestState

	mu        sync.Mutex
	stopped   bool
	listeners []*conn.Listener
}

// New returns a server without a listener; see Serve.
func New(c Config) *Server {
	if c.Service == nil || c.Catalogue == nil || c.Clock == nil || c.RequestID == nil {
		panic("httpapi: Config needs Service, Catalogue, Clock and RequestID")
	}
	c.FeeNotice, c.Realm = cmp.Or(c.FeeNotice, engine.FeeNotice), cmp.Or(c.Realm, realmDefault)
	c.Limits.setDefaults()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		config: c, proxies: slices.Clone(c.TrustedProxies), load: &serverLoad{clock: c.Clock}, counters: newCounters(c.Limits.WriteTimeout),
		tls: conn.TLSConfig(c.Certificate, c.Clock), params: params.NewTable(), heads: newKnownHeads(),
		constantHeaders: newConstantHeaders(c.Admitter != nil), cacheControlLines: newCacheControlLines(),
	}
	fillErrorHeaders(&s.errorHeaders, c.Admitter != nil)
	fillAccountHeaders(&s.accountHeaders, &s.errorHeaders)
	s.requestStates.New = func() any { return &requestState{requestScratch: requestScratch{shard: s.counters.nextShard()}} }
	s.gzippers.New = func() any { return newGzipper(gzipLevelOnce) }
	s.paths = s.endpoints()
	s.router = s.newRouter()
	s.http = s.newHTTP()
	if c.Harness == nil {
		s.shedder = conn.NewLoadShedder(c.Clock, c.Limits.WriteTimeout)
		return s
	}
	// The clock of a test may stand still or jump, and all its requests come from one address.
	s.config.Limits.ConnsPerClient = -1
	s.harness = &harness{}
	s.http.NoDefaultDate = true
	if c.Harness.Around != nil {
		s.http.Handler = c.Harness.Around(s.serve)
	}
	return s
}

// bodyPoolBytesMax is the largest body buffer that the library keeps for another request, a setting of the whole
// library. Usual bodies of account operations are smaller. Without a limit, each connection would eventually have a
// buffer of BodyBytesMax.
const bodyPoolBytesMax = 1 << 10

func (s *Server) newHTTP() *fasthttp.Server {
	fasthttp.SetBodySizePoolLimit(bodyPoolBytesMax, -1)
	return &fasthttp.Server{
		Handler:      s.serve,
		ErrorHandler: s.refuseUnreadable,
		Logger:       libraryLog{s.config.Logger},

		ReadTimeout:        s.config.Limits.ReadTimeout,
		WriteTimeout:       s.config.Limits.WriteTimeout,
		IdleTimeout:        s.config.Limits.IdleTimeout,
		ReadBufferSize:     s.config.Limits.HeaderBytesMax,
		WriteBufferSize:    s.config.Limits.WriteBufferBytes,
		MaxRequestBodySize: s.config.Limits.BodyBytesMax,
		// Beyond Concurrency the library answers 503 without our error body, so the listener's cap must be lower.
		Concurrency: 2 * (s.config.Limits.ConnsMax + reserveConnsDefault),

		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true,
		DisablePreParseMultipartForm: true,
	}
}

// Serve answers the connections of ln until Shutdown, then returns nil. It wraps ln with conn.Listen and closes it.
// After Shutdown it returns at once.
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
		MaxConns: s.config.Limits.ConnsMax, MaxConnsPerClient: s.config.Limits.ConnsPerClient, ExemptClients: s.proxies.Contains, ReserveConns: reserveConnsDefault,
		FirstRequestBytesMax: s.config.Limits.HeaderBytesMax + s.config.Limits.BodyBytesMax, TLS: s.tls, LoadShedder: s.shedder, Log: s.config.Logger, Counts: &s.counters.conns,
		Express: s.express, OnShortage: s.load.noteShortage, OnFull: s.load.noteFull, OnRoom: s.load.noteRoom,
	}
}

// Shutdown stops accepting, lets requests in flight finish and closes idle connections. It returns when no connection
// is open, or with the context's error. Every answer then has Connection: close. A client that does not complete its
// request delays Shutdown for up to ReadTimeout.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	conn.StopAccepting(s.listeners, s.config.Logger) // without the lock: listeners no longer changes
	if s.shedder != nil {
		s.shedder.End()
	}
	conn.DrainListeners(ctx, s.listeners)
	return s.http.ShutdownWithContext(ctx) // closes the listeners again, which returns their first result
}

// Handler returns the handler of the server, for tests and benchmarks without connections.
func (s *Server) Handler() fasthttp.RequestHandler { return s.serve }

// serve is the outermost handler: it recovers panics, refuses malformed requests and calls the route.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	a := s.requestStateOf(ctx)
	defer s.finish(ctx, a)
	if reason := conn.Malformed(ctx, &a.HeadInfo); reason != "" {
		ctx.SetConnectionClose()
		s.refuse(ctx, engine.CodeMalformedRequest, reason)
		return
	}
	s.dispatch(ctx, a)
	if s.load.draining.Load() != nil {
		ctx.SetConnectionClose()
	}
}

// requestStateOf returns the state of a request that the library has read: a new one, or that of the express path if it
// began the request and did not answer it.
func (s *Server) requestStateOf(ctx *fasthttp.RequestCtx) *requestState {
	c, ok := ctx.Conn().(*conn.Conn)
	if !ok {
		return s.newRequestState(nil, nil)
	}
	c.BeginRequest(conn.RequestLength(ctx))
	state := stateOf(c)
	if state == nil {
		state = &connState{proxied: s.proxies.Contains(c.Peer())}
		c.User = state
	}
	if a := state.handedOver; a != nil {
		state.handedOver = nil
		return a
	}
	return s.newRequestState(c, state)
}

func (s *Server) newRequestState(c *conn.Conn, state *connState) *requestState {
	a := s.requestStates.Get().(*requestState)
	*a = requestState{conn: c, connState: state, requestScratch: a.requestScratch}
	return a
}

// finish is deferred for every request: it answers a panic, counts the answer and calls the access log.
func (s *Server) finish(ctx *fasthttp.RequestCtx, a *requestState) {
	if cause := recover(); cause != nil {
		s.refusePanic(ctx, cause)
	}
	s.counters.countAnswer(ctx, a)
	if s.config.AccessLog != nil {
		s.logAccess(ctx, a)
	}
	s.requestStates.Put(a)
}

// startResponse sets the request id and the headers that are common to all answers, except for the 200 and 304 of data
// operations (see head.go). It does nothing if it was called before.
func (s *Server) startResponse(ctx *fasthttp.RequestCtx) {
	if s.idOf(ctx) == nil {
		s.restartResponse(ctx)
	}
}

// restartResponse is startResponse for an answer that replaces another.
func (s *Server) restartResponse(ctx *fasthttp.RequestCtx) {
	header := &ctx.Response.Header
	mustClose := header.ConnectionClose()
	switch {
	case s.harness != nil:
		s.startDatedResponse(ctx)
	case s.config.Accounts != nil && isAccountTarget(ctx.Request.Header.RequestURI()):
		s.accountHeaders.CopyTo(header)
	default:
		s.errorHeaders.CopyTo(header)
	}
	if mustClose {
		header.SetConnectionClose()
	}
	header.SetCanonical(bytesOf(headerRequestID), bytesOf(s.newIDText()))
	s.addDeprecation(header)
}

// libraryLog logs the formats of the library's log messages without their arguments, which contain parts of requests.
type libraryLog struct{ log *slog.Logger }

// Printf logs the format.
func (l libraryLog) Printf(format string, _ ...any) {
	l.log.LogAttrs(context.Background(), slog.LevelDebug, "http library", slog.String("class", format))
}
