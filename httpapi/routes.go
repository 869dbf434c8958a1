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

// route is one row of the table of operations.
type route struct {
	pattern   string
	operation params.Operation
	page      func(s *Server, q *params.Query, now requestTime) (dataPage, error) // nil: convert
	// fromCatalogue says that the operation answers before the first rate is loaded.
	fromCatalogue bool
}

// routes is the table of operations (interface §4). A new operation is a row here, a bit in operations, and its
// parameters.
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

// endpoint is what answers a path, whatever the method: the path is looked up before the method is judged.
type endpoint struct {
	routeID routeID // where its requests are counted
	answer  func(ctx *fasthttp.RequestCtx, a *requestState)
}

// endpoints are all paths by their patterns, of which a last segment {id} stands for any text.
func (s *Server) endpoints() map[string]endpoint {
	all := map[string]endpoint{}
	add := func(pattern string, answer func(ctx *fasthttp.RequestCtx, a *requestState)) {
		all[pattern] = endpoint{s.counters.routeIDs[pattern], answer}
	}
	for _, route := range routes() {
		add(route.pattern, func(ctx *fasthttp.RequestCtx, a *requestState) { s.answer(ctx, &route, a) })
	}
	if s.config.Accounts != nil {
		for pattern, path := range accountPaths() {
			add(pattern, func(ctx *fasthttp.RequestCtx, _ *requestState) { s.answerAccount(ctx, path) })
		}
	}
	for path, answer := range map[string]fasthttp.RequestHandler{livezPath: live, healthzPath: live, readyzPath: s.ready} {
		add(path, func(ctx *fasthttp.RequestCtx, _ *requestState) { s.answerProbe(ctx, answer) })
	}
	return all
}

// newRouter registers every path once, under GET. Only Lookup is used: Handler would take the path from the
// library's URI, which turns "//host/path" of a request without Host into "/path", and would answer other methods
// in its own words.
func (s *Server) newRouter() *router.Router {
	r := router.New()
	for _, pattern := range slices.Sorted(maps.Keys(s.paths)) { // the library wants a path before what stands below it
		// The rest of a path is not copied, one segment would be: see oneSegment.
		r.GET(strings.Replace(pattern, "{id}", "{id:*}", 1), func(ctx *fasthttp.RequestCtx) {
			a, found := ctx.UserValue(requestStateKey).(*requestState), s.paths[pattern]
			a.route = found.routeID
			found.answer(ctx, a)
		})
	}
	return r
}

// requestStateKey is the user value under which a route finds its request's state: the router passes only the context.
const requestStateKey = "asked"

// oneSegment reports whether the id of a path that ends with one is there, and one segment.
func oneSegment(path []byte) bool {
	for _, prefix := range []string{params.InstitutionPath, keysPath + "/"} {
		if id, found := bytes.CutPrefix(path, bytesOf(prefix)); found {
			return len(id) > 0 && bytes.IndexByte(id, '/') < 0
		}
	}
	return true
}

// dispatch finds the route of a request.
func (s *Server) dispatch(ctx *fasthttp.RequestCtx, a *requestState) {
	if a.conn != nil && s.shedRequest(ctx, a) {
		return
	}
	a.route = routeUnmatched
	path, _ := splitTarget(ctx.Request.Header.RequestURI())
	if string(path) == "*" {
		a.route = routeAsterisk
		s.answerOptions(ctx)
		return
	}
	// Without a context the router keeps no path parameter, which would be a copy on the heap.
	if handler, _ := s.router.Lookup(fasthttp.MethodGet, textOf(path), nil); handler != nil && oneSegment(path) {
		ctx.SetUserValue(requestStateKey, a)
		handler(ctx)
		return
	}
	if s.hasPage(ctx, path) {
		a.route = routeSite
		s.answerSite(ctx)
		return
	}
	s.refuse(ctx, engine.CodeNotFound, "Nothing is at this path. Paths match exactly, without a slash at the end.")
}

// splitTarget is path and query of a request target as they were sent, without scheme and host where it has them.
// The guard has seen that it begins with "/" or "scheme://", or is "*".
func splitTarget(target []byte) (path, query []byte) {
	if len(target) > 0 && target[0] != '/' {
		if at := bytes.Index(target, []byte("://")); at >= 0 {
			target = target[at+len("://"):]
			if end := bytes.IndexAny(target, "/?"); end >= 0 {
				target = target[end:]
			} else {
				target = nil
			}
		}
	}
	if mark := bytes.IndexByte(target, '?'); mark >= 0 {
		return target[:mark], target[mark+1:]
	}
	return target, nil
}

// answer takes a request through the checks that follow the route: method, then authentication, readiness and limits,
// and parameters.
func (s *Server) answer(ctx *fasthttp.RequestCtx, r *route, a *requestState) {
	switch {
	case ctx.IsGet(), ctx.IsHead():
	case ctx.IsOptions():
		s.answerOptions(ctx)
		return
	default:
		s.refuseMethod(ctx, "operation", methodsAllowed)
		return
	}
	s.admitAndAnswer(ctx, r, a)
}

// refuseMethod answers 405.
func (s *Server) refuseMethod(ctx *fasthttp.RequestCtx, what, allowed string) {
	s.startResponse(ctx)
	ctx.Response.Header.Set(fasthttp.HeaderAllow, allowed)
	s.refuse(ctx, engine.CodeMethodNotAllowed, "This "+what+" knows the methods "+allowed+".")
}

// answerData reads the parameters and answers.
func (s *Server) answerData(ctx *fasthttp.RequestCtx, r *route, a *requestState) {
	if err := s.plantedFor(ctx); err != nil {
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
		s.refuseParameters(ctx, r, problems)
		return
	}
	if r.page == nil {
		s.convert(ctx, &a.query, a)
		return
	}
	s.answerPage(ctx, r, &a.query, a)
}

// answerOptions answers 204 with what is allowed.
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

// answerEmpty ends an answer that has no body and says nothing about one.
func (s *Server) answerEmpty(ctx *fasthttp.RequestCtx, status int) {
	ctx.SetStatusCode(status)
	ctx.Response.Header.SetContentTypeBytes(nil)
	ctx.Response.ResetBody()
}

// refuseParameters answers 400, unless nothing is loaded yet: readiness comes before parameters. A good
// request learns it from the answer itself, so only a bad one asks.
func (s *Server) refuseParameters(ctx *fasthttp.RequestCtx, r *route, problems []params.Problem) {
	if err := s.notReadyError(r); err != nil {
		s.answerError(ctx, err)
		return
	}
	s.refuseWith(ctx, engine.CodeInvalidParameters, "The parameters are not valid; details has every problem.", problems)
}

// notReadyError is the error of an operation that can't be answered yet, whatever the parameters.
func (s *Server) notReadyError(r *route) error {
	if r.fromCatalogue {
		return nil
	}
	_, err := s.config.Service.Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 1}})
	return err
}
