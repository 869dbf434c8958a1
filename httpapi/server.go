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

// Config is what a Server needs. Service, Catalogue, Clock and RequestID must be there; everything else has a good
// zero value.
type Config struct {
	// Service answers the data operations. Danger: a page keeps its encoded answer (engine.Page.Memo), so servers that
	// share a service must have the same FeeNotice.
	Service engine.Service
	// Catalogue gives known currency codes and institution ids their one string, so that parsing a query copies
	// nothing.
	Catalogue *engine.Catalogue
	// Clock is the present.
	Clock func() time.Time
	// RequestID names the request of a number; no number comes twice. It must be safe for concurrent use and give
	// text that fits a header. See RequestIDs.
	RequestID func(number uint64) RequestID
	// Admitter admits data requests: keys and limits. Nil means neither: everything is answered, without a word
	// about limits.
	Admitter account.Admitter
	// Accounts answers the account operations. Nil means that there are none: 404.
	Accounts account.Service
	// TrustedProxies are the networks of the proxies in front, whose X-Forwarded-For is believed. Danger: a
	// network with other hosts in it lets those choose whose quota they use up.
	TrustedProxies []netip.Prefix
	// Realm is named by a 401; "" means tasard.
	Realm string
	// DeprecationLink and SunsetLink are the URLs of the pages that explain the end of anonymous access; answers
	// link to them while it is announced. "" leaves a link out.
	DeprecationLink, SunsetLink string
	// FeeNotice is the sentence that goes with each conversion; "" means engine.FeeNotice.
	FeeNotice string
	// AllowUnknownParameters ignores unknown query parameters instead of refusing them. A key in the URL stays
	// refused: ignoring it would teach callers to send it.
	AllowUnknownParameters bool
	// AllowAuthorizationHeader lets browsers send Authorization. Keys live on servers, so it is off.
	AllowAuthorizationHeader bool
	// Logger gets panics and internal errors, each with its request id, and never a header, a path or a query. Nil
	// means none.
	Logger *slog.Logger
	// Limits bound what one connection may cost.
	Limits Limits
	// Health tells how the rest of the node is, for /readyz. Nil: the server knows of nothing but itself.
	Health engine.Health
	// Site answers paths that no operation has: pages, documents. Nil: there is nothing there.
	Site Site
	// Certificate makes the server speak TLS, 1.2 and later, with the certificate that it gives for each
	// connection: it may change at any time. Nil: no TLS. Listeners must be of TCP then, and answers are copied
	// once more than without.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// AccessRecord is told of every answer whose status is AccessStatusMin or more, on the connection's own
	// goroutine: the caller waits for it. Nil: nobody wants to know, and nothing is spent on it.
	AccessLog       func(AccessRecord)
	AccessStatusMin int
	// Harness is for a server inside a test. Nil in every node.
	Harness *Harness
}

// Limits bound what clients may cost. A zero field means its default.
type Limits struct {
	// ReadTimeout is for a whole request, from its first byte: 5 s. It is also the longest that Shutdown waits for a
	// client which began a request and does not end it.
	ReadTimeout time.Duration
	// WriteTimeout is for a whole answer: 5 s.
	WriteTimeout time.Duration
	// IdleTimeout is between two requests of a connection: 60 s.
	IdleTimeout time.Duration
	// HeaderBytesMax is for request line and headers together: 8 KiB; more is answered 431. Each connection holds a
	// buffer of this size.
	HeaderBytesMax int
	// BodyBytesMax is for a request body: 4 KiB; more is answered 413.
	BodyBytesMax int
	// WriteBufferBytes is what each connection gathers before it writes: 4 KiB. It holds heads, answers to requests
	// that came behind others, and over TLS what fits; other bodies go out from where they lie. Each connection
	// that was answered holds a buffer of this size.
	WriteBufferBytes int
	// ConnsMax is how many connections may be open at once: 16,384 (see conn.Config.MaxConns). Newcomers beyond it
	// are answered 503, unless they ask for the health of the node.
	ConnsMax int
	// ConnsPerClient is how many of them a client address may have: 128, and at most a fifth of ConnsMax; less than
	// 0 is any number. TrustedProxies (Config.TrustedProxies) are exempt.
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
	// reserveConnsDefault is how many connections are accepted beyond the cap, to find those that ask for health.
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
	config            Config // complete: Limits, FeeNotice and Logger are there
	proxies           fields.TrustedProxies
	load              *serverLoad
	counters          *counters
	tls               *tls.Config       // nil: none
	shedder           *conn.LoadShedder // nil: no request is too old
	harness           *harness          // nil: not in a test
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
	requestStates     sync.Pool // of *asked

	mu        sync.Mutex
	stopped   bool
	listeners []*conn.Listener
}

// New is a server that has no listener yet.
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
	// The clock of a test stands still, or leaps, and it asks from one address.
	s.config.Limits.ConnsPerClient = -1
	s.harness = &harness{}
	s.http.NoDefaultDate = true
	if c.Harness.Around != nil {
		s.http.Handler = c.Harness.Around(s.serve)
	}
	return s
}

// bodyPoolBytesMax is how large a buffer for bodies the library keeps for the next request. What clients of the
// account operations send is smaller; without a limit each connection would by and by hold a buffer of
// BodyBytesMax. It is a setting of the whole library.
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
		// Beyond Concurrency the library answers a 503 that is not our error object; the listener's cap comes first.
		Concurrency: 2 * (s.config.Limits.ConnsMax + reserveConnsDefault),

		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true,
		DisablePreParseMultipartForm: true,
	}
}

// Serve answers what ln accepts until Shutdown, then returns nil. It wraps ln with conn.Listen and closes it. After
// Shutdown it returns at once.
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

// Shutdown stops accepting, lets requests in flight finish, closes idle connections and returns when no connection is
// open, or with the context's error. Every answer says that its connection ends; idle connections are closed when there
// was no answer for a moment. A client that began a request delays it until ReadTimeout.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	conn.StopAccepting(s.listeners, s.config.Logger) // there are no others any more
	if s.shedder != nil {
		s.shedder.End()
	}
	conn.DrainListeners(ctx, s.listeners)
	return s.http.ShutdownWithContext(ctx) // it closes the listeners again, and reports the first result
}

// Handler is the whole of what happens to a request once it is read: for tests and measurements without a connection.
func (s *Server) Handler() fasthttp.RequestHandler { return s.serve }

// serve is the outermost handler: it survives panics, refuses malformed requests and finds the route.
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

// requestStateOf is the state of a request that the library has read: that of the express path, which did not
// answer it, or a new one.
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

// finish ends every request, one that ended in a panic as well: it is counted, and told of. It is deferred.
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

// startResponse names the request and puts the headers on that every answer has, but for good ones of data
// operations (see head.go); what comes later changes them. Where it has begun already it does nothing.
func (s *Server) startResponse(ctx *fasthttp.RequestCtx) {
	if s.idOf(ctx) == nil {
		s.restartResponse(ctx)
	}
}

// restartResponse is begin for an answer that takes the place of another.
func (s *Server) restartResponse(ctx *fasthttp.RequestCtx) {
	header := &ctx.Response.Header
	closes := header.ConnectionClose()
	switch {
	case s.harness != nil:
		s.startDatedResponse(ctx)
	case s.config.Accounts != nil && isAccountTarget(ctx.Request.Header.RequestURI()):
		s.accountHeaders.CopyTo(header)
	default:
		s.errorHeaders.CopyTo(header)
	}
	if closes {
		header.SetConnectionClose()
	}
	header.SetCanonical(bytesOf(headerRequestID), bytesOf(s.newIDText()))
	s.addDeprecation(header)
}

// libraryLog passes on what kind of thing the library complains about, without the arguments: they quote requests.
type libraryLog struct{ log *slog.Logger }

// Printf logs the format as it is.
func (l libraryLog) Printf(format string, _ ...any) {
	l.log.LogAttrs(context.Background(), slog.LevelDebug, "http library", slog.String("class", format))
}
