package httpapi

import (
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
)

// overloadRetry is when those should ask again who are not served.
const overloadRetry = time.Second

// turnAway refuses a request that is not to be served: its connection holds a spare place, or it has waited too long (watch). True when it
// did. Nothing is known of the caller then, nothing is charged, and no limits are told.
func (s *Server) turnAway(ctx *fasthttp.RequestCtx, c *slottedTCP) bool {
	if !c.stale && !c.slot.spare || isHealthTarget(ctx.Request.Header.RequestURI()) {
		return false
	}
	message := "The request has waited too long for its turn."
	if c.slot.spare {
		message = "As many connections are open as may be. This one is closed."
		ctx.SetConnectionClose()
	}
	s.fail(ctx, &engine.Error{Code: engine.CodeOverloaded, Message: message, RetryAfter: overloadRetry})
	return true
}
