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
// With a Harness the Date header comes from Config.Clock, so that responses are the same on every machine. A test then
// calls ServeConn instead of Serve, because a bubble of testing/synctest requires that all goroutines end. Serve starts
// a goroutine of fasthttp that updates Date and never ends.
type Harness struct {
	// Around wraps the handler of all requests that the HTTP library (fasthttp) could read. It may be nil.
	Around func(next fasthttp.RequestHandler) fasthttp.RequestHandler
}

// plantedKey is the name of the fasthttp user value in which Plant stores its error. A string name does not allocate.
const plantedKey = "planted"

// Plant makes the server answer a request with err instead of calling the operation. Route, method and authentication
// are checked before. A request that gets a 429 does not count against the quota, and the rate-limit headers say that
// no requests remain. Without a Harness, Plant has no effect.
func Plant(ctx *fasthttp.RequestCtx, err *engine.Error) { ctx.SetUserValue(plantedKey, err) }

// ServeConn answers the requests on a connection until the client ends it, and closes it. Shutdown does not wait for
// ServeConn; the caller can close the connection.
func (s *Server) ServeConn(conn net.Conn) error { return s.http.ServeConn(conn) }

// harness has the templates that replace Server.errorHeaders and Server.accountHeaders if there is a Harness.
type harness struct {
	once           sync.Once
	errorHeaders   fasthttp.ResponseHeader
	accountHeaders fasthttp.ResponseHeader
}

// fill fills in the templates. It copies a header of the HTTP library first, because only the library can set the flag
// that turns its own Date off.
func (h *harness) fill(withoutDate *fasthttp.ResponseHeader, hasAdmitter bool) {
	h.once.Do(func() {
		withoutDate.CopyTo(&h.errorHeaders)
		fillErrorHeaders(&h.errorHeaders, hasAdmitter)
		fillAccountHeaders(&h.accountHeaders, &h.errorHeaders)
	})
}

// startDatedResponse copies the header template to the response and sets Date. restartResponse calls it if there is a
// Harness.
func (s *Server) startDatedResponse(ctx *fasthttp.RequestCtx) {
	header := &ctx.Response.Header
	s.harness.fill(header, s.config.Admitter != nil)
	template := &s.harness.errorHeaders
	if s.config.Accounts != nil && isAccountTarget(ctx.Request.Header.RequestURI()) {
		template = &s.harness.accountHeaders
	}
	template.CopyTo(header)
	s.date(header)
}

// date sets the Date header by parsing a trailer, because the setters of the HTTP library ignore Date.
func (s *Server) date(header *fasthttp.ResponseHeader) {
	line := fasthttp.HeaderDate + ": " + s.config.Clock().UTC().Format(http.TimeFormat) + "\r\n\r\n"
	if err := header.ReadTrailer(bufio.NewReader(strings.NewReader(line))); err != nil {
		panic("httpapi: the library rejects " + line)
	}
}

// plantedError returns the error of Plant for a request, or nil.
func (s *Server) plantedError(ctx *fasthttp.RequestCtx) *engine.Error {
	if s.harness == nil {
		return nil
	}
	err, _ := ctx.UserValue(plantedKey).(*engine.Error)
	return err
}

// rejectPlanted answers a planted 429: it refunds the charge and shows the quota window as used up. For other planted
// errors it returns false and does nothing.
func (s *Server) rejectPlanted(ctx *fasthttp.RequestCtx, r *route, admission *account.Admission, err *engine.Error) bool {
	if answered, _ := status(err.Code); answered != fasthttp.StatusTooManyRequests {
		return false
	}
	if admission.Admitted {
		s.config.Admitter.Refund(*admission)
		admission.Admitted = false
	}
	admission.DenyCode, admission.RetryAfter = err.Code, max(err.RetryAfter, time.Second)
	window := &admission.Minute
	if err.Code == engine.CodeQuotaExceeded {
		window = &admission.Day
	}
	window.Remaining, window.Reset = 0, s.config.Clock().Add(admission.RetryAfter)
	s.rejectOverLimit(ctx, r, &admission.QuotaResult)
	return true
}
