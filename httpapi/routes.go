package httpapi

import (
	"bytes"
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

// name is the pattern without what only the router understands.
func (r *route) name() string { return strings.Replace(r.pattern, ":*}", "}", 1) }

// routes is the table of operations (interface §4). A new operation is a row here, a bit in operations, and its parameters.
func routes() []route {
	return []route{
		{"/v1/currencies", params.Currencies, (*Server).currencies, true},
		{"/v1/institutions", params.Institutions, (*Server).institutions, true},
		{params.InstitutionPath + "{id:*}", params.Institution, (*Server).institution, true},
		{"/v1/rates", params.Rates, (*Server).rates, false},
		{"/v1/rates/best", params.Best, (*Server).best, false},
		{"/v1/rates/history", params.History, (*Server).history, false},
		{"/v1/convert", params.Convert, (*Server).convert, false},
	}
}

// newRouter registers every route once, under GET: the path is looked up before the method is judged (L7). Only Lookup is
// used. Handler would take the path from the library's URI, which turns "//host/path" of a request without Host into
// "/path", and would answer other methods in words of its own.
func (s *Server) newRouter() *router.Router {
	r := router.New()
	for _, route := range routes() {
		row := s.tally.rows[route.name()]
		r.GET(route.pattern, func(ctx *fasthttp.RequestCtx) {
			a := askedOf(ctx)
			a.row = row
			s.answer(ctx, &route, a)
		})
	}
	if s.config.Accounts != nil {
		s.addAccountRoutes(r)
	}
	s.addHealthRoutes(r)
	return r
}

// askedValue is the user value under which a route finds what is asked: the router hands on the context alone. Strings are the keys
// that the library copies nothing for.
const askedValue = "asked"

// dispatch finds the route of a request, byte for byte (Q8).
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
	handler, _ := s.router.Lookup(fasthttp.MethodGet, textOf(path), nil)
	if handler == nil && s.hasPage(path) {
		a.row = rowSite
		s.answerPage(ctx)
		return
	}
	if handler == nil || !oneSegment(path) {
		s.refuse(ctx, engine.CodeNotFound, "Nothing is at this path. Paths match exactly, without a slash at the end.")
		return
	}
	ctx.SetUserValue(askedValue, a)
	handler(ctx)
}

// askedOf is what dispatch handed to a route through the router.
func askedOf(ctx *fasthttp.RequestCtx) *asked { return ctx.UserValue(askedValue).(*asked) }

// oneSegment tells whether the id in an institution's path is one segment, and there. The router's own pattern for that would
// copy the id; the one for the rest of a path does not.
func oneSegment(path []byte) bool {
	id, found := bytes.CutPrefix(path, bytesOf(params.InstitutionPath))
	return !found || len(id) > 0 && bytes.IndexByte(id, '/') < 0
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
		s.begin(ctx)
		ctx.Response.Header.Set(fasthttp.HeaderAllow, methodsAllowed)
		s.refuse(ctx, engine.CodeMethodNotAllowed, "This operation knows the methods "+methodsAllowed+".")
		return
	}
	if s.config.Gate == nil {
		a.now = s.instant()
		s.answerData(ctx, r, a)
		return
	}
	s.answerInTurn(ctx, r, a)
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
