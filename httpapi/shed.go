package httpapi

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/conn"
)

// overloadRetryAfter is the Retry-After of a shed request.
const overloadRetryAfter = time.Second

// shedRequest answers a request with 503 and returns true if the request has waited too long for an admission slot, or
// if its connection is beyond Limits.ConnsMax. Such a request is not charged, and the response has no rate-limit
// headers. Health requests are never shed.
func (s *Server) shedRequest(ctx *fasthttp.RequestCtx, a *requestState) bool {
	target := ctx.Request.Header.RequestURI()
	late, keyed := a.shed, a.connState.keyed
	if !a.expressed {
		if first, sampled := a.conn.RequestArrived(); sampled {
			// The key is looked up later. Until then the first request on a connection counts as keyed if it has any
			// Authorization header, and later requests if the key of the previous request was valid.
			keyed = keyed || first && a.HasAuthorization
			late = !a.conn.Admit(priorityOf(target, keyed))
		}
	}
	if !late && !a.conn.Reserve() || isHealthTarget(target) {
		return false
	}
	message, reason := "The request has waited too long for its turn.", shedLate
	if a.conn.Reserve() {
		reason = shedFull
		message = "As many connections are open as may be. This one is closed."
		ctx.SetConnectionClose()
	}
	s.counters.countShed(priorityOf(target, keyed), reason)
	s.answerError(ctx, &engine.Error{Code: engine.CodeOverloaded, Message: message, RetryAfter: overloadRetryAfter})
	return true
}

// priorityOf returns the priority of a request. keyed means that the caller has an API key. History and conversions
// have a lower priority, because they take the most work.
func priorityOf(target []byte, keyed bool) conn.Priority {
	if isHealthTarget(target) {
		return conn.Health
	}
	costly := bytes.HasPrefix(target, []byte("/v1/rates/history")) || bytes.HasPrefix(target, []byte("/v1/convert"))
	switch {
	case costly && keyed:
		return conn.KeyedCostly
	case costly:
		return conn.AnonymousCostly
	case keyed:
		return conn.Keyed
	}
	return conn.Anonymous
}

// isHealthTarget reports whether a request is for the health of the node. Such a request is always answered, because a
// supervisor restarts a node that does not answer it.
func isHealthTarget(target []byte) bool {
	path, _, _ := bytes.Cut(target, []byte("?"))
	switch string(path) {
	case livezPath, healthzPath, readyzPath:
		return true
	}
	return false
}

// connState is the state of a connection (conn.Conn.User).
type connState struct {
	keyed      bool          // the newest request had an API key, and Config.Admitter admitted the request
	proxied    bool          // the peer is a trusted proxy
	head       *knownHead    // of the last request that was known to the express path
	handedOver *requestState // of a request that the express path has begun and the ordinary path must answer
}

// stateOf returns the state of a connection, or nil before its first request.
func stateOf(c *conn.Conn) *connState {
	state, _ := c.User.(*connState)
	return state
}

// queueBody passes the body to the connection, which writes it without a copy, if conn.Conn.QueueBody accepts it.
func (a *requestState) queueBody(ctx *fasthttp.RequestCtx) {
	if a.conn != nil && ctx.IsGet() && a.conn.QueueBody(ctx.Response.Body()) {
		ctx.Response.SkipBody = true
	}
}
