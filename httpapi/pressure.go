package httpapi

import (
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
)

// overloadRetry is when those should ask again who are not served.
const overloadRetry = time.Second

// turnAway refuses a request that is not to be served: its connection holds a spare place, or it has waited too long for its turn, which
// may be here. True when it did. Nothing is charged then, and no limits are told.
//
// Only a request that is there as a whole is shown to the watch: one that comes byte by byte costs no work, and takes no seat.
func (s *Server) turnAway(ctx *fasthttp.RequestCtx, c *slottedTCP) bool {
	target := ctx.Request.Header.RequestURI()
	stale := false
	keyed := c.keyed
	if c.watch != nil && c.watch.looksAt(c.requests) {
		// A key that was good on this connection is believed, and once a key that nobody has looked at.
		keyed = keyed || c.requests == 0 && len(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization)) > 0
		stale = !c.watch.admit(c, laneOf(target, keyed))
	}
	c.requests++
	if !stale && !c.slot.spare || isHealthTarget(target) {
		return false
	}
	message, reason := "The request has waited too long for its turn.", shedLate
	if c.slot.spare {
		reason = shedFull
		message = "As many connections are open as may be. This one is closed."
		ctx.SetConnectionClose()
	}
	s.tally.shed[laneOf(target, keyed)][reason].Add(1)
	s.fail(ctx, &engine.Error{Code: engine.CodeOverloaded, Message: message, RetryAfter: overloadRetry})
	return true
}
