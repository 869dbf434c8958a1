package httpapi

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/conn"
)

// overloadRetryAfter is when clients should repeat a request that was shed.
const overloadRetryAfter = time.Second

// shedRequest waits for a slot. It refuses a request whose connection is beyond the cap, or that has waited too long.
// Such a request is not charged, and its answer has no limit headers.
func (s *Server) shedRequest(ctx *fasthttp.RequestCtx, a *requestState) bool {
	target := ctx.Request.Header.RequestURI()
	stale, keyed := a.shed, a.connState.keyed
	if !a.expressed {
		if first, sampled := a.conn.RequestArrived(); sampled {
			// A key that was good on this connection is believed, and once a key that was not looked up yet.
			keyed = keyed || first && a.HasAuthorization
			stale = !a.conn.Admit(priorityOf(target, keyed))
		}
	}
	if !stale && !a.conn.Reserve() || isHealthTarget(target) {
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

// priorityOf is the priority of a request by its target, and by whether its caller has a key. History and conversions
// take the most work.
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

// isHealthTarget tells a request for the health of the node: a supervisor restarts nodes that do not answer it, so it
// is answered whatever else is refused.
func isHealthTarget(target []byte) bool {
	path, _, _ := bytes.Cut(target, []byte("?"))
	switch string(path) {
	case livezPath, healthzPath, readyzPath:
		return true
	}
	return false
}

// connState is what the server keeps with a connection.
type connState struct {
	keyed      bool          // the last request had a key that was good
	proxied    bool          // the peer is a trusted proxy
	head       *knownHead    // of the last request that the express path knew
	handedOver *requestState // of the request that it did not answer, until the ordinary path has it
}

// stateOf is a connection's, nil before its first request.
func stateOf(c *conn.Conn) *connState {
	state, _ := c.User.(*connState)
	return state
}

// queueBody leaves the body of an answer to its connection, where that is right.
func (a *requestState) queueBody(ctx *fasthttp.RequestCtx) {
	if a.conn != nil && ctx.IsGet() && a.conn.QueueBody(ctx.Response.Body()) {
		ctx.Response.SkipBody = true
	}
}
