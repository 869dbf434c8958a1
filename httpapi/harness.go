package httpapi

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Harness is what a server needs that stands inside a test (package apitest). Danger: no node has one.
//
// With it the Date header comes from Config.Clock, so that answers are the same on every machine, and ServeConn
// takes the place of Serve: nothing of the server outlives it, also in a bubble of testing/synctest. The library
// keeps its own Date with a goroutine that never ends.
type Harness struct {
	// Around goes around each request that was read, well-formed or not. Nil is nothing.
	Around func(next fasthttp.RequestHandler) fasthttp.RequestHandler
}

// plantedKey is the user value under which Plant leaves its error. Strings are the keys that the library copies
// nothing for.
const plantedKey = "planted"

// Plant makes err the answer to a request, with everything that such an answer has: it takes the place of the
// operation, behind route, method and authentication. A 429 shows its window used up, and nothing is charged for it.
// Only a server with a Harness looks at it.
func Plant(ctx *fasthttp.RequestCtx, err *engine.Error) { ctx.SetUserValue(plantedKey, err) }

// ServeConn answers the requests of one connection until it ends, and closes it. Shutdown knows nothing of it:
// the caller closes the connection to end it.
func (s *Server) ServeConn(conn net.Conn) error { return s.http.ServeConn(conn) }

// harness is a Harness at work: the templates of answers whose Date is ours.
type harness struct {
	once              sync.Once
	template, private fasthttp.ResponseHeader
}

// fill makes the templates out of a header that the library prepared: only it can say that Date is not its business.
func (h *harness) fill(prepared *fasthttp.ResponseHeader, gated bool) {
	h.once.Do(func() {
		prepared.CopyTo(&h.template)
		fillErrorHeaders(&h.template, gated)
		fillAccountHeaders(&h.private, &h.template)
	})
}

// startDatedResponse is begin's first part for a server in a test.
func (s *Server) startDatedResponse(ctx *fasthttp.RequestCtx) {
	header := &ctx.Response.Header
	s.harness.fill(header, s.config.Admitter != nil)
	template := &s.harness.template
	if s.config.Accounts != nil && isAccountTarget(ctx.Request.Header.RequestURI()) {
		template = &s.harness.private
	}
	template.CopyTo(header)
	s.date(header)
}

// date sets the Date header. No setter of the library does that; reading one does, and a trailer is read behind
// what is there.
func (s *Server) date(header *fasthttp.ResponseHeader) {
	line := fasthttp.HeaderDate + ": " + s.config.Clock().UTC().Format(http.TimeFormat) + "\r\n\r\n"
	if err := header.ReadTrailer(bufio.NewReader(strings.NewReader(line))); err != nil {
		panic("httpapi: the library refuses " + line)
	}
}

// plantedFor is the error that Plant left for a request, nil without one.
func (s *Server) plantedFor(ctx *fasthttp.RequestCtx) *engine.Error {
	if s.harness == nil {
		return nil
	}
	err, _ := ctx.UserValue(plantedKey).(*engine.Error)
	return err
}

// refusePlanted turns a grant into the refusal that was planted. False when it is none of a limit.
func (s *Server) refusePlanted(ctx *fasthttp.RequestCtx, r *route, grant *account.Admission, err *engine.Error) bool {
	if answered, _ := status(err.Code); answered != fasthttp.StatusTooManyRequests {
		return false
	}
	if grant.Admitted {
		s.config.Admitter.Refund(*grant)
		grant.Admitted = false
	}
	grant.DenyCode, grant.RetryAfter = err.Code, max(err.RetryAfter, time.Second)
	window := &grant.Minute
	if err.Code == engine.CodeQuotaExceeded {
		window = &grant.Day
	}
	window.Remaining, window.Reset = 0, s.config.Clock().Add(grant.RetryAfter)
	s.refuseOverLimit(ctx, r, &grant.QuotaResult)
	return true
}
