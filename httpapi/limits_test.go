package httpapi

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// TestL3_TighterWindow: X-RateLimit is the smaller remaining, on a tie the later reset, on a 429 the window that
// refuses.
func TestL3_TighterWindow(t *testing.T) {
	midnight := strconv.FormatInt(engine.NextMidnight(fakeNow()).Unix(), 10)
	in := func(seconds int64) string { return strconv.FormatInt(fakeNow().Unix()+seconds, 10) }
	const hour = time.Hour
	for name, c := range map[string]struct {
		day, before int // before: spent that long ago
		ago         time.Duration
		want, retry string
	}{
		"minute":              {1000, 0, hour, "200 60 59 " + in(60), ""},
		"day":                 {1000, 950, hour, "200 1000 49 " + midnight, ""},
		"tie":                 {1000, 940, hour, "200 1000 59 " + midnight, ""},
		"the last of the day": {1, 0, hour, "200 1 0 " + midnight, ""},
		"minute refuses":      {1000, 60, 18 * time.Second, "429 rate_limited 60 0 " + in(42), "42"},
		"day refuses":         {1000, 1000, hour, "429 quota_exceeded 1000 0 " + midnight, "50400"},
	} {
		g := newFixtureWithLimits(t, nil)
		g.admitter.allowance.Day = c.day
		g.admitter.spend(account1, c.before, fakeNow().Add(-c.ago))
		a := g.get(t, bestTarget, bearer(testKey(2)))
		if got := a.code(t) + " " + a.limits(); got != c.want || a.header.Get("Retry-After") != c.retry {
			t.Errorf("%s: %s, Retry-After %s; want %s, %s", name, got, a.header.Get("Retry-After"), c.want, c.retry)
		}
		if anonymous := g.get(t, bestTarget); anonymous.status != 200 {
			t.Errorf("%s, another identity: %d", name, anonymous.status)
		}
	}
}

// TestL4_ResetRoundsUp: epoch seconds, never before the instant itself.
func TestL4_ResetRoundsUp(t *testing.T) {
	for fraction, more := range map[time.Duration]int64{0: 0, 1: 1, time.Millisecond: 1, time.Second - 1: 1} {
		g := newFixtureWithLimits(t, nil)
		g.clock.set(fakeNow().Add(fraction))
		a := g.get(t, bestTarget)
		if got := a.header.Get("X-RateLimit-Reset"); got != strconv.FormatInt(fakeNow().Unix()+60+more, 10) {
			t.Errorf("%v after the second: reset %s", fraction, got)
		}
	}
}

// TestL5_RetryAfter: whole seconds, at least 1, rounded up; of two violated windows the longer wait.
func TestL5_RetryAfter(t *testing.T) {
	for ago, want := range map[time.Duration]string{
		0: "60", time.Nanosecond: "60", time.Second: "59", 59 * time.Second: "1", time.Minute - 1: "1", 1500 * time.Millisecond: "59",
	} {
		g := newFixtureWithLimits(t, nil)
		spent(peerDefault, 60, ago)(g)
		if a := g.get(t, bestTarget); a.status != 429 || a.header.Get("Retry-After") != want {
			t.Errorf("%v ago: %d, Retry-After %q, want %s", ago, a.status, a.header.Get("Retry-After"), want)
		}
	}
	g := newFixtureWithLimits(t, nil)
	g.clock.set(engine.NextMidnight(fakeNow()).Add(-10 * time.Second))
	g.admitter.spend(peerDefault, 1000, g.clock.now())
	if a := g.get(t, bestTarget); a.header.Get("Retry-After") != "60" || a.code(t) != "429 rate_limited" {
		t.Errorf("both, ten seconds before midnight: %s: %s", a.header.Get("Retry-After"), a.body)
	}
}

// TestL6_Charges: what is refunded, and what costs nothing and gives nothing back. TestContract_Node has the rest.
func TestL6_Charges(t *testing.T) {
	unavailable := fails(fault(engine.CodeDataUnavailable, "Nothing is loaded yet.", 0))
	for _, c := range []struct {
		method, target string
		arrange        func(*fixture)
		status, costs  int
	}{
		{"GET", bestTarget, nil, 200, 1},
		{"GET", "/v1/institutions/%zz", nil, 400, 1},
		{"OPTIONS", "*", nil, 204, 0},
		{"GET", bestTarget, fails(errors.New("a bug")), 500, 0},
		{"GET", bestTarget, panics("a planted panic"), 500, 0},
		{"GET", bestTarget, unavailable, 503, 0},
		{"GET", "/v1/rates?limit=0", unavailable, 503, 0},
		{"GET", bestTarget, spent(account1, 60, 0), 429, 60},
	} {
		g := newFixtureWithLimits(t, nil)
		if c.arrange != nil {
			c.arrange(g)
		}
		a := g.do(t, c.method, c.target, bearer(testKey(1)))
		if got := g.admitter.charged(account1); a.status != c.status || got != c.costs {
			t.Errorf("%s %s: %d costs %d, want %d and %d", c.method, c.target, a.status, got, c.status, c.costs)
		}
		if a.status >= 500 && a.header.Get("X-RateLimit-Remaining") != "60" {
			t.Errorf("%s %s: %s after a refund", c.method, c.target, a.limits())
		}
		if (g.admitter.refunds > 0) != (a.status >= 500) {
			t.Errorf("%s %s: %d refunds", c.method, c.target, g.admitter.refunds)
		}
	}
}

// TestL6_AdmitterFaults: what the admitter itself can't answer is 503 or 500, without a charge, a refund or a header
// about limits.
func TestL6_AdmitterFaults(t *testing.T) {
	for name, f := range everyFault() {
		g := newFixtureWithLimits(t, nil)
		if g.admitter.fault = f.err; f.err == nil {
			g.admitter.panics, f.status = "a planted panic", 500
		}
		if a := g.get(t, bestTarget); a.status != f.status || a.limits() != "" || g.admitter.refunds != 0 {
			t.Errorf("%s: %d %q, %d refunds", name, a.status, a.limits(), g.admitter.refunds)
		}
	}
}

// TestL7_Order: route, method, authentication, readiness, limits and parameters are checked in this order.
func TestL7_Order(t *testing.T) {
	g := newFixtureWithLimits(t, nil)
	g.admitter.transition = keysRequiredIn(-time.Second)
	g.service.fault = fault(engine.CodeDataUnavailable, "Nothing is loaded yet.", 0)
	g.admitter.spend(account1, 1000, fakeNow())
	step := func(status int, method, target string, lines ...string) {
		t.Helper()
		if a := g.do(t, method, target, lines...); a.status != status {
			t.Errorf("%s %s: %d, want %d", method, target, a.status, status)
		}
	}
	key := bearer(testKey(1))
	step(404, "BREW", "/v1/rate?limit=0")
	step(405, "BREW", "/v1/rates?limit=0")
	step(401, "GET", "/v1/rates?limit=0")
	for _, target := range []string{"/v1/rates", "/v1/rates/best", "/v1/rates/history", "/v1/convert"} {
		step(503, "GET", target+"?limit=0", key)
	}
	if g.admitter.refunds != 0 {
		t.Error("what was not charged is given back")
	}
	for _, target := range []string{"/v1/currencies", "/v1/institutions", "/v1/institutions/bhd"} { // they need no rates
		step(429, "GET", target+"?limit=0", key)
	}
	g.service.fault = nil
	step(429, "GET", "/v1/rates?limit=0", key)
	g.admitter.quota = newQuota()
	step(400, "GET", "/v1/rates?limit=0", key)
	step(200, "GET", "/v1/rates?limit=1", key)
}

// TestL10_Off: the admitter is not asked and no header sent; once keys are required, only 401s. Without an admitter
// there are neither limits nor account operations.
func TestL10_Off(t *testing.T) {
	g := newFixtureWithLimits(t, nil)
	g.admitter.off = true
	g.admitter.spend(peerDefault, 5000, fakeNow())
	g.admitter.spend(account1, 5000, fakeNow())
	check := func(status int, line string) {
		t.Helper()
		if a := g.get(t, bestTarget, line); a.status != status || a.limits() != "" {
			t.Errorf("%q: %d %s", line, a.status, a.limits())
		}
	}
	for _, line := range []string{"X-None: 1", bearer(testKey(1)), bearer("x")} {
		check(200, line)
	}
	if len(g.admitter.callers) > 0 {
		t.Errorf("the admitter was asked: %v", g.admitter.callers)
	}
	g.admitter.transition = keysRequiredIn(0)
	check(401, "X-None: 1")
	check(200, bearer(testKey(1)))
	f := newFixture(t, nil)
	if a := f.get(t, bestTarget, bearer(testKey(1))); a.status != 200 || a.limits() != "" || a.header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("without an admitter: %d %v", a.status, a.header)
	}
	for _, op := range accountOperations() {
		if a := f.do(t, op.method, strings.Replace(op.pattern, "{id}", "k1", 1)); a.status != 404 {
			t.Errorf("%s %s without accounts: %d", op.method, op.pattern, a.status)
		}
	}
}
