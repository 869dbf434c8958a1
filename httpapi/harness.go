package httpapi

import (
	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
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
