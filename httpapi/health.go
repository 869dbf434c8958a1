package httpapi

import (
	"cmp"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/encode"
)

// Where a node tells how it is. No quota, no key and no limit applies here, and no actor is asked.
const (
	livezPath   = "/livez"
	healthzPath = "/healthz"
	readyzPath  = "/readyz"
)

const (
	liveBody       = `{"status":"live"}`
	methodsHealth  = "GET, HEAD"
	readyRetry     = "2" // Retry-After of a node that is unavailable, seconds: asking again costs little
	overloadedText = "Requests are refused because more come in than can be answered; spread them, or add a node."
	fullText       = "As many connections are open as may be; newcomers get 503. Look for clients that keep idle ones, or raise the cap."
	shortageText   = "No descriptor or memory is left to accept a connection with; raise the limit of open files, or lower the connection cap."
	drainingText   = "The node was asked to stop and answers its last requests; send new ones elsewhere."
)

// serverLoad is what the server itself suffers from, for its health conditions. It is safe for concurrent use.
type serverLoad struct {
	clock     func() time.Time
	shortage  engine.Fault // nothing can be accepted for want of descriptors or memory
	connsFull engine.Fault // the cap of connections is reached
	shedding  engine.Fault // requests are answered overloaded
	draining  atomic.Pointer[time.Time]
}

// noteShortage, noteFull and noteRoom are what listeners tell.
func (s *serverLoad) noteShortage() { s.shortage.Report(s.clock()) }
func (s *serverLoad) noteFull()     { s.connsFull.Begin(s.clock()) }
func (s *serverLoad) noteRoom()     { s.connsFull.Recover(s.clock()) }

// noteShed notes that a request was answered overloaded.
func (s *serverLoad) noteShed() { s.shedding.Report(s.clock()) }

// Drain says that the server is about to be shut down: /readyz sends callers elsewhere, and every answer ends its
// connection, so that the next one is opened where a balancer leads. Shutdown does it too.
func (s *Server) Drain() {
	now := s.load.clock()
	s.load.draining.CompareAndSwap(nil, &now)
}

// Conditions is engine.Health: those of Config.Health, then those of the server itself.
func (s *Server) Conditions() []engine.Condition {
	var all []engine.Condition
	if s.config.Health != nil {
		all = s.config.Health.Conditions()
	}
	return append(all, s.load.serverCondition(), s.load.loadCondition(), s.load.connectionsCondition())
}

// serverCondition is the condition of the front end as a whole.
func (s *serverLoad) serverCondition() engine.Condition {
	since := s.draining.Load()
	if since == nil {
		return engine.HealthyCondition("server")
	}
	return engine.Condition{Name: "server", State: "draining", Down: true, Since: since.Round(0).UTC(), Detail: drainingText}
}

func (s *serverLoad) loadCondition() engine.Condition {
	if since, on := s.shedding.Since(s.clock()); on {
		return engine.Condition{Name: "load", State: "overloaded", Since: since, Detail: overloadedText}
	}
	return engine.HealthyCondition("load")
}

func (s *serverLoad) connectionsCondition() engine.Condition {
	now := s.clock()
	if since, on := s.shortage.Since(now); on {
		if !canOpenFile() { // it lasts, also while no connection comes
			s.shortage.ReportSince(since, now)
		}
		return engine.Condition{Name: "connections", State: "short", Since: since, Detail: shortageText}
	}
	if since, on := s.connsFull.Since(now); on {
		return engine.Condition{Name: "connections", State: "full", Since: since, Detail: fullText}
	}
	return engine.HealthyCondition("connections")
}

// canOpenFile reports that a descriptor is to be had.
func canOpenFile() bool {
	file, err := os.Open(os.DevNull)
	if err != nil {
		return false
	}
	_ = file.Close() // nothing was written
	return true
}

// answerProbe answers a path of health. Whatever stands behind the path is ignored.
func (s *Server) answerProbe(ctx *fasthttp.RequestCtx, answer fasthttp.RequestHandler) {
	s.startResponse(ctx)
	if !ctx.IsGet() && !ctx.IsHead() {
		s.refuseMethod(ctx, "path", methodsHealth)
		return
	}
	answer(ctx)
}

// live answers that the process answers.
func live(ctx *fasthttp.RequestCtx) { ctx.Response.SetBodyString(liveBody) }

// ready answers how the node is.
func (s *Server) ready(ctx *fasthttp.RequestCtx) {
	conditions := s.Conditions()
	readiness := engine.ReadinessOf(conditions)
	if readiness == engine.Unavailable {
		ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, readyRetry)
	}
	body := ctx.Response.SwapBody(nil)[:0]
	ctx.Response.SwapBody(appendReadiness(body, readiness, conditions))
}

// appendReadiness appends every condition, the worst first.
func appendReadiness(dst []byte, readiness engine.Readiness, conditions []engine.Condition) []byte {
	slices.SortStableFunc(conditions, func(a, b engine.Condition) int { return cmp.Compare(severity(&b), severity(&a)) })
	dst = encode.Field(append(dst, '{'), "status", string(readiness))
	dst = append(encode.Name(dst, "conditions"), '[')
	for i := range conditions {
		c := &conditions[i]
		dst = append(encode.Comma(dst), '{')
		dst = encode.Field(dst, "name", c.Name)
		dst = encode.Field(dst, "state", c.State)
		dst = encode.Time(dst, "since", c.Since)
		dst = append(encode.Nullable(dst, "detail", c.Detail), '}')
	}
	return append(dst, "]}"...)
}

func severity(c *engine.Condition) int {
	switch {
	case c.State == engine.ConditionOK:
		return 0
	case !c.Down:
		return 1
	}
	return 2
}
