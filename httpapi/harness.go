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

// Harness changes a server for use inside a test (package apitest). Danger: a node must not set it.
//
// With a Harness the Date header comes from Config.Clock, so that answers are the same on every machine. ServeConn
// replaces Serve and leaves no goroutine behind, as a bubble of testing/synctest requires: the library updates its own
// Date in a goroutine that never ends.
type Harness struct {
	// Around wraps the handler of each request that was read, well-formed or not. It may be nil.
	Around func(next fasthttp.RequestHandler) fasthttp.RequestHandler
}

// plantedKey is the key of the user value that holds the error of Plant. The library copies nothing for a string key.
const plantedKey = "planted"

// Plant makes err the answer to a request, with all headers of such an answer. It replaces the operation; route, method
// and authentication are checked before it. A 429 shows its window as used up and is not charged. Only a server with a
// Harness reads planted errors.
func Plant(ctx *fasthttp.RequestCtx, err *engine.Error) { ctx.SetUserValue(plantedKey, err) }

// ServeConn answers the requests of a connection until it ends, and closes it. Shutdown does not wait for it: the
// caller closes the connection to stop it.
func (s *Server) ServeConn(conn net.Conn) error { return s.http.ServeConn(conn) }

// harness is the state of a Harness: the templates of answers with a Date from Config.Clock.
type harness struct {
	once              sync.Once
	template, private fasthttp.ResponseHeader
}

// fill makes the templates from a header of the library, because only the library can turn its own Date off.
func (h *harness) fill(prepared *fasthttp.ResponseHeader, gated bool) {
	h.once.Do(func() {
		prepared.CopyTo(&h.template)
		fillErrorHeaders(&h.template, gated)
		fillAccountHeaders(&h.private, &h.template)
	})
}

// startDatedResponse is the first part of restartResponse for a server with a Harness.
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

// date sets the Date header by reading it as a trailer, because no setter of the library sets it.
func (s *Server) date(header *fasthttp.ResponseHeader) {
	line := fasthttp.HeaderDate + ": " + s.config.Clock().UTC().Format(http.TimeFormat) + "\r\n\r\n"
	if err := header.ReadTrailer(bufio.NewReader(strings.NewReader(line))); err != nil {
		panic("httpapi: the library refuses " + line)
	}
}

// plantedFor returns the planted error of a request, or nil.
func (s *Server) plantedFor(ctx *fasthttp.RequestCtx) *engine.Error {
	if s.harness == nil {
		return nil
	}
	err, _ := ctx.UserValue(plantedKey).(*engine.Error)
	return err
}

// refusePlanted turns a grant into the planted refusal. It returns false unless the status of the refusal is 429.
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
