package httpapi

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/conn"
)

// overloadRetry is when those should ask again who are not served.
const overloadRetry = time.Second

// turnAway refuses a request that is not to be served: its connection holds a spare place, or it has waited too long for its turn, which
// may be here. True when it did. Nothing is charged then, and no limits are told.
func (s *Server) turnAway(ctx *fasthttp.RequestCtx, a *asked) bool {
	target := ctx.Request.Header.RequestURI()
	stale, keyed := false, a.on.keyed
	if first, looked := a.conn.Arrived(); looked {
		// A key that was good on this connection is believed, and once a key that nobody has looked at.
		keyed = keyed || first && a.Authorized
		stale = !a.conn.Admit(laneOf(target, keyed))
	}
	if !stale && !a.conn.Spare() || isHealthTarget(target) {
		return false
	}
	message, reason := "The request has waited too long for its turn.", shedLate
	if a.conn.Spare() {
		reason = shedFull
		message = "As many connections are open as may be. This one is closed."
		ctx.SetConnectionClose()
	}
	s.tally.countShed(laneOf(target, keyed), reason)
	s.fail(ctx, &engine.Error{Code: engine.CodeOverloaded, Message: message, RetryAfter: overloadRetry})
	return true
}

// laneOf is the lane of a request by its target, and by whether its caller has a key. History and conversions take the most work.
func laneOf(target []byte, keyed bool) conn.Lane {
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

// isHealthTarget tells a question about the node itself: whoever restarts nodes that do not answer asks it, so it is answered whatever
// else is refused.
func isHealthTarget(target []byte) bool {
	path, _, _ := bytes.Cut(target, []byte("?"))
	switch string(path) {
	case livePath, liveOtherPath, readyPath:
		return true
	}
	return false
}

// connState is what the server keeps with a connection.
type connState struct {
	shard shard // where its requests are counted
	keyed bool  // the last request had a key that was good
}

// stateOf is a connection's, nil before its first request.
func stateOf(c *conn.Conn) *connState {
	state, _ := c.User.(*connState)
	return state
}

// sendAside leaves the body of an answer to its connection, where that is right.
func (a *asked) sendAside(ctx *fasthttp.RequestCtx) {
	if a.conn != nil && ctx.IsGet() && a.conn.SendAside(ctx.Response.Body()) {
		ctx.Response.SkipBody = true
	}
}
