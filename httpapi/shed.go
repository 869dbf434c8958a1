package httpapi

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/conn"
)

// overloadRetryAfter is the Retry-After of a request that is shed: answered 503 to reduce the load.
const overloadRetryAfter = time.Second

// shedRequest sheds a request in two cases: the load shedder rejects it because it has waited too long, or its
// connection is beyond Limits.ConnsMax. shedRequest then answers 503 and returns true. A shed request does not count
// against a quota, and the response has no rate-limit headers. Health requests are never shed.
func (s *Server) shedRequest(ctx *fasthttp.RequestCtx, a *requestState) bool {
	target := ctx.Request.Header.RequestURI()
	late, keyed := a.shed, a.connState.keyed
	if !a.expressed {
		if first, sampled := a.conn.RequestArrived(); sampled {
			// The key is looked up later. Until then the first request on a connection counts as one with a key if it has any
			// Authorization header. A later request counts as one with a key if the previous request had a valid key.
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

// priorityOf returns the priority of a request for the load shedder. keyed means that the caller has an API key.
// History and conversions have a lower priority, because they take the most work.
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

// connState is the state that the server stores with a connection, in conn.Conn.User.
type connState struct {
	keyed      bool          // the newest request had an API key, and Config.Admitter admitted the request
	proxied    bool          // the peer is a trusted proxy
	head       *knownHead    // known head of the newest request that the express path began; nil: none
	handedOver *requestState // state of a request that the express path began and serve must answer; nil: none
}

// stateOf returns the state of a connection, or nil before its first request.
func stateOf(c *conn.Conn) *connState {
	state, _ := c.User.(*connState)
	return state
}

// queueBody lets the connection write the body of a response to GET without a copy, if conn.Conn.QueueBody accepts the
// body.
func (a *requestState) queueBody(ctx *fasthttp.RequestCtx) {
	if a.conn != nil && ctx.IsGet() && a.conn.QueueBody(ctx.Response.Body()) {
		ctx.Response.SkipBody = true
	}
}
