package httpapi

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// route is a data operation (all of /v1 except /v1/account): a row of the table routes.
type route struct {
	pattern   string
	operation params.Operation
	page      func(s *Server, q *params.Query, now requestTime) (dataPage, error) // nil: convert
	// fromCatalogue means that the operation needs only the catalogue of currencies and institutions, so it is ready
	// before any rate is loaded.
	fromCatalogue bool
}

// routes returns the table of data operations. A new operation also needs a params.Operation and rows for its
// parameters in package params.
func routes() []route {
	return []route{
		{"/v1/currencies", params.Currencies, (*Server).currencies, true},
		{"/v1/institutions", params.Institutions, (*Server).institutions, true},
		{params.InstitutionPath + "{id}", params.Institution, (*Server).institution, true},
		{"/v1/rates", params.Rates, (*Server).rates, false},
		{"/v1/rates/best", params.Best, (*Server).best, false},
		{"/v1/rates/history", params.History, (*Server).history, false},
		{"/v1/convert", params.Convert, nil, false},
	}
}

// Routes returns the method and the path of every operation, such as "GET /v1/rates/best", and of the health requests.
// An operation with GET also has HEAD, and all have OPTIONS. {id} as the last segment stands for any segment.
func Routes() []string {
	var all []string
	for _, r := range routes() {
		all = append(all, "GET "+r.pattern)
	}
	for _, op := range accountOperations() {
		all = append(all, op.method+" "+op.pattern)
	}
	return append(all, "GET "+livezPath, "GET "+healthzPath, "GET "+readyzPath)
}

// endpoint answers all requests for a path, whatever their method is.
type endpoint struct {
	routeID routeID // for the counters
	answer  func(ctx *fasthttp.RequestCtx, a *requestState)
}

// endpoints returns all endpoints by pattern. {id} as the last segment of a pattern matches any segment.
func (s *Server) endpoints() map[string]endpoint {
	all := map[string]endpoint{}
	add := func(pattern string, answer func(ctx *fasthttp.RequestCtx, a *requestState)) {
		all[pattern] = endpoint{s.counters.routeIDs[pattern], answer}
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

// newRouter registers every pattern once, under GET, for Router.Lookup. Router.Handler is not used for two reasons. It
// answers other methods itself, without our error body. And it uses the path that the HTTP library (fasthttp) parsed,
// which is "/path" if the target is "//host/path" and the request has no Host.
func (s *Server) newRouter() *router.Router {
	r := router.New()
	for _, pattern := range slices.Sorted(maps.Keys(s.paths)) { // the library needs /a before /a/{id}
		// {id:*} matches the rest of the path, which the library does not copy as it would a segment; see oneSegment.
		r.GET(strings.Replace(pattern, "{id}", "{id:*}", 1), func(ctx *fasthttp.RequestCtx) {
			a, found := ctx.UserValue(requestStateKey).(*requestState), s.paths[pattern]
			a.route = found.routeID
			found.answer(ctx, a)
		})
	}
	return r
}

// requestStateKey is the name of the fasthttp user value that holds the requestState. The router passes only ctx to a
// handler.
const requestStateKey = "requestState"

// oneSegment returns false if the pattern of the path has {id} and the id is empty or has more than one segment.
func oneSegment(path []byte) bool {
	for _, prefix := range []string{params.InstitutionPath, keysPath + "/"} {
		if id, found := bytes.CutPrefix(path, bytesOf(prefix)); found {
			return len(id) > 0 && bytes.IndexByte(id, '/') < 0
		}
	}
	return true
}

// dispatch calls the endpoint for the path of a request. If there is none, it calls Config.Site, or answers 404.
func (s *Server) dispatch(ctx *fasthttp.RequestCtx, a *requestState) {
	a.route = routeUnmatched
	path, _ := splitTarget(ctx.Request.Header.RequestURI())
	if string(path) == "*" {
		a.route = routeAsterisk
		s.answerOptions(ctx)
		return
	}
	// With a nil context the router does not store {id}, which would be an allocation.
	if handler, _ := s.router.Lookup(fasthttp.MethodGet, textOf(path), nil); handler != nil && oneSegment(path) {
		ctx.SetUserValue(requestStateKey, a)
		handler(ctx)
		return
	}
	if s.HasPage(string(path), acceptOf(ctx)) {
		a.route = routeSite
		s.answerSite(ctx)
		return
	}
	s.reject(ctx, engine.CodeNotFound, "Nothing is at this path. Paths match exactly, without a slash at the end.")
}

// splitTarget returns the path and the query of a request target, not decoded. conn.Malformed has checked that the
// target begins with "/" or "scheme://host", or is "*".
func splitTarget(target []byte) (path, query []byte) {
	if len(target) > 0 && target[0] != '/' {
		if _, afterScheme, isAbsolute := bytes.Cut(target, []byte("://")); isAbsolute {
			target = afterScheme
			if end := bytes.IndexAny(target, "/?"); end >= 0 {
				target = target[end:]
			} else {
				target = nil
			}
		}
	}
	path, query, _ = bytes.Cut(target, []byte("?"))
	return path, query
}

// answer checks the method of a request for a data operation and answers it.
func (s *Server) answer(ctx *fasthttp.RequestCtx, r *route, a *requestState) {
	switch {
	case ctx.IsGet(), ctx.IsHead():
	case ctx.IsOptions():
		s.answerOptions(ctx)
		return
	default:
		s.rejectMethod(ctx, "operation", methodsAllowed)
		return
	}
	s.admitAndAnswer(ctx, r, a)
}

// rejectMethod answers 405. noun is "operation" or "path", for the message.
func (s *Server) rejectMethod(ctx *fasthttp.RequestCtx, noun, allowed string) {
	s.startResponse(ctx)
	ctx.Response.Header.Set(fasthttp.HeaderAllow, allowed)
	s.reject(ctx, engine.CodeMethodNotAllowed, "This "+noun+" knows the methods "+allowed+".")
}

// answerData parses the parameters of an admitted request and answers it.
func (s *Server) answerData(ctx *fasthttp.RequestCtx, r *route, a *requestState) {
	if err := s.plantedError(ctx); err != nil {
		s.answerError(ctx, err)
		return
	}
	a.repanic()
	path, text := splitTarget(ctx.Request.Header.RequestURI())
	var problems []params.Problem
	a.query, problems = s.params.Read(r.operation, path, text, params.Options{
		Catalogue: s.config.Catalogue, Today: a.now.today, AllowUnknown: s.config.AllowUnknownParameters,
	})
	if len(problems) > 0 {
		s.rejectParameters(ctx, r, problems)
		return
	}
	if r.page == nil {
		s.convert(ctx, &a.query, a)
		return
	}
	s.answerPage(ctx, r, &a.query, a)
}

// answerOptions answers OPTIONS for data operations: 204 with the CORS preflight headers.
func (s *Server) answerOptions(ctx *fasthttp.RequestCtx) {
	s.startResponse(ctx)
	header := &ctx.Response.Header
	header.Set(fasthttp.HeaderAllow, methodsAllowed)
	header.Set(fasthttp.HeaderAccessControlAllowMethods, methodsAllowed)
	header.Set(fasthttp.HeaderAccessControlAllowHeaders, preflightHeaders)
	if s.config.AllowAuthorizationHeader {
		header.Set(fasthttp.HeaderAccessControlAllowHeaders, preflightHeadersWithAuth)
	}
	header.Set(fasthttp.HeaderAccessControlMaxAge, preflightSeconds)
	s.answerEmpty(ctx, fasthttp.StatusNoContent)
}

// answerEmpty answers with a status, without body and Content-Type.
func (s *Server) answerEmpty(ctx *fasthttp.RequestCtx, status int) {
	ctx.SetStatusCode(status)
	ctx.Response.Header.SetContentTypeBytes(nil)
	ctx.Response.ResetBody()
}

// rejectParameters answers 400, or 503 if the operation is not ready yet. A request with valid parameters gets the 503
// from the operation itself.
func (s *Server) rejectParameters(ctx *fasthttp.RequestCtx, r *route, problems []params.Problem) {
	if err := s.notReadyError(r); err != nil {
		s.answerError(ctx, err)
		return
	}
	s.rejectWithDetails(ctx, engine.CodeInvalidParameters, "The parameters are not valid; details has every problem.", problems)
}

// notReadyError returns an error if the service can't answer any request for an operation yet, whatever the parameters
// are. To find out, it sends the smallest query for rates to the service.
func (s *Server) notReadyError(r *route) error {
	if r.fromCatalogue {
		return nil
	}
	_, err := s.config.Service.Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 1}})
	return err
}
