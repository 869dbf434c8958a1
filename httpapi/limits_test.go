package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// limitHeaders are the names that L9 is about.
func limitHeaders() []string {
	return []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit-Policy", "RateLimit"}
}

// limits is what the headers say: limit, remaining, reset, RateLimit. "" where there is none.
func (a answer) limits() string {
	get := a.header.Get
	return strings.TrimSpace(get("X-Ratelimit-Limit") + " " + get("X-Ratelimit-Remaining") + " " + get("X-Ratelimit-Reset") + " " + get("Ratelimit"))
}

const bestTarget = "/v1/rates/best?currency=USD&operation=buy&limit=2"

// TestL3_TighterWindow: X-RateLimit is the window with the smaller remaining, on a tie the one that resets later.
func TestL3_TighterWindow(t *testing.T) {
	midnight := strconv.FormatInt(engine.NextMidnight(fakeNow()).Unix(), 10)
	inAMinute := strconv.FormatInt(fakeNow().Unix()+60, 10)
	tests := []struct {
		name      string
		allowance engine.Allowance
		before    int // spent earlier that day
		want      string
	}{
		{"minute", engine.Allowance{Day: 1000, Minute: 60}, 0, "60 59 " + inAMinute + ` "day";r=999;t=50400, "minute";r=59;t=60`},
		{"day", engine.Allowance{Day: 1000, Minute: 60}, 950, "1000 49 " + midnight + ` "day";r=49;t=50400, "minute";r=59;t=60`},
		{"tie", engine.Allowance{Day: 1000, Minute: 60}, 940, "1000 59 " + midnight + ` "day";r=59;t=50400, "minute";r=59;t=60`},
		{"the last of the day", engine.Allowance{Day: 1, Minute: 60}, 0, "1 0 " + midnight + ` "day";r=0;t=50400, "minute";r=59;t=60`},
	}
	for _, test := range tests {
		g := newGated(t, nil)
		g.gate.allowance = test.allowance
		g.gate.spend(account1, test.before, fakeNow().Add(-time.Hour))
		a := g.ask(t, bestTarget, bearer(testKey(1)))
		if a.status != 200 || a.limits() != test.want {
			t.Errorf("%s: %d %s, want %s", test.name, a.status, a.limits(), test.want)
		}
		want := fmt.Sprintf(`"day";q=%d;w=86400, "minute";q=%d;w=60`, test.allowance.Day, test.allowance.Minute)
		if got := a.header.Get("RateLimit-Policy"); got != want {
			t.Errorf("%s: policy %s, want %s", test.name, got, want)
		}
	}
}

// TestL3_Violated: a 429 speaks of the window that refuses, with its code and its wait.
func TestL3_Violated(t *testing.T) {
	g := newGated(t, nil)
	g.gate.spend(account1, 60, fakeNow().Add(-18*time.Second))
	minute := g.ask(t, bestTarget, bearer(testKey(2)))
	want := "60 0 " + strconv.FormatInt(fakeNow().Unix()+42, 10) + ` "day";r=940;t=50400, "minute";r=0;t=42`
	if minute.status != 429 || minute.limits() != want || minute.header.Get("Retry-After") != "42" ||
		minute.fault(t).Error.Code != "rate_limited" {
		t.Errorf("minute: %d %s, Retry-After %s: %s", minute.status, minute.limits(), minute.header.Get("Retry-After"), minute.body)
	}
	g.gate.spend(account1, 940, fakeNow().Add(-time.Hour))
	day := g.ask(t, bestTarget, bearer(testKey(1)))
	if day.status != 429 || !strings.HasPrefix(day.limits(), "1000 0 ") || day.header.Get("Retry-After") != "50400" ||
		day.fault(t).Error.Code != "quota_exceeded" {
		t.Errorf("day: %d %s, Retry-After %s: %s", day.status, day.limits(), day.header.Get("Retry-After"), day.body)
	}
	if anonymous := g.ask(t, bestTarget); anonymous.status != 200 {
		t.Errorf("another identity: %d", anonymous.status)
	}
}

// TestL4_ResetRoundsUp: epoch seconds, never before the instant itself.
func TestL4_ResetRoundsUp(t *testing.T) {
	for _, fraction := range []time.Duration{0, 1, time.Millisecond, time.Second - 1} {
		g := newGated(t, nil)
		g.clock.set(fakeNow().Add(fraction))
		a := g.ask(t, bestTarget)
		want := fakeNow().Unix() + 60
		if fraction > 0 {
			want++
		}
		if got := a.header.Get("X-RateLimit-Reset"); got != strconv.FormatInt(want, 10) {
			t.Errorf("%v after the second: reset %s, want %d", fraction, got, want)
		}
		if got := a.header.Get("RateLimit"); !strings.HasSuffix(got, `"minute";r=59;t=60`) {
			t.Errorf("%v after the second: %s", fraction, got)
		}
	}
}

// TestL5_RetryAfter: whole seconds, at least 1, rounded up; of two violated windows the longer wait.
func TestL5_RetryAfter(t *testing.T) {
	for ago, want := range map[time.Duration]string{
		0: "60", time.Nanosecond: "60", time.Second: "59", 59 * time.Second: "1", time.Minute - 1: "1", 1500 * time.Millisecond: "59",
	} {
		g := newGated(t, nil)
		g.gate.spend(anyone, 60, fakeNow().Add(-ago))
		if a := g.ask(t, bestTarget); a.status != 429 || a.header.Get("Retry-After") != want {
			t.Errorf("%v ago: %d, Retry-After %q, want %s", ago, a.status, a.header.Get("Retry-After"), want)
		}
	}
	g := newGated(t, nil)
	g.clock.set(engine.NextMidnight(fakeNow()).Add(-10 * time.Second))
	g.gate.spend(anyone, 1000, g.clock.now())
	if a := g.ask(t, bestTarget); a.header.Get("Retry-After") != "60" || a.fault(t).Error.Code != "rate_limited" {
		t.Errorf("both, ten seconds before midnight: %s: %s", a.header.Get("Retry-After"), a.body)
	}
}

// TestL6_Charges: what costs one in each window, and what costs nothing.
func TestL6_Charges(t *testing.T) {
	unavailable := &engine.Error{Code: engine.CodeDataUnavailable, Message: "Nothing is loaded yet."}
	tests := []struct {
		method, target string
		lines          []string
		fault          error
		panics         bool
		status, costs  int
	}{
		{"GET", bestTarget, nil, nil, false, 200, 1},
		{"HEAD", bestTarget, nil, nil, false, 200, 1},
		{"GET", bestTarget, []string{"If-None-Match: *"}, nil, false, 304, 1},
		{"GET", "/v1/rates?limit=0", nil, nil, false, 400, 1},
		{"GET", "/v1/institutions/%zz", nil, nil, false, 400, 1},
		{"GET", "/v1/institutions/no-such", nil, nil, false, 404, 1},
		{"GET", "/v1/rate", nil, nil, false, 404, 0},
		{"POST", bestTarget, nil, nil, false, 405, 0},
		{"OPTIONS", bestTarget, nil, nil, false, 204, 0},
		{"OPTIONS", "*", nil, nil, false, 204, 0},
		{"GET", bestTarget, nil, errors.New("a bug"), false, 500, 0},
		{"GET", bestTarget, nil, nil, true, 500, 0},
		{"GET", bestTarget, nil, unavailable, false, 503, 0},
		{"GET", "/v1/rates?limit=0", nil, unavailable, false, 503, 0},
	}
	for _, test := range tests {
		g := newGated(t, nil)
		g.service.fault = test.fault
		if test.panics {
			g.service.panics = "a planted panic"
		}
		a := g.send(t, exchange{method: test.method, target: test.target, lines: append(test.lines, bearer(testKey(1)))})
		if got := g.gate.charged(account1); a.status != test.status || got != test.costs {
			t.Errorf("%s %s: %d costs %d, want %d and %d", test.method, test.target, a.status, got, test.status, test.costs)
		}
		if a.status >= 500 {
			if want := `"day";r=1000;t=50400, "minute";r=60;t=60`; a.header.Get("RateLimit") != want {
				t.Errorf("%s %s: %s after a refund, want %s", test.method, test.target, a.header.Get("RateLimit"), want)
			}
		}
	}
}

// TestL6_RefusalsAreFree: a 429 and a 401 take nothing and give nothing back.
func TestL6_RefusalsAreFree(t *testing.T) {
	g := newGated(t, nil)
	g.gate.spend(anyone, 60, fakeNow())
	if a := g.ask(t, bestTarget); a.status != 429 || g.gate.charged(anyone) != 60 || g.gate.refunds != 0 {
		t.Errorf("%d: %d charged, %d refunds", a.status, g.gate.charged(anyone), g.gate.refunds)
	}
	g.gate.transition = announced(-time.Second)
	g.service.fault = errors.New("a bug")
	if a := g.ask(t, bestTarget); a.status != 401 || g.gate.refunds != 0 {
		t.Errorf("%d: %d refunds", a.status, g.gate.refunds)
	}
}

// TestL6_GateFaults: what the gate itself can't answer is 503 or 500, without a charge, a refund or a limit header.
func TestL6_GateFaults(t *testing.T) {
	for name, fault := range everyFault() {
		if fault.err == nil {
			continue
		}
		g := newGated(t, nil)
		g.gate.fault = fault.err
		if a := g.ask(t, bestTarget); a.status != fault.status || a.limits() != "" || g.gate.refunds != 0 {
			t.Errorf("%s: %d %q, %d refunds", name, a.status, a.limits(), g.gate.refunds)
		}
	}
	g := newGated(t, nil)
	g.gate.panics = "a planted panic"
	if a := g.ask(t, bestTarget); a.status != 500 || a.limits() != "" || g.gate.refunds != 0 {
		t.Errorf("a panic of the gate: %d %q", a.status, a.limits())
	}
}

// TestL7_Order: of everything that is wrong with a request, the first of route, method, authentication, readiness, limits and
// parameters is what it is told.
func TestL7_Order(t *testing.T) {
	g := newGated(t, nil)
	g.gate.transition = announced(-time.Second)
	g.service.fault = &engine.Error{Code: engine.CodeDataUnavailable, Message: "Nothing is loaded yet."}
	g.gate.spend(account1, 1000, fakeNow())
	step := func(status int, e exchange) {
		t.Helper()
		if a := g.send(t, e); a.status != status {
			t.Errorf("%s %s: %d, want %d", e.method, e.target, a.status, status)
		}
	}
	step(404, exchange{method: "BREW", target: "/v1/rate?limit=0"})
	step(405, exchange{method: "BREW", target: "/v1/rates?limit=0"})
	step(401, exchange{method: "GET", target: "/v1/rates?limit=0"})
	withKey := exchange{method: "GET", target: "/v1/rates?limit=0", lines: []string{bearer(testKey(1))}}
	step(503, withKey)
	if g.gate.refunds != 0 {
		t.Error("what was not charged is given back")
	}
	g.service.fault = nil
	step(429, withKey)
	g.gate.admitted = map[string][]time.Time{}
	step(400, withKey)
	withKey.target = "/v1/rates?limit=1"
	step(200, withKey)
	g.service.fault = errors.New("currencies don't need rates")
	g.gate.spend(account1, 1000, fakeNow())
	withKey.target = "/v1/currencies?limit=0"
	step(429, withKey)
}

// TestL9_EveryAnswerWithAnIdentity walks operations, statuses and callers: limit headers are on exactly those answers whose
// caller was identified, one of each, and well-formed.
func TestL9_EveryAnswerWithAnIdentity(t *testing.T) {
	state := regexp.MustCompile(`^"day";r=[0-9]+;t=[0-9]+, "minute";r=[0-9]+;t=[0-9]+$`)
	policy := regexp.MustCompile(`^"day";q=1000;w=86400, "minute";q=60;w=60$`)
	walked := 0
	for _, c := range limitCases() {
		g, a := c.run(t)
		walked++
		g.gate.mu.Lock()
		identified := g.gate.granted > 0
		g.gate.mu.Unlock()
		for _, name := range limitHeaders() {
			if values := a.header.Values(name); len(values) > 1 || identified != (len(values) == 1) {
				t.Errorf("%s: %d has %s %q", c.name, a.status, name, values)
			}
		}
		if identified && (!state.MatchString(a.header.Get("RateLimit")) || !policy.MatchString(a.header.Get("RateLimit-Policy"))) {
			t.Errorf("%s: %q, %q", c.name, a.header.Get("RateLimit"), a.header.Get("RateLimit-Policy"))
		}
		for _, name := range limitHeaders() {
			if !strings.Contains(a.header.Get("Access-Control-Expose-Headers"), name) {
				t.Errorf("%s: %s is not exposed (Q14)", c.name, name)
			}
		}
	}
	if walked == 0 {
		t.Fatal("nothing was walked over")
	}
}

// TestL10_Off: without enforcement nobody is asked and nothing is said, until keys are required; then 401s alone.
func TestL10_Off(t *testing.T) {
	g := newGated(t, nil)
	g.gate.off = true
	g.gate.spend(anyone, 5000, fakeNow())
	for _, lines := range [][]string{nil, {bearer(testKey(1))}, {bearer("x")}} {
		if a := g.ask(t, bestTarget, lines...); a.status != 200 || a.limits() != "" {
			t.Errorf("%q: %d %s", lines, a.status, a.limits())
		}
	}
	if len(g.gate.callers) > 0 {
		t.Errorf("the gate was asked: %v", g.gate.callers)
	}
	g.gate.transition = announced(0)
	if a := g.ask(t, bestTarget); a.status != 401 || a.limits() != "" {
		t.Errorf("keys required, none sent: %d %s", a.status, a.limits())
	}
	g.gate.spend(account1, 5000, fakeNow())
	if a := g.ask(t, bestTarget, bearer(testKey(1))); a.status != 200 || a.limits() != "" {
		t.Errorf("keys required, one sent: %d %s", a.status, a.limits())
	}
}

// TestL10_NoGate: without a gate it is the server that it was.
func TestL10_NoGate(t *testing.T) {
	f := newFixture(t, nil)
	a := f.ask(t, bestTarget, bearer(testKey(1)))
	if a.status != http.StatusOK || a.limits() != "" || a.header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("%d %v", a.status, a.header)
	}
	for _, op := range accountOperations() {
		if a := f.send(t, exchange{method: op.method, target: strings.Replace(op.pattern, "{id}", "k1", 1)}); a.status != 404 {
			t.Errorf("%s %s without accounts: %d", op.method, op.pattern, a.status)
		}
	}
}
