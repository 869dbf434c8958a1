package httpapi

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// checkAnswer holds an answer of a server with an admitter against what all answers share.
func checkAnswer(t *testing.T, what, method, target string, a answer) {
	t.Helper()
	wrong := func(problem string) {
		t.Errorf("%s: %s %s: %d: %s: %v %s", what, method, target, a.status, problem, a.header, a.body)
	}
	for _, problem := range securityProblems(strings.HasPrefix(target, accountPrefix), a) {
		wrong(problem)
	}
	if (a.status == 405) != (a.header.Get("Allow") != "") && a.status != 204 || a.status >= 400 && a.header.Get("ETag") != "" {
		wrong("Allow or ETag")
	}
	if a.status >= 400 && bytes.Contains(a.body, []byte("secret")) {
		wrong("the answer tells a cause or a key")
	}
	if a.status >= 400 && method != http.MethodHead && a.fault(t).Error.RequestID != a.header.Get("X-Request-Id") {
		wrong("the body has another id than the header")
	}
}

// TestE5_CauseOnlyInLog: the caller gets an id, the log the cause under it, and the server lives. Shedding load
// writes no line.
func TestE5_CauseOnlyInLog(t *testing.T) {
	var log bytes.Buffer
	f := newFixture(t, func(c *Config) { c.Logger = logTo(&log) })
	f.service.fault = fault(engine.CodeOverloaded, "Busy.", 0)
	f.get(t, bestTarget)
	if log.Len() > 0 {
		t.Error(log.String())
	}
	f.service.fault = errors.New("disk on fire")
	failed := f.get(t, bestTarget, "Authorization: Bearer canary")
	f.service.fault, f.service.panics = nil, "index out of order"
	panicked := f.get(t, bestTarget, "Authorization: Bearer canary")
	f.service.panics = nil
	for cause, a := range map[string]answer{"disk on fire": failed, "index out of order": panicked} {
		if a.status != 500 || strings.Contains(string(a.body), cause) {
			t.Errorf("%d %s", a.status, a.body)
		}
		var line string
		for l := range strings.Lines(log.String()) {
			if strings.Contains(l, a.fault(t).Error.RequestID) {
				line = l
			}
		}
		if !strings.Contains(line, cause) {
			t.Errorf("the log has no line with the id and %q: %s", cause, log.String())
		}
	}
	if strings.Contains(log.String(), "canary") || strings.Contains(log.String(), "currency=USD") {
		t.Errorf("the log quotes the request: %s", log.String())
	}
	f.takes(t, bestTarget)
	log.Reset()
	libraryLog{logTo(&log)}.Printf("error when serving %q: %v", "canary", context.Canceled)
	if !strings.Contains(log.String(), "error when serving") || strings.Contains(log.String(), "canary") {
		t.Errorf("the library's words: %s", log.String())
	}
}

func TestE4_Unavailable(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		0: "1", -time.Second: "1", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Minute: "60",
	} {
		f := newFixture(t, nil)
		f.service.fault = fault(engine.CodeDataUnavailable, "Nothing is loaded yet.", wait)
		if a := f.get(t, "/v1/rates"); a.code(t) != "503 data_unavailable" || a.header.Get("Retry-After") != want {
			t.Errorf("%v: %d, Retry-After %q", wait, a.status, a.header.Get("Retry-After"))
		}
		f.takes(t, "/v1/currencies", "/v1/institutions", "/v1/institutions/bhd")
	}
}

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
