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
	answer    func(s *Server, ctx *fasthttp.RequestCtx, q *params.Query, a *asked)
	// fromCatalogue says that the operation answers before the first rate is loaded (E4).
	fromCatalogue bool
}

// routes is the table of operations (interface §4). A new operation is a row here, a bit in operations, and its parameters.
func routes() []route {
	return []route{
		{"/v1/currencies", params.Currencies, (*Server).currencies, true},
		{"/v1/institutions", params.Institutions, (*Server).institutions, true},
		{params.InstitutionPath + "{id}", params.Institution, (*Server).institution, true},
		{"/v1/rates", params.Rates, (*Server).rates, false},
		{"/v1/rates/best", params.Best, (*Server).best, false},
		{"/v1/rates/history", params.History, (*Server).history, false},
		{"/v1/convert", params.Convert, (*Server).convert, false},
	}
}

// endpoint is what answers a path, whatever the method: the path is looked up before the method is judged (L7).
type endpoint struct {
	row    row // where its requests are counted
	answer func(ctx *fasthttp.RequestCtx, a *asked)
}

// endpoints are all paths by their patterns, of which a last segment {id} stands for any text.
func (s *Server) endpoints() map[string]endpoint {
	all := map[string]endpoint{}
	add := func(pattern string, answer func(ctx *fasthttp.RequestCtx, a *asked)) {
		all[pattern] = endpoint{s.tally.rows[pattern], answer}
	}
	for _, route := range routes() {
		add(route.pattern, func(ctx *fasthttp.RequestCtx, a *asked) { s.answer(ctx, &route, a) })
	}
	if s.config.Accounts != nil {
		for pattern, path := range accountPaths() {
			add(pattern, func(ctx *fasthttp.RequestCtx, _ *asked) { s.answerAccount(ctx, path) })
		}
	}
	for path, answer := range map[string]fasthttp.RequestHandler{livePath: live, liveOtherPath: live, readyPath: s.ready} {
		add(path, func(ctx *fasthttp.RequestCtx, _ *asked) { s.answerProbe(ctx, answer) })
	}
	return all
}

// newRouter registers every path once, under GET. Only Lookup is used: Handler would take the path from the library's URI, which turns
// "//host/path" of a request without Host into "/path", and would answer other methods in its own words.
func (s *Server) newRouter() *router.Router {
	r := router.New()
	for _, pattern := range slices.Sorted(maps.Keys(s.paths)) { // the library wants a path before what stands below it
		// The rest of a path is not copied, one segment would be: see oneSegment.
		r.GET(strings.Replace(pattern, "{id}", "{id:*}", 1), func(ctx *fasthttp.RequestCtx) {
			a, found := ctx.UserValue(askedValue).(*asked), s.paths[pattern]
			a.row = found.row
			found.answer(ctx, a)
		})
	}
	return r
}

// askedValue is the user value under which a route finds its request's state: the router passes only the context.
const askedValue = "asked"

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
func (s *Server) dispatch(ctx *fasthttp.RequestCtx, a *asked) {
	if a.conn != nil && s.turnAway(ctx, a) {
		return
	}
	a.row = rowNone
	target := ctx.Request.Header.RequestURI()
	if a.plan, a.hash = s.plans.find(target); a.plan != nil {
		a.row = a.plan.row
		s.answer(ctx, a.plan.route, a)
		return
	}
	path, _ := splitTarget(target)
	if string(path) == "*" {
		a.row = rowAsterisk
		s.answerOptions(ctx)
		return
	}
	// Without a context the router keeps no path parameter, which would be a copy on the heap.
	if handler, _ := s.router.Lookup(fasthttp.MethodGet, textOf(path), nil); handler != nil && oneSegment(path) {
		ctx.SetUserValue(askedValue, a)
		handler(ctx)
		return
	}
	if s.hasPage(path) {
		a.row = rowSite
		s.answerPage(ctx)
		return
	}
	s.refuse(ctx, engine.CodeNotFound, "Nothing is at this path. Paths match exactly, without a slash at the end.")
}

// splitTarget is path and query of a request target as they were sent, without scheme and host where it has them. The guard
// has seen that it begins with "/" or "scheme://", or is "*".
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

// answer takes a request through the checks that follow the route (L7): method, then authentication, readiness and limits where
// there is a gate, and parameters.
func (s *Server) answer(ctx *fasthttp.RequestCtx, r *route, a *asked) {
	switch {
	case ctx.IsGet(), ctx.IsHead():
	case ctx.IsOptions():
		s.answerOptions(ctx)
		return
	default:
		s.refuseMethod(ctx, "operation", methodsAllowed)
		return
	}
	if s.config.Gate == nil {
		a.now = s.instant()
		s.answerData(ctx, r, a)
		return
	}
	s.answerInTurn(ctx, r, a)
}

// refuseMethod answers 405.
func (s *Server) refuseMethod(ctx *fasthttp.RequestCtx, what, allowed string) {
	s.begin(ctx)
	ctx.Response.Header.Set(fasthttp.HeaderAllow, allowed)
	s.refuse(ctx, engine.CodeMethodNotAllowed, "This "+what+" knows the methods "+allowed+".")
}

// answerData reads the parameters, unless somebody asked the same before, and answers.
func (s *Server) answerData(ctx *fasthttp.RequestCtx, r *route, a *asked) {
	if err := s.plantedFor(ctx); err != nil {
		s.fail(ctx, err)
		return
	}
	if a.plan != nil && a.plan.today == a.now.today {
		r.answer(s, ctx, &a.plan.query, a)
		return
	}
	target := ctx.Request.Header.RequestURI()
	path, text := splitTarget(target)
	var problems []params.Problem
	a.query, problems = s.params.Read(r.operation, path, text, params.Options{
		Catalogue: s.config.Catalogue, Today: a.now.today, AllowUnknown: s.config.AllowUnknownParameters,
	})
	if len(problems) > 0 {
		s.refuseParameters(ctx, r, problems)
		return
	}
	s.plans.keep(target, a.hash, r, a)
	r.answer(s, ctx, &a.query, a)
}

// answerOptions answers 204 with what is allowed (Q5).
func (s *Server) answerOptions(ctx *fasthttp.RequestCtx) {
	s.begin(ctx)
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

// refuseParameters answers 400, unless nothing is loaded yet: readiness comes before parameters (L7). A good request learns
// it from the answer itself, so only a bad one asks.
func (s *Server) refuseParameters(ctx *fasthttp.RequestCtx, r *route, problems []params.Problem) {
	if err := s.unready(r); err != nil {
		s.fail(ctx, err)
		return
	}
	s.refuseWith(ctx, engine.CodeInvalidParameters, "The parameters are not valid; details has every problem.", problems)
}

// unready is the error of an operation that can't be answered yet, whatever the parameters.
func (s *Server) unready(r *route) error {
	if r.fromCatalogue {
		return nil
	}
	_, err := s.config.Service.Rates(engine.RatesQuery{Cut: engine.Cut{Limit: 1}})
	return err
}
