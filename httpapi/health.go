package httpapi

import (
	"cmp"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/encode"
)

// Paths of the health endpoints. They need no API key, have no quota and do not call Config.Service.
const (
	livezPath   = "/livez"
	healthzPath = "/healthz"
	readyzPath  = "/readyz"
)

const (
	liveBody       = `{"status":"live"}`
	methodsHealth  = "GET, HEAD"
	readyRetry     = "2" // Retry-After of a 503, in seconds
	overloadedText = "Requests are refused because more come in than can be answered; spread them, or add a node."
	fullText       = "As many connections are open as may be; a new one takes the place of the longest idle, or waits while none is. Raise the cap, or look for clients that keep many."
	shortageText   = "No descriptor or memory is left to accept a connection with; raise the limit of open files, or lower the connection cap."
	drainingText   = "The node was asked to stop and answers its last requests; send new ones elsewhere."
)

// serverLoad is the state from which the server's own health conditions are made. It is safe for concurrent use.
type serverLoad struct {
	clock     func() time.Time
	conns     *conn.Counts
	connsMax  int                       // Limits.ConnsMax
	shortage  engine.Fault              // descriptors or memory for connections ran out
	connsFull engine.Fault              // connsMax is reached
	shedding  engine.Fault              // requests are rejected with the code overloaded
	draining  atomic.Pointer[time.Time] // time of Drain, or nil
}

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
		if !canOpenFile() {
			s.shortage.ReportSince(since, now) // otherwise the fault would end if no client tried to connect
		}
		return engine.Condition{Name: "connections", State: "short", Since: since, Detail: shortageText}
	}
	if s.conns.Open.Load() >= int64(s.connsMax) {
		s.connsFull.Report(now)
	}
	if since, on := s.connsFull.Since(now); on {
		return engine.Condition{Name: "connections", State: "full", Since: since, Detail: fullText}
	}
	return engine.HealthyCondition("connections")
}

// canOpenFile reports whether a file descriptor is available.
func canOpenFile() bool {
	file, err := os.Open(os.DevNull)
	if err != nil {
		return false
	}
	_ = file.Close() // nothing was written
	return true
}

func live(ctx *fasthttp.RequestCtx) { ctx.Response.SetBodyString(liveBody) }

// appendReadiness appends the body of /readyz, with the worst conditions first. It reorders the slice conditions.
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
