package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/engine/account/secrettest"
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
	for status, faults := range map[int][]error{
		503: {
			fault(engine.CodeDataUnavailable, "m", time.Minute), fault(engine.CodeOverloaded, "m", 0), fault(engine.CodeReadOnly, "m", time.Millisecond),
		},
		500: {
			nil, // a panic
			&engine.Error{Code: engine.CodeInternalError, Message: "secret", Cause: errors.New("secret")}, errors.New("secret"), fault("odd", "secret", 0),
		},
	} {
		for _, err := range faults {
			g := newFixtureWithLimits(t, nil)
			if g.admitter.fault = err; err == nil {
				g.admitter.panics = "a planted panic"
			}
			if a := g.get(t, bestTarget); a.status != status || a.limits() != "" || g.admitter.refunds != 0 {
				t.Errorf("%v: %d %q, %d refunds", err, a.status, a.limits(), g.admitter.refunds)
			}
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
	for policy, want := range map[account.KeyPolicy]string{{}: "public", keysRequiredIn(time.Hour): "private"} {
		g.admitter.transition = policy
		if got := g.get(t, bestTarget).header.Get("Cache-Control"); !strings.HasPrefix(got, want) {
			t.Errorf("with the key policy %+v: %q, want %s: decision Q13", policy, got, want)
		}
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

func authorizations() map[string]bool {
	key := testKey(1)
	return map[string]bool{
		"X-None: 1":                                                  false,
		"Authorization: Bearer " + key:                               true,
		"authorization: bearer " + key:                               true,
		"AUTHORIZATION: BEARER " + key:                               true,
		"Authorization:  \t Bearer " + key + " \t":                   true,
		"Authorization:":                                             false,
		"Authorization: Bearer":                                      false,
		"Authorization: Bearer  " + key:                              true, // RFC 9110 11.4: one or more blanks
		"Authorization: Bearer   \t" + key:                           false,
		"Authorization: Bearer\t" + key:                              false,
		"Authorization: " + key:                                      false,
		"Authorization: Basic " + key:                                false,
		"Authorization: Bearers " + key:                              false,
		`Authorization: Bearer "` + key + `"`:                        false,
		"Authorization: Bearer token=" + key:                         false,
		"Authorization: Bearer " + key + ", Bearer " + testKey(2):    false,
		"Authorization: Bearer " + key + "=":                         false,
		"Authorization: Bearer " + strings.Replace(key, "1", "2", 1): false,
		"Authorization: Bearer " + key[:len(key)-1]:                  false,
		"Authorization: Bearer " + key + "0":                         false,
		"Authorization: Bearer x" + key[1:]:                          false,
		"Authorization: Bearer " + testSession(1):                    false,
		"Authorization: Bearer \xff" + key[1:]:                       false,
	}
}

// TestK4_ReadAuthorization: a malformed key is refused without a look-up. The response says that it was ignored.
// TestS6_SecretElsewhere checks that no other header counts.
func TestK4_ReadAuthorization(t *testing.T) {
	g := newFixtureWithLimits(t, nil)
	g.admitter.allowance.Minute = 1000
	for line, hasKey := range authorizations() {
		a := g.get(t, bestTarget, line)
		if a.status != 200 {
			t.Errorf("%s: %d before keys are required (K6)", line, a.status)
			continue
		}
		c := g.admitter.lastCaller(t)
		sent := strings.HasPrefix(strings.ToLower(line), "authorization:")
		if c.HasKey != hasKey || c.HasMalformedKey != (sent && !hasKey) || hasKey && c.Key != digestOf(testKey(1)) || c.Address != netip.MustParseAddr(peerDefault) {
			t.Errorf("%s: %+v", line, c)
		}
		if status := a.header.Get("X-Key-Status"); (status == "ignored") != (sent && !hasKey) {
			t.Errorf("%s: X-Key-Status %q", line, status)
		}
	}
}

// TestE3_Challenge: a 401 names the realm, with an error exactly when something was sent. Where one is due,
// TestS10_Contract says.
func TestE3_Challenge(t *testing.T) {
	g := newFixtureWithLimits(t, nil)
	g.admitter.transition = keysRequiredIn(0)
	const want, wrong = `Bearer realm="tasard"`, `, error="invalid_token"`
	for line, more := range map[string]string{
		"X-None: 1": "", "Authorization: Bearer x": wrong, "Authorization:": wrong, bearer(testKey(3)): wrong, bearer(testKey(8)): wrong,
	} {
		if got := g.get(t, bestTarget, line).header.Get("WWW-Authenticate"); got != want+more {
			t.Errorf("%q: %s, want %s", line, got, want+more)
		}
	}
	wrongCode := exchange{method: "POST", target: sessionsPath, lines: []string{jsonLine, bearer(testKey(1))}, body: `{"email":"a@example.do","code":"00712346"}`}
	if got := g.send(t, wrongCode).header.Get("WWW-Authenticate"); got != want {
		t.Errorf("a wrong code beside a key that was not asked for: %s", got)
	}
}

// FuzzAuthorization holds the reading of the header against a regular expression.
func FuzzAuthorization(f *testing.F) {
	for line := range authorizations() {
		f.Add(strings.TrimSpace(line[strings.IndexByte(line, ':')+1:]))
	}
	f.Add("Bearer a==")
	f.Add("Bearer ==")
	f.Add("bEARER -._~+/09azAZ")
	grammar := regexp.MustCompile(`(?s)^(?i:bearer) +([^ ].*)?$`)
	f.Fuzz(func(t *testing.T, value string) {
		if strings.ContainsAny(value, "\r\n\x00") {
			t.Skip("no header value holds these")
		}
		token, ok := bearerText([]byte(value))
		found := grammar.FindStringSubmatch(value)
		if ok != (found != nil) || ok && string(token) != found[1] {
			t.Fatalf("%q: %q %v, want %q", value, token, ok, found)
		}
		if _, isKey := account.ParseKey(token); ok && isKey && len(token) != account.KeyLength {
			t.Fatalf("%q is a key", value)
		}
	})
}

// addressRow is a request as it comes in, and whose it is. An empty want means the peer.
type addressRow struct {
	name, peer string
	lines      []string
	want       string
}

// testProxies are trusted in the tests: a network, a host, an IPv6 network.
func testProxies() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("203.0.113.9/32"), netip.MustParsePrefix("2001:db8:ff::/48")}
}

// addressTable is what FuzzForwardedFor of package fields can't see: which peers are proxies, which headers count.
func addressTable() []addressRow {
	const proxy, outsider = "10.1.2.3", "198.51.100.4"
	xff := func(value string) []string { return []string{"X-Forwarded-For: " + value} }
	long := strings.Repeat("198.51.100.1, ", 10000)
	return []addressRow{
		{"no proxy, no header", outsider, nil, ""},
		{"no proxy", outsider, xff("192.0.2.1"), ""},
		{"no proxy, claims to be one", outsider, xff("192.0.2.1, 10.1.2.3"), ""},
		{"no proxy, every header", outsider, []string{"X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.2", "X-Real-IP: 192.0.2.3"}, ""},
		{"next to the network", "11.0.0.1", xff("192.0.2.1"), ""},
		{"next to the host", "203.0.113.10", xff("192.0.2.1"), ""},
		{"proxy, no header", proxy, nil, ""},
		{"proxy", proxy, xff("192.0.2.1"), "192.0.2.1"},
		{"the host", "203.0.113.9", xff("192.0.2.1"), "192.0.2.1"},
		{"IPv6 proxy", "2001:db8:ff::1", xff("192.0.2.1"), "192.0.2.1"},
		{"IPv6 next to it", "2001:db8:fe::1", xff("192.0.2.1"), ""},
		{"mapped proxy", "::ffff:10.1.2.3", xff("192.0.2.1"), "192.0.2.1"},
		{"two lines", proxy, []string{"X-Forwarded-For: 192.0.2.99", "X-Forwarded-For: 192.0.2.1"}, "192.0.2.1"},
		{"three lines, proxies last", proxy, []string{"X-Forwarded-For: 192.0.2.99", "x-forwarded-for: 192.0.2.1", "X-FORWARDED-FOR: 10.0.0.5,10.0.0.6"}, "192.0.2.1"},
		{"10,000 entries", proxy, xff(long + "192.0.2.1, 10.0.0.1"), "192.0.2.1"},
		{"10,000 proxies", proxy, xff("192.0.2.1" + strings.Repeat(", 10.0.0.1", 10000)), "192.0.2.1"},
		{"Forwarded", proxy, []string{"Forwarded: for=192.0.2.2"}, ""},
		{"X-Real-IP", proxy, []string{"X-Real-IP: 192.0.2.3"}, ""},
		{"others beside it", proxy, []string{"Forwarded: for=192.0.2.2", "X-Forwarded-For: 192.0.2.1", "X-Real-IP: 192.0.2.3", "X-Client-IP: 192.0.2.4"}, "192.0.2.1"},
	}
}

// TestS8_ClientAddress: the admitter and the accounts count the address that this finds (decision L8); without
// configured proxies no header counts.
func TestS8_ClientAddress(t *testing.T) {
	trusting, trustless := newFixtureWithLimits(t, func(c *Config) { c.TrustedProxies = testProxies() }), newFixtureWithLimits(t, nil)
	for _, row := range addressTable() {
		peer := netip.MustParseAddr(row.peer).Unmap()
		want := peer
		if row.want != "" {
			want = netip.MustParseAddr(row.want)
		}
		for g, want := range map[*fixture]netip.Addr{trusting: want, trustless: peer} {
			g.send(t, exchange{method: "GET", target: "/v1/currencies", lines: row.lines, peer: row.peer})
			if got := g.admitter.lastCaller(t).Address; got != want {
				t.Errorf("%s: %s, want %s", row.name, got, want)
			}
			for _, name := range []string{"codes-post", "sessions-post"} {
				e := accountGood()[name]
				e.peer, e.lines = row.peer, append(row.lines, jsonLine)
				if g.send(t, e); g.accounts.from != want {
					t.Errorf("%s, %s: %s, want %s", row.name, name, g.accounts.from, want)
				}
			}
		}
	}
}

func TestK1_Bodies(t *testing.T) {
	long := `{"name":"` + strings.Repeat("x", 4<<10-len(`{"name":""}`))
	tests := []struct {
		body   string
		status int
		want   string // the problems, or the code
	}{
		{`{"name":"a"}`, 201, ""},
		{" {\n\t\"name\" : \"a\" }\r\n", 201, ""},
		{`{"n\u0061me":"ñ€😀"}`, 201, ""},
		{`{"name":"` + strings.Repeat("ñ", 80) + `"}`, 201, ""},
		{`{"name":"` + strings.Repeat("ñ", 81) + `"}`, 400, "[name]"},
		{`{"name":"a\nb"}`, 400, "[name]"},
		{`{"name":"\u2028"}`, 400, "[name]"},
		{`{"name":null}`, 400, "[name]"},
		{`{"name":1}`, 400, "[name]"},
		{`{"name":["a"]}`, 400, "[name]"},
		{`{"name":"a","name":"a"}`, 400, "[name 1]"},
		{`{"name":"a","n\u0061me":"b","name":1}`, 400, "[name 1] [name 2]"},
		{`{"Name":"a"}`, 400, "[Name]"},
		{`{"x":1,"x":2,"y":{"z":[{}]}}`, 400, "[x] [y]"},
		{`{"key":"a","TOKEN":"b"}`, 400, "[key] [TOKEN]"},
		{`{"":1}`, 400, "[]"},
		{`{"name":"a"}{}`, 400, "malformed_request"},
		{`[]`, 400, "malformed_request"},
		{`{"name":"a"} x`, 400, "malformed_request"},
		{`{"name":"a",}`, 400, "malformed_request"},
		{`{'name':'a'}`, 400, "malformed_request"},
		{`{"name":"a"`, 400, "malformed_request"},
		{`"name"`, 400, "malformed_request"},
		{`null`, 400, "malformed_request"},
		{` `, 400, "malformed_request"},
		{"\xef\xbb\xbf{}", 400, "malformed_request"},
		{`name=a`, 400, "malformed_request"},
		{"", 400, "malformed_request"},
		{"{\"name\":\"\xff\"}", 400, "malformed_request"},
		{strings.Repeat("[", 4000), 400, "malformed_request"},
		{long + `"}`, 400, "[name]"},
		{long + `x"}`, 413, "payload_too_large"},
	}
	for _, test := range tests {
		g := newFixtureWithLimits(t, func(c *Config) { c.Limits.BodyBytesMax = 1 << 20 })
		a := g.send(t, exchange{method: "POST", target: keysPath, lines: []string{jsonLine, bearer(testSession(100))}, body: test.body})
		got := ""
		if a.status >= 400 {
			got = a.paths(t)
		}
		if a.status != test.status || got != test.want {
			t.Errorf("%.60q: %d %s, want %d %s: %s", test.body, a.status, got, test.status, test.want, a.body)
		}
		if a.closes != (test.body != "" || test.want == "malformed_request") {
			t.Errorf("%.60q: closes %v (E1)", test.body, a.closes)
		}
	}
}

// TestK1_AllProblemsAtOnce, of the URL, the path and the body (decision Q3).
func TestK1_AllProblemsAtOnce(t *testing.T) {
	g := newFixtureWithLimits(t, nil)
	a := g.send(t, exchange{method: "POST", target: sessionsPath + "?x=1&key=2", lines: []string{jsonLine}, body: `{"email":"x","code":"1234567","y":0}`})
	if got := a.paths(t); got != "[x] [key] [email] [code] [y]" {
		t.Errorf("%s: %s", got, a.body)
	}
	a = g.send(t, exchange{method: "POST", target: sessionsPath, lines: []string{jsonLine}, body: `{"email":"ana@example.do","code":99999999}`})
	if got := a.paths(t); got != "[code]" || !strings.Contains(string(a.body), "as a text") {
		t.Errorf("a code that is a JSON number: %s: %s", got, a.body)
	}
	a = g.send(t, exchange{method: "POST", target: sessionsPath, lines: []string{jsonLine}, body: `{}`})
	if got := a.paths(t); got != "[email] [code]" || !strings.Contains(string(a.body), "is required") {
		t.Errorf("%s: %s", got, a.body)
	}
	a = g.send(t, exchange{method: "DELETE", target: keysPath + "/%zz?limit=1", lines: []string{bearer(testSession(100))}})
	if got := a.paths(t); got != "[limit] [id]" {
		t.Errorf("%s: %s", got, a.body)
	}
	if g.accounts.asked != 1 { // whether the session is good
		t.Errorf("bad requests asked %d questions", g.accounts.asked)
	}
}

// TestK1_MediaType: JSON in UTF-8, with whatever parameters.
func TestK1_MediaType(t *testing.T) {
	for want, types := range map[string][]string{
		"202": {"application/json", "Application/JSON; charset=utf-8", `application/json;charset="UTF-8"`, "application/json; profile=x"},
		"415 unsupported_media_type": {
			"application/json; charset=latin1", "application/json; charset", "application/json, text/plain", "application/jsonp", "text/json",
			"application/merge-patch+json", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "",
			"application/json\r\nContent-Encoding: gzip",
		},
	} {
		for _, kind := range types {
			g := newFixtureWithLimits(t, nil)
			a := g.send(t, exchange{method: "POST", target: codesPath, lines: []string{"Content-Type: " + kind}, body: anaBody})
			if a.code(t) != want || (g.accounts.asked > 0) != (a.status == 202) {
				t.Errorf("%q: %d, want %s: %s", kind, a.status, want, a.body)
			}
		}
	}
}

// TestL7_AccountOrder: route, method, origin, credential, content.
func TestL7_AccountOrder(t *testing.T) {
	g := newFixtureWithLimits(t, nil)
	everythingWrong := exchange{method: "PUT", target: keysPath + "x?limit=1", lines: []string{"Origin: https://evil.example", bearer(testSession(7)), "Content-Type: text/plain"}, body: "x"}
	for _, step := range []struct {
		change func()
		status int
	}{
		{func() {}, 404},
		{func() { everythingWrong.target = keysPath + "?limit=1" }, 405},
		{func() { everythingWrong.method = "POST" }, 400},
		{func() { everythingWrong.lines[0] = "X-None: 1" }, 401},
		{func() { everythingWrong.lines[1] = bearer(testSession(100)) }, 415},
		{func() { everythingWrong.lines[2] = jsonLine }, 400},
		{func() { everythingWrong.body = "{}" }, 400},
		{func() { everythingWrong.target = keysPath }, 201},
	} {
		step.change()
		if a := g.send(t, everythingWrong); a.status != step.status {
			t.Errorf("%+v: %d, want %d", everythingWrong, a.status, step.status)
		}
	}
}

// FuzzAccountBody holds the strict reading of bodies against the standard library's loose one.
func FuzzAccountBody(f *testing.F) {
	for _, seed := range []string{
		anaBody, anaSession, `{}`, `{"email":"a@b.do","email":"c@d.do"}`, `{"EMAIL":"a@b.do"}`, `{"email":null,"code":["1"]}`, `[{}]`, "{} {}",
		`{"name":"a"} x`, `{"name":"a",}`, `{'name':'a'}`, `{"name":"a"`, `"name"`, `null`, ` `, `name=a`,
		`{"code":"12345678","x":{"y":[1,2,{"z":null}]}}`, "\xef\xbb\xbf{}", `{"email":"a@b.do","code":"0000000０"}`, `{"name":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	fields := []bodyField{emailField(), codeField(), nameField()}
	f.Fuzz(func(t *testing.T, body []byte) {
		var r accountRequest
		problems, ok := readBody(body, fields, &r)
		var loose map[string]any
		if err := json.Unmarshal(body, &loose); ok && (err != nil || loose == nil) || !ok && len(problems) > 0 {
			t.Fatalf("%q is taken: %v", body, err)
		}
		if encoded := appendError(nil, "c", "m", "i", problems); !json.Valid(encoded) {
			t.Fatalf("%q: the answer is no JSON: %s", body, encoded)
		}
		if !ok || len(problems) > 0 {
			return
		}
		if loose["email"] == nil || loose["code"] != r.code || loose["name"] != nil && loose["name"] != r.name {
			t.Fatalf("%q reads as %+v, not %v", body, r.code, loose)
		}
		if parsed, err := account.ParseEmail(loose["email"].(string)); err != nil || parsed != r.email || len(loose) > len(fields) {
			t.Fatalf("%q reads as %v, not %v", body, r.email, loose)
		}
	})
}

// misplacedSecret is a request with a secret where it does not belong.
type misplacedSecret struct {
	name string
	exchange
	refused bool // it is a 400 even where no key is needed
	named   bool // the secret is the name of a parameter
}

// misplacedSecrets put a secret in the path, the query, the referrer, cookies, other headers and bodies of data and
// account operations.
func misplacedSecrets(secret string) []misplacedSecret {
	var rows []misplacedSecret
	add := func(name, method, target string, refused bool, lines ...string) {
		rows = append(rows, misplacedSecret{name, exchange{method: method, target: target, lines: lines}, refused, name == "query name"})
	}
	for _, method := range []string{"GET", "HEAD"} {
		for _, name := range []string{"api_key", "apikey", "access_key", "key", "token", "KEY", "Api_Key", "%74oken", "authorization", "bearer"} {
			add("query "+name, method, "/v1/rates/best?currency=USD&operation=buy&"+name+"="+secret, true)
		}
		add("query name", method, "/v1/currencies?"+secret, true)
		add("query value", method, "/v1/rates?currency="+secret, true)
		add("userinfo in a value", method, "/v1/rates?institution=Bearer%20"+secret, true)
	}
	for _, line := range []string{
		"Referer: https://a.example/?key=" + secret, "Cookie: key=" + secret, "Cookie: __Host-session=" + secret + "; Authorization=Bearer " + secret,
		"X-Api-Key: " + secret, "X-Authorization: Bearer " + secret, "Proxy-Authorization: Bearer " + secret, "X-Auth-Token: " + secret,
		"Api-Key: " + secret, "Www-Authenticate: Bearer " + secret, "User-Agent: Bearer " + secret, "From: " + secret, "Origin: https://" + secret,
		"X-Forwarded-For: " + secret, "If-None-Match: \"" + secret + "\"", "Accept-Encoding: " + secret, "Authorization_: Bearer " + secret,
		"X-HTTP-Method-Override: " + secret, "Forwarded: for=" + secret,
	} {
		add(line[:strings.IndexByte(line, ':')], "GET", bestTarget, false, line)
		add(line[:strings.IndexByte(line, ':')]+" for an account", "GET", usagePath, false, line)
		add(line[:strings.IndexByte(line, ':')]+" for keys", "GET", keysPath, false, line)
	}
	for _, target := range []string{"/v1/" + secret, "/" + secret, "/v1/rates/" + secret, "/v1/institutions/" + secret, "/v1/account/" + secret, "/v1/account/usage/" + secret} {
		add("path", "GET", target, false)
	}
	add("path of a key", "DELETE", keysPath+"/"+secret, false)
	for _, name := range []string{"key", "token", "session", "Authorization", "secret"} {
		body := fmt.Sprintf(`{"email":"ana@example.do","%s":"%s"}`, name, secret)
		rows = append(rows,
			misplacedSecret{"body " + name, exchange{method: "POST", target: keysPath, lines: []string{jsonLine}, body: body}, false, false},
			misplacedSecret{"body for a code " + name, exchange{method: "POST", target: codesPath, lines: []string{jsonLine}, body: body}, true, false})
	}
	return rows
}

// misplacedSecretServer is a server before, or after, keys are required, with its log.
type misplacedSecretServer struct {
	*fixture
	required bool
	log      bytes.Buffer
}

func newMisplacedSecretServer(t *testing.T, required bool) *misplacedSecretServer {
	e := &misplacedSecretServer{required: required}
	e.fixture = newFixtureWithLimits(t, func(c *Config) {
		c.Logger = logTo(&e.log)
	})
	e.admitter.allowance = account.Quota{Day: 1 << 20, Minute: 1 << 20}
	if required {
		e.admitter.transition = keysRequiredIn(-time.Hour)
	}
	return e
}

// problems sends a row and says what went wrong.
func (e *misplacedSecretServer) problems(t *testing.T, row misplacedSecret, secret string) (problems []string) {
	account := strings.HasPrefix(row.target, accountPrefix)
	e.admitter.callers, e.accounts.done = nil, 0
	e.log.Reset()
	a := e.send(t, row.exchange)
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("required %v, %d: ", e.required, a.status)+fmt.Sprintf(format, args...))
	}
	for _, c := range e.admitter.callers {
		if c.HasKey {
			wrong("the admitter was handed a key")
		}
	}
	if e.admitter.charged(account1)+e.accounts.done != 0 {
		wrong("something was done in the name of the account")
	}
	switch {
	case account && a.status < http.StatusBadRequest:
		wrong("an account operation is carried out")
	case e.required && !account && a.status != 401 && a.status != 404:
		wrong("served without a key")
	case !e.required && row.refused && a.status != 400:
		wrong("not refused")
	}
	answered := string(a.plain(t)) + fmt.Sprint(a.header)
	if found := secrettest.Leaks(answered, secret); len(found) > 0 && !row.named {
		wrong("the answer holds it: %s", answered)
	}
	if found := secrettest.Leaks(e.log.String(), secret); len(found) > 0 {
		wrong("the log holds it: %s", e.log.String())
	}
	return problems
}

// TestS6_SecretElsewhere: outside the Authorization header a key or a session never authenticates, is never logged
// and never sent back.
func TestS6_SecretElsewhere(t *testing.T) {
	for _, secret := range []string{testKey(1), testSession(100)} {
		for _, server := range []*misplacedSecretServer{newMisplacedSecretServer(t, false), newMisplacedSecretServer(t, true)} {
			for _, row := range misplacedSecrets(secret) {
				for _, problem := range server.problems(t, row, secret) {
					t.Errorf("%s, %s %s: %s", row.name, row.method, row.target, problem)
				}
			}
		}
	}
}

// TestS11_CrossSite: an account operation is done only if no page of another site can send the request. Golden files
// have the refusal of each operation, TestK1_MediaType the types that a form can send.
func TestS11_CrossSite(t *testing.T) {
	origins := map[string]bool{ // whether it is this site's own
		"": true, "https://api.example.do": true, "https://API.EXAMPLE.DO": true, "https://evil.example": false, "null": false,
		"https://api.example.do.evil.example": false, "https://api.example.do:8443": false, "https://api.example.do@evil.example": false,
		"api.example.do": false,
	}
	sites := map[string]bool{"same-origin": true, "none": true, "cross-site": false, "same-site": false, "same-origin, cross-site": false}
	g := newFixtureWithLimits(t, nil)
	for origin, own := range origins {
		check := func(own bool, lines ...string) {
			t.Helper()
			e := accountGood()["key-delete"]
			e.lines, g.accounts.done = append(e.lines, lines...), 0
			if a := g.send(t, e); (a.status < 300) != own || (g.accounts.done > 0) != own || a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%q: %d, want it done: %v", lines, a.status, own)
			}
		}
		line := "X-None: 1"
		if origin != "" {
			line = "Origin: " + origin
		}
		check(own, line)
		for site, ownSite := range sites { // the browser's word counts more
			check(ownSite, line, "Sec-Fetch-Site: "+site)
		}
	}
}
