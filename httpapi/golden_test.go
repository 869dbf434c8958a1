package httpapi

import (
	"bufio"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
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
