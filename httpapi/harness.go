package httpapi

import (
	"sync"

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
