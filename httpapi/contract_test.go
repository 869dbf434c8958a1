package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account/secrettest"
)

// securityProblems holds an answer against the headers that all answers carry (reliability §4.7).
func securityProblems(account bool, a answer) (problems []string) {
	want := map[string]string{
		"X-Content-Type-Options": "nosniff", "Content-Security-Policy": contentPolicy, "Referrer-Policy": "no-referrer",
		"Vary": "Accept-Encoding, Authorization", "Server": "", "Set-Cookie": "",
		"Cross-Origin-Resource-Policy": "cross-origin", "Access-Control-Allow-Origin": "*",
		"Access-Control-Expose-Headers": exposedHeaders, "Access-Control-Allow-Credentials": "",
	}
	if account {
		want["Cross-Origin-Resource-Policy"], want["Access-Control-Allow-Origin"], want["Access-Control-Expose-Headers"] = "same-origin", "", ""
		want["Access-Control-Allow-Methods"], want["Access-Control-Allow-Headers"], want["Access-Control-Max-Age"] = "", "", ""
		want["Etag"] = ""
	}
	if account || a.status >= 400 {
		want["Cache-Control"] = "no-store"
	}
	if a.status != 204 && a.status != 304 {
		want["Content-Type"] = contentTypeJSON
	}
	for name, value := range want {
		if got := strings.Join(a.header.Values(name), " | "); got != value {
			problems = append(problems, fmt.Sprintf("%s is %q, want %q", name, got, value))
		}
	}
	if (a.status == 429 || a.status == 503) != (a.header.Get("Retry-After") != "") {
		problems = append(problems, "Retry-After is "+a.header.Get("Retry-After"))
	}
	if (a.status == 401) != (a.header.Get("Www-Authenticate") != "") {
		problems = append(problems, "WWW-Authenticate is "+a.header.Get("Www-Authenticate"))
	}
	if len(a.header.Get("X-Request-Id")) != len(RequestID{}) {
		problems = append(problems, "X-Request-Id is "+a.header.Get("X-Request-Id"))
	}
	return problems
}

// TestS10_Contract walks the whole table of routes with every status (decisions Q14–Q16 and E1). It checks the headers
// of all answers, details only on a 400 whose request could be read (decision E2), and one of each limit header exactly
// where the caller was identified (decision L9).
func TestS10_Contract(t *testing.T) {
	for _, c := range everyStatus() {
		c.lines = append(slices.Clone(c.lines), "Accept: text/html") // answers are JSON, whatever is accepted (decision Q10)
		f, a := c.run(t)
		identified := f.admitter.granted > 0
		checkAnswer(t, c.name, c.method, c.target, a)
		if a.status >= 400 && c.method != "HEAD" {
			if body := a.fault(t).Error; len(body.Details) > 0 != (body.Code == "invalid_parameters") {
				t.Errorf("%s: %s", c.name, a.body)
			}
		}
		for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
			if values := a.header.Values(name); len(values) > 1 || identified != (len(values) == 1) {
				t.Errorf("%s: %d has %s %q", c.name, a.status, name, values)
			}
		}
		for _, draft := range []string{"RateLimit", "RateLimit-Policy"} {
			if a.header.Get(draft) != "" {
				t.Errorf("%s: the draft field %s is sent (decision L3)", c.name, draft)
			}
		}
	}
}

// TestS5_LogsHoldNoSecret plays every case, and worse ones: no log line has a secret in any form, and each is one
// JSON object (decision S14).
func TestS5_LogsHoldNoSecret(t *testing.T) {
	var log bytes.Buffer
	const canary = "canary7@example.do"
	secrets := []string{testKey(1), testKey(8), testSession(100), testSession(1), goodCode, "ana@example.do", canary, "servidor nuevo"}
	cases := everyStatus()
	for _, place := range []string{"/v1/rates?key=%s", "/v1/%s", "/v1/account/%s", "/v1/account/keys/%s", "/v1/account/usage?token=%s", "/v1/institutions/%s"} {
		for _, secret := range []string{testKey(1), testSession(100), canary, "\\r\\n{}", "%0d%0a%1b[31m%e2%80%a8"} {
			lines := []string{bearer(secret), "Cookie: key=" + secret, "Referer: https://a.example/?" + secret, "X-Forwarded-For: " + secret, "User-Agent: " + secret}
			cases = append(cases, goldenCase{exchange: exchange{method: "GET", target: fmt.Sprintf(place, secret), lines: lines}},
				goldenCase{exchange: exchange{method: "DELETE", target: fmt.Sprintf(place, secret), lines: lines}})
		}
	}
	cases = append(cases, goldenCase{exchange: exchange{method: "POST", target: codesPath, lines: []string{jsonLine}, body: `{"email":"` + canary + `"}`}})
	for _, c := range cases {
		for _, panics := range []bool{false, true} {
			g := newFixtureWithLimits(t, func(config *Config) { config.Logger = logTo(&log) })
			if c.arrange != nil {
				c.arrange(g)
			}
			if panics {
				g.accounts.work = func() { panic("a planted panic") }
			}
			g.send(t, c.exchange)
		}
	}
	if found := secrettest.Leaks(log.String(), secrets...); len(found) > 0 {
		t.Errorf("the log holds %q", found)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
	if len(lines) < 100 {
		t.Errorf("only %d lines were looked at", len(lines))
	}
}

// TestS5_AccountLog: what happened on the way to a key is in the log, cut to what an operator needs; a flood is not.
func TestS5_AccountLog(t *testing.T) {
	for _, c := range []struct {
		name, peer, line string
		fault            error
		want             []string
	}{
		{"keys-post", "", bearer(testSession(100)), nil, []string{
			`"requestId":"0000000000000001"`, `"operation":"POST /v1/account/keys"`, `"status":201`, `"network":"192.0.2.0/24"`,
		}},
		{"key-delete", "2001:db8:1:2:3::4", bearer(testSession(100)), nil, []string{
			`"network":"2001:db8:1::/48"`, `"operation":"DELETE /v1/account/keys/{id}"`,
		}},
		{"keys-get", "", bearer(testSession(7)), nil, []string{`"code":"invalid_session"`}},
		{"codes-post", "", "X-None: 1", fault(engine.CodeRateLimited, "Too many attempts.", 0), nil},
	} {
		var log bytes.Buffer
		g := newFixtureWithLimits(t, func(config *Config) { config.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
		g.accounts.fault = c.fault
		e := accountGood()[c.name]
		e.peer, e.lines = c.peer, []string{jsonLine, c.line}
		g.send(t, e)
		for _, part := range c.want {
			if !strings.Contains(log.String(), part) {
				t.Errorf("%s: no %s in %s", c.name, part, log.String())
			}
		}
		if c.want == nil && log.Len() > 0 {
			t.Errorf("%s: a refusal for a limit is logged: %s", c.name, log.String())
		}
	}
}
