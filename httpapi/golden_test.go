package httpapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/engine/account/secrettest"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

const (
	bestTarget = "/v1/rates/best?currency=USD&operation=buy&limit=2"
	jsonLine   = "Content-Type: application/json"
	anaBody    = `{"email":"ana@example.do"}`
	anaSession = `{"email":"ana@example.do","code":"` + goodCode + `"}`
)

func goldenTargets() map[string]string {
	return map[string]string{
		"currencies":   "/v1/currencies",
		"institutions": "/v1/institutions?currency=USD&limit=2",
		"institution":  "/v1/institutions/bhd",
		"rates":        "/v1/rates?limit=6",
		"best":         bestTarget,
		"history":      "/v1/rates/history?currency=USD&institution=bhd&limit=3",
		"convert":      "/v1/convert?currency=USD&operation=sell&amount=250.50&limit=2",
	}
}

func fails(err error) func(*fixture)       { return func(f *fixture) { f.service.fault = err } }
func panics(cause any) func(*fixture)      { return func(f *fixture) { f.service.panics = cause } }
func admitterFails(e error) func(*fixture) { return func(f *fixture) { f.admitter.fault = e } }
func accountsFail(e error) func(*fixture)  { return func(f *fixture) { f.accounts.fault = e } }

func spent(who string, count int, ago time.Duration) func(*fixture) {
	return func(f *fixture) { f.admitter.spend(who, count, fakeNow().Add(-ago)) }
}

func fault(code engine.Code, message string, retry time.Duration) error {
	return &engine.Error{Code: code, Message: message, RetryAfter: retry}
}

func getCase(name, target string, arrange func(*fixture), lines ...string) goldenCase {
	return goldenCase{name: name, exchange: exchange{method: "GET", target: target, lines: lines}, arrange: arrange}
}

// goldenCases is each data operation with each status that a server without an admitter can give it.
func goldenCases() []goldenCase {
	var cases []goldenCase
	for operation, target := range goldenTargets() {
		with := "&"
		if !strings.Contains(target, "?") {
			with = "?"
		}
		cases = append(cases,
			getCase(operation+"-200", target, nil),
			getCase(operation+"-304", target, nil, "If-None-Match: *"),
			getCase(operation+"-400", target+with+"limit=0&colour=red&token=x", nil),
			getCase(operation+"-500", target, panics("a planted panic")),
		)
		for name, method := range map[string]string{"-200-head": "HEAD", "-204": "OPTIONS", "-405": "DELETE"} {
			cases = append(cases, goldenCase{name: operation + name, exchange: exchange{method: method, target: target}})
		}
		if operation != "currencies" && operation != "institutions" && operation != "institution" {
			cases = append(cases,
				getCase(operation+"-500-error", target, fails(errors.New("a cause that nobody may see"))),
				getCase(operation+"-503", target, fails(fault(engine.CodeDataUnavailable, "No rates are loaded yet.", 1500*time.Millisecond))),
				getCase(operation+"-503-overloaded", target, fails(fault(engine.CodeOverloaded, "Too many requests are waiting.", 0))))
		}
	}
	cases = append(cases,
		getCase("institution-404", "/v1/institutions/progreso", nil),
		getCase("institution-400-id", "/v1/institutions/%zz", nil),
		getCase("best-400-missing", "/v1/rates/best", nil),
		getCase("best-200-empty", "/v1/rates/best?currency=USD&operation=sell&kind=reference", nil),
		getCase("history-400-range", "/v1/rates/history?from=2024-01-01&to=2025-11-21", nil),
		getCase("unknown-404", "/v1/rate", nil),
		goldenCase{name: "unknown-404-post", exchange: exchange{method: "POST", target: "/"}},
	)
	for i := range cases {
		cases[i].bare = true
	}
	return cases
}

// limitCases is each data operation with each status that an admitter makes possible, before, while and after keys are
// announced.
func limitCases() []goldenCase {
	var cases []goldenCase
	add := func(name, target string, arrange func(*fixture), lines ...string) {
		cases = append(cases, getCase(name, target, arrange, lines...))
	}
	key := bearer(testKey(1))
	for operation, target := range goldenTargets() {
		add(operation+"-200", target, nil, key)
		add(operation+"-304", target, nil, key, "If-None-Match: *")
		add(operation+"-400", target+"?limit=0&x=1", nil, key)
		add(operation+"-429-minute", target, spent(account1, 60, 1500*time.Millisecond), key)
		add(operation+"-429-day", target, spent(peerDefault, 1000, time.Hour))
		for name, lines := range map[string][]string{
			"missing": nil, "invalid": {bearer(testKey(3))}, "malformed": {"Authorization: Basic YTpi"},
			"revoked": {bearer(testKey(8))}, "suspended": {bearer(testKey(9))},
		} {
			add(operation+"-401-"+name, target, func(f *fixture) { f.admitter.transition = keysRequiredIn(0) }, lines...)
		}
		add(operation+"-500", target, panics("a planted panic"), key)
	}
	add("best-200-ignored-key", bestTarget, nil, bearer(testKey(3)))
	add("institution-404", "/v1/institutions/no-such", nil, key)
	add("best-500-error", bestTarget, fails(errors.New("a cause")), key)
	add("best-503", bestTarget, fails(fault(engine.CodeDataUnavailable, "Nothing is loaded yet.", time.Minute)), key)
	add("best-503-gate", bestTarget, admitterFails(fault(engine.CodeReadOnly, "The log can't be written.", 0)), key)
	return cases
}

func accountGood() map[string]exchange {
	session := bearer(testSession(100))
	return map[string]exchange{
		"codes-post":      {method: "POST", target: codesPath, lines: []string{jsonLine}, body: anaBody},
		"sessions-post":   {method: "POST", target: sessionsPath, lines: []string{jsonLine}, body: anaSession},
		"sessions-delete": {method: "DELETE", target: sessionsPath, lines: []string{session}},
		"keys-get":        {method: "GET", target: keysPath, lines: []string{session}},
		"keys-post":       {method: "POST", target: keysPath, lines: []string{jsonLine, session}, body: `{"name":"servidor nuevo"}`},
		"key-delete":      {method: "DELETE", target: keysPath + "/k1", lines: []string{session}},
		"usage-get":       {method: "GET", target: usagePath, lines: []string{session}},
	}
}

// accountCases is each account operation with each status.
func accountCases() []goldenCase {
	var cases []goldenCase
	for name, good := range accountGood() {
		add := func(status string, change func(*exchange), arrange func(*fixture)) {
			e := good
			e.lines = slices.Clone(good.lines)
			if change != nil {
				change(&e)
			}
			cases = append(cases, goldenCase{name: name + "-" + status, exchange: e, arrange: arrange})
		}
		add("ok", nil, nil)
		add("400-query", func(e *exchange) { e.target += "?x=1&token=a" }, nil)
		add("405", func(e *exchange) { e.method = "PATCH" }, nil)
		add("204-options", func(e *exchange) { e.method, e.body = "OPTIONS", "" }, nil)
		add("500", nil, accountsFail(errors.New("a cause that nobody may see")))
		add("503", nil, accountsFail(fault(engine.CodeReadOnly, "The log can't be written.", 1500*time.Millisecond)))
		add("pending", nil, func(f *fixture) { f.admitter.transition = keysRequiredIn(time.Hour) })
		if good.body != "" {
			add("400-malformed", func(e *exchange) { e.body += "," }, nil)
			add("400-unknown", func(e *exchange) { e.body = `{"nombre":"x","name":1,"token":"t","email":1,"code":1}` }, nil)
			add("413", func(e *exchange) { e.body = `{"name":"` + strings.Repeat("n", accountBodyMax) + `"}` }, nil)
			add("415", func(e *exchange) { e.lines[0] = "Content-Type: text/plain" }, nil)
		}
		if good.method != "GET" {
			add("400-origin", func(e *exchange) { e.lines = append(e.lines, "Origin: https://evil.example") }, nil)
		}
		if last := len(good.lines) - 1; strings.Contains(good.lines[last], "Bearer") {
			add("401-none", func(e *exchange) { e.lines = e.lines[:last] }, nil)
			add("401-unknown", func(e *exchange) { e.lines[last] = bearer(testSession(9)) }, nil)
			add("401-malformed", func(e *exchange) { e.lines[last] = bearer(account.SessionPrefix) }, nil)
			add("401-key", func(e *exchange) { e.lines[last] = bearer(testKey(8)) }, nil)
		}
	}
	return append(cases, accountSpecialCases()...)
}

// accountSpecialCases are the statuses that only one operation has.
func accountSpecialCases() []goldenCase {
	good := accountGood()
	of := func(name, operation string, arrange func(*fixture)) goldenCase {
		return goldenCase{name: name, exchange: good[operation], arrange: arrange}
	}
	with := func(name, operation, body string) goldenCase {
		c := of(name, operation, nil)
		c.body = body
		return c
	}
	at := func(name, operation, method, target string) goldenCase {
		c := of(name, operation, nil)
		c.method, c.target = method, target
		return c
	}
	usageByKey := of("usage-get-ok-key", "usage-get", nil)
	usageByKey.lines = []string{bearer(testKey(1))}
	return []goldenCase{
		of("codes-post-429", "codes-post", accountsFail(fault(engine.CodeRequestedTooSoon, "A code was sent less than a minute ago.", 58500*time.Millisecond))),
		of("codes-post-429-client", "codes-post", accountsFail(fault(engine.CodeRateLimited, "Too many attempts; try again later.", time.Hour))),
		with("codes-post-ok-unknown", "codes-post", `{"email":"nobody@example.do"}`),
		with("codes-post-400-email", "codes-post", `{"email":"Ana <ana@example.do>"}`),
		with("sessions-post-401-code", "sessions-post", `{"email":"ana@example.do","code":"00712346"}`),
		with("sessions-post-400-code", "sessions-post", `{"email":"ana@example.do","code":"123"}`),
		of("keys-post-409", "keys-post", accountsFail(fault(engine.CodeKeyLimitReached, "The account has two active keys; revoke one first.", 0))),
		with("keys-post-ok-nameless", "keys-post", `{}`),
		at("key-delete-404", "key-delete", "DELETE", keysPath+"/k77"),
		at("key-delete-again", "key-delete", "DELETE", keysPath+"/k8"),
		at("key-delete-400-id", "key-delete", "DELETE", keysPath+"/%zz"),
		with("key-delete-400-body", "key-delete", `{}`),
		usageByKey,
		at("usage-get-ok-head", "usage-get", "HEAD", usagePath),
		at("account-404", "usage-get", "GET", "/v1/account/nothing"),
	}
}

// documentCases are answers that the OpenAPI document shows or names, and that no other golden file has.
func documentCases() []goldenCase {
	reports := func(conditions ...engine.Condition) func(*fixture) {
		return func(f *fixture) { f.server.config.Health = reportedHealth(conditions) }
	}
	late := engine.Condition{Name: "snapshot", State: "late", Since: fakeNow().Add(-time.Hour), Detail: "The newest snapshot is old; a start takes longer."}
	empty := engine.Condition{Name: "data", State: "empty", Down: true, Since: fakeNow().Add(-time.Minute), Detail: "Nothing was ever published."}
	overloaded := admitterFails(fault(engine.CodeOverloaded, "too many requests at the moment", time.Second))
	return []goldenCase{
		getCase("currencies-503", "/v1/currencies", overloaded),
		getCase("institutions-503", "/v1/institutions", overloaded),
		getCase("institution-503", "/v1/institutions/bhd", overloaded),
		getCase("rates-200", "/v1/rates?currency=USD&institution=bhd&channel=digital", nil),
		getCase("convert-200", "/v1/convert?currency=USD&operation=buy&amount=250.50&limit=1", nil),
		getCase("history-200", "/v1/rates/history?currency=USD&institution=bhd&channel=digital&limit=2", nil),
		getCase("best-200", "/v1/rates/best?currency=USD&operation=buy&limit=1", nil),
		getCase("institution-200", "/v1/institutions/banreservas", nil),
		getCase("livez-200", livezPath, nil),
		getCase("healthz-200", healthzPath, nil),
		getCase("readyz-200", readyzPath, reports(engine.HealthyCondition("log"))),
		getCase("readyz-200-degraded", readyzPath, reports(late)),
		getCase("readyz-503", readyzPath, reports(empty)),
		{name: "sessions-post-429", exchange: accountGood()["sessions-post"], arrange: accountsFail(fault(engine.CodeRateLimited, "Too many attempts; try again later.", time.Hour))},
	}
}

func TestGolden(t *testing.T) {
	for folder, cases := range map[string][]goldenCase{
		"golden": goldenCases(), "limits": limitCases(), "accounts": accountCases(), "document": documentCases(),
	} {
		playGolden(t, folder, cases)
	}
}

// timeoutError is what the library gives when a request does not arrive in time.
type timeoutError struct{ error }

func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// unreadableAnswers are those to requests that can't be read to their end.
func unreadableAnswers(t testing.TB) map[string]answer {
	t.Helper()
	answers := map[string]answer{}
	for name, err := range map[string]error{
		"400": errors.New("a line that is none"), "408": timeoutError{errors.New("a timeout")}, "413": fasthttp.ErrBodyTooLarge, "431": &fasthttp.ErrSmallBuffer{},
	} {
		var ctx fasthttp.RequestCtx
		ctx.Request.Header.SetMethod("GET")
		ctx.Request.SetRequestURI("/v1/rates")
		newFixtureWithLimits(t, nil).server.rejectUnreadable(&ctx, err)
		answers[name] = written(t, &ctx, "GET")
	}
	f := newFixtureWithLimits(t, nil)
	chunked := &rawConn{in: []byte("POST /v1/rates HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), step: rawBufferBytes}
	ok(t, f.server.http.ServeConn(chunked))
	answers["501"] = parseAnswer(t, bufio.NewReader(&chunked.out), "POST")
	return answers
}

func TestGolden_Unread(t *testing.T) {
	files := map[string][]byte{}
	for name, a := range unreadableAnswers(t) {
		files[name] = goldenCase{exchange: exchange{method: "GET", target: "/v1/rates"}}.text(a)
	}
	holdGolden(t, "unread", files)
}

func everyStatus() []goldenCase { return append(limitCases(), accountCases()...) }

// securityProblems holds an answer against the headers that all answers carry (reliability §4.7).
func securityProblems(account bool, a answer) (problems []string) {
	want := map[string]string{
		"X-Content-Type-Options": "nosniff", "Content-Security-Policy": rendered.ContentPolicy, "Referrer-Policy": "no-referrer",
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
