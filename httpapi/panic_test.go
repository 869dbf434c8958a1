package httpapi

import (
	"bytes"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine/account"
)

// plantHeader says where in a handler a panic is planted: before it, or behind it, when the answer is made and
// perhaps sent aside.
const plantHeader = "X-Plant"

// plantPanics puts handlers that panic when asked to in the place of all that are routed to. reached has their
// patterns.
func plantPanics(s *Server) (patterns []string, reached map[string]bool) {
	planted := map[string]endpoint{}
	reached = map[string]bool{}
	for pattern, real := range s.paths {
		patterns = append(patterns, pattern)
		planted[pattern] = endpoint{real.routeID, func(ctx *fasthttp.RequestCtx, a *requestState) {
			where := string(ctx.Request.Header.Peek(plantHeader))
			if where == "before" {
				reached[pattern] = true
				panic("planted before " + pattern)
			}
			real.answer(ctx, a)
			if where == "behind" {
				panic("planted behind " + pattern)
			}
		}}
	}
	s.paths = planted
	return patterns, reached
}

// panicExchanges reach each pattern of a path.
func panicExchanges() []exchange {
	exchanges := []exchange{{method: "GET", target: livezPath}, {method: "GET", target: healthzPath}, {method: "GET", target: readyzPath}}
	for _, target := range goldenTargets() {
		exchanges = append(exchanges, exchange{method: "GET", target: target}, exchange{method: "HEAD", target: target})
	}
	for _, e := range accountGood() {
		exchanges = append(exchanges, e)
	}
	return exchanges
}

// TestO9_PanicInAnyHandler: a panic in any handler of a path, before it has begun or when its answer is made, is a 500
// with the id of its line in the log; its connection goes on, the next request is answered, and nothing is charged for
// it (decision L6). TestExpress_SameAnswers has the panics of the express path.
func TestO9_PanicInAnyHandler(t *testing.T) {
	var log bytes.Buffer
	f := newFixtureWithLimits(t, func(c *Config) {
		c.Admitter.(*fakeAdmitter).allowance = account.Quota{Day: 1 << 20, Minute: 1 << 20}
		c.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	})
	patterns, reached := plantPanics(f.server)
	fired, answered := 0, 0 // answered: and charged, before the panic behind it
	for _, where := range []string{"before", "behind"} {
		for _, e := range panicExchanges() {
			e.lines = append(slices.Clone(e.lines), plantHeader+": "+where)
			a := f.send(t, e)
			fired++
			if where == "behind" && strings.HasPrefix(e.target, "/v1/") && !strings.HasPrefix(e.target, accountPrefix) {
				answered++
			}
			for _, problem := range panicProblems(e.method, e.body != "", a, log.String()) {
				t.Errorf("%s %s, %s: %s", e.method, e.target, where, problem)
			}
			f.takes(t, "/v1/currencies")
		}
	}
	if got := f.admitter.charged(peerDefault); got != fired+answered {
		t.Errorf("%d charged for %d good answers", got, fired+answered)
	}
	for _, pattern := range patterns {
		if !reached[pattern] {
			t.Errorf("nothing panicked in %s", pattern)
		}
	}
	if lines := strings.Count(log.String(), "a request ended in a panic"); lines != fired || len(patterns) < 12 {
		t.Errorf("%d panics, %d lines, %d patterns", fired, lines, len(patterns))
	}
}

// panicProblems holds the answer to a request that panicked against what it must be.
func panicProblems(method string, closes bool, a answer, log string) (problems []string) {
	id := a.header.Get(headerRequestID)
	if a.status != http.StatusInternalServerError || len(id) != len(RequestID{}) || a.closes != closes {
		problems = append(problems, "not a 500 with an id on a connection that goes on, unless it had a body")
	}
	if !strings.Contains(log, `"a request ended in a panic","requestId":"`+id+`"`) {
		problems = append(problems, "no line in the log has the id "+id)
	}
	if method != http.MethodHead && !bytes.Contains(a.body, []byte(`{"error":{"code":"internal_error","message":"`+internalMessage+`","requestId":"`+id+`"}}`)) {
		problems = append(problems, "the body is "+string(a.body))
	}
	if bytes.Contains(a.body, []byte("planted")) {
		problems = append(problems, "the body tells the cause")
	}
	return problems
}
