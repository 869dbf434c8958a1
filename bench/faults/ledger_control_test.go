//go:build faults

package faults

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// said is an answer of a node, with the Remaining of the day.
func said(status, remaining int, code, body string) *answer {
	header := http.Header{}
	header.Set("X-RateLimit-Limit", "60")
	header.Set("X-RateLimit-Remaining", fmt.Sprint(min(remaining, 59)))
	header.Set("X-RateLimit-Reset", "1")
	header.Set("RateLimit-Policy", `"day";q=1000;w=86400, "minute";q=60;w=60`)
	header.Set("RateLimit", fmt.Sprintf(`"day";r=%d;t=100, "minute";r=59;t=60`, remaining))
	sent := &atomic.Int32{}
	sent.Store(1)
	return &answer{status: status, code: code, header: header, body: []byte(body), sent: sent}
}

// smallLedger has one account with an active and a revoked key, and one quote that stands at 5.
func smallLedger() (l *ledger, tn *tenant, good, gone *ledgerKey) {
	l = newLedger(terms{day: 1000, minute: 60, lease: 16})
	good, gone = &ledgerKey{id: "good", secret: "good"}, &ledgerKey{id: "gone", secret: "gone", asked: true, revoked: true}
	tn = &tenant{email: "ana@example.com", keys: []*ledgerKey{good, gone}, doubts: map[string]bool{}, floor: 1001}
	l.tenants, l.quotes = []*tenant{tn}, []*quote{{institution: "popular", must: 5, asked: 6}}
	return l, tn, good, gone
}

// ask1 is one request and its answer.
func (l *ledger) ask1(tn *tenant, key *ledgerKey, got *answer) {
	l.told(l.ask(tn, key, l.quotes[0]), got, nil)
}

// TestFaultsW1_ControlAnswers plants wrong answers under load, each of which the ledger must find, and a good one.
func TestFaultsW1_ControlAnswers(t *testing.T) {
	body := func(number int) string { return `{"data":[{"buy":"` + valueOf(number) + `"}]}` }
	cases := map[string]struct {
		want  breach
		plant func(l *ledger, tn *tenant, good, gone *ledgerKey)
	}{
		"nothing": {"", func(l *ledger, tn *tenant, good, gone *ledgerKey) {
			l.ask1(tn, good, said(200, 999, "", body(5)))
			l.ask1(tn, good, said(200, 998, "", body(6)))
			l.ask1(tn, gone, said(401, 0, "revoked_key", ""))
		}},
		"a revoked key": {accepted, func(l *ledger, tn *tenant, _, gone *ledgerKey) { l.ask1(tn, gone, said(200, 999, "", body(5))) }},
		"a suspended account": {accepted, func(l *ledger, tn *tenant, good, _ *ledgerKey) {
			tn.suspended = true
			l.ask1(tn, good, said(200, 999, "", body(5)))
		}},
		"Remaining rises": {risen, func(l *ledger, tn *tenant, good, _ *ledgerKey) {
			l.ask1(tn, good, said(200, 500, "", body(5)))
			l.ask1(tn, good, said(200, 500, "", body(5)))
		}},
		"an older rate":       {risen, func(l *ledger, tn *tenant, good, _ *ledgerKey) { l.ask1(tn, good, said(200, 999, "", body(4))) }},
		"a rate from nowhere": {strange, func(l *ledger, tn *tenant, good, _ *ledgerKey) { l.ask1(tn, good, said(200, 999, "", body(7))) }},
		"an active key":       {lost, func(l *ledger, tn *tenant, good, _ *ledgerKey) { l.ask1(tn, good, said(401, 0, "invalid_key", "")) }},
		"an early end of day": {strange, func(l *ledger, tn *tenant, good, _ *ledgerKey) { l.ask1(tn, good, said(429, 0, "quota_exceeded", "")) }},
		"an internal error":   {strange, func(l *ledger, tn *tenant, good, _ *ledgerKey) { l.ask1(tn, good, said(500, 0, "internal_error", "")) }},
		"one more than a day's": {granted, func(l *ledger, tn *tenant, good, _ *ledgerKey) {
			tn.total = 1000
			l.ask1(tn, good, said(200, 999, "", body(5)))
		}},
		"61 in a minute": {granted, func(l *ledger, tn *tenant, good, _ *ledgerKey) {
			for i := range 61 {
				l.ask1(tn, good, said(200, 999-i, "", body(5)))
			}
			l.minutes()
		}},
	}
	for name, c := range cases {
		l, tn, good, gone := smallLedger()
		c.plant(l, tn, good, gone)
		if found := l.breaches(); c.want == "" && found > 0 || c.want != "" && l.breaches(c.want) == 0 {
			t.Errorf("%s: found %q, want %q", name, l.words, c.want)
		}
	}
	figure(t, "control of the ledger: %d situations, good and wrong, each seen as what it is", len(cases))
}

// restarted is a node after a start, as a test wants it: what it says to each question of a check.
type restarted struct {
	remaining          int
	keys, rate, row    string
	goodCode, goneCode int
}

// ServeHTTP answers as the node does.
func (n *restarted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch code := map[string]int{"Bearer good": n.goodCode, "Bearer gone": n.goneCode}[r.Header.Get("Authorization")]; {
	case code >= 400:
		w.WriteHeader(code)
		_, _ = w.Write([]byte(`{"error":{"code":"some"}}`))
	case r.URL.Path == "/v1/account/usage":
		end := time.Now()
		for engine.DateOf(end) == engine.DateOf(time.Now()) {
			end = end.Add(time.Minute)
		}
		_, _ = fmt.Fprintf(w, `{"data":{"day":{"limit":1000,"remaining":%d,"resetAt":%q}}}`, n.remaining, end.Truncate(time.Minute).Format(time.RFC3339))
	case r.URL.Path == "/v1/account/keys":
		_, _ = fmt.Fprintf(w, `{"data":[%s]}`, n.keys)
	case r.URL.Path == "/v1/rates/history":
		_, _ = fmt.Fprintf(w, `{"data":[%s]}`, n.row)
	case r.URL.Path == "/v1/rates":
		_, _ = fmt.Fprintf(w, `{"data":[%s]}`, n.rate)
	default:
		_, _ = w.Write([]byte(`{}`)) // an account that is not suspended
	}
}

// TestFaultsW1_ControlCheck plants wrong states after a start, each of which the check must find, and a good one.
func TestFaultsW1_ControlCheck(t *testing.T) {
	key := func(id, status string) string {
		return `{"id":"` + id + `","name":"` + id + `","status":"` + status + `"}`
	}
	rate := func(number int) string {
		return `{"institutionId":"popular","sourceId":"manual","buy":"` + valueOf(number) + `"}`
	}
	both := key("good", "active") + "," + key("gone", "revoked")
	cases := map[string]struct {
		want  breach
		plant func(l *ledger, n *restarted, tn *tenant)
	}{
		"nothing":                   {"", func(*ledger, *restarted, *tenant) {}},
		"a lease is forfeited":      {"", func(_ *ledger, n *restarted, _ *tenant) { n.remaining = 1000 - 100 - 3 - 16 }},
		"what was in flight counts": {"", func(_ *ledger, n *restarted, tn *tenant) { tn.maybe, n.remaining = 2, 1000-100-3-16-2 }},
		"a lease of one, refused while it waited": {"", func(l *ledger, n *restarted, tn *tenant) {
			l.terms.lease, tn.raced, n.remaining = 1, 1, 1000-100-3-1
		}},
		"a lease of one, and nobody waited": {forfeited, func(l *ledger, n *restarted, _ *tenant) {
			l.terms.lease, n.remaining = 1, 1000-100-3-1
		}},
		"a lease after a stop in order": {forfeited, func(l *ledger, n *restarted, _ *tenant) {
			l.orderly, n.remaining = true, 1000-100-3-1
		}},
		"a charge is lost":          {granted, func(_ *ledger, n *restarted, _ *tenant) { n.remaining = 1000 - 102 }},
		"more than a lease is gone": {forfeited, func(_ *ledger, n *restarted, _ *tenant) { n.remaining = 1000 - 100 - 3 - 17 }},
		"Remaining has risen":       {risen, func(_ *ledger, n *restarted, tn *tenant) { tn.floor, n.remaining = 890, 897 }},
		"a key is lost":             {lost, func(_ *ledger, n *restarted, _ *tenant) { n.keys = key("gone", "revoked") }},
		"a revocation is lost":      {lost, func(_ *ledger, n *restarted, _ *tenant) { n.keys = key("good", "active") + "," + key("gone", "active") }},
		"a key from nowhere":        {strange, func(_ *ledger, n *restarted, _ *tenant) { n.keys += "," + key("other", "active") }},
		"a third key": {accepted, func(_ *ledger, n *restarted, tn *tenant) {
			tn.doubts["a"], tn.doubts["b"] = true, true
			n.keys += "," + key("a", "active") + "," + key("b", "active")
		}},
		"a revoked key opens":     {accepted, func(_ *ledger, n *restarted, _ *tenant) { n.goneCode = 200 }},
		"an active key does not":  {lost, func(_ *ledger, n *restarted, _ *tenant) { n.goodCode = 401 }},
		"a suspension is lost":    {lost, func(_ *ledger, _ *restarted, tn *tenant) { tn.suspended = true }},
		"a rate is lost":          {lost, func(_ *ledger, n *restarted, _ *tenant) { n.rate = "" }},
		"a rate is older":         {lost, func(_ *ledger, n *restarted, _ *tenant) { n.rate = rate(4) }},
		"a row is older":          {lost, func(_ *ledger, n *restarted, _ *tenant) { n.row = rate(4) }},
		"rate and row do not fit": {lost, func(_ *ledger, n *restarted, _ *tenant) { n.rate = rate(6) }},
	}
	for name, c := range cases {
		l, tn, _, gone := smallLedger()
		tn.base, tn.admitted, tn.touched, gone.touched, tn.keys[0].touched = 100, 3, true, true, true
		n := &restarted{remaining: 897, keys: both, rate: rate(5), row: rate(5), goodCode: 200, goneCode: 401}
		c.plant(l, n, tn)
		server := httptest.NewServer(n)
		asks := newCaller("")
		l.checkUsage(asks, server.URL, tn, false)
		l.checkKeys(asks, server.URL, tn)
		l.checkRates(asks, server.URL, "", "/v1/rates?x", "published")
		l.checkRates(asks, server.URL, "", "/v1/rates/history?x", "in the history")
		l.settleRates()
		l.tryKeys(asks, server.URL, scope{whole: true})
		admin := callerTo(server.Listener.Addr().Network(), server.Listener.Addr().String())
		l.checkSuspension(asks, admin, server.URL, tn)
		admin.close()
		asks.close()
		server.Close()
		if found := l.breaches(); c.want == "" && found > 0 || c.want != "" && l.breaches(c.want) == 0 {
			t.Errorf("%s: found %q, want %q", name, l.words, c.want)
		}
	}
	figure(t, "control of the ledger: %d situations, good and wrong, each seen as what it is", len(cases))
}
