package httpapi

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

const (
	jsonLine   = "Content-Type: application/json"
	anaBody    = `{"email":"ana@example.do"}`
	anaSession = `{"email":"ana@example.do","code":"` + goodCode + `"}`
)

// accountGood is a good request for each account operation, by method and path pattern.
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

// sendLetter puts a good code into the fake.
func sendLetter(g *gated) { g.accounts.letters[email("ana@example.do")] = goodCode }

// accountCases is each account operation with each status.
func accountCases() []gatedCase {
	var cases []gatedCase
	for name, good := range accountGood() {
		add := func(status string, change func(*exchange), arrange func(*gated)) {
			e := good
			e.lines = append([]string(nil), good.lines...)
			if change != nil {
				change(&e)
			}
			cases = append(cases, gatedCase{name + "-" + status, e, arrange})
		}
		add("ok", nil, sendLetter)
		add("400-query", func(e *exchange) { e.target += "?x=1&token=a" }, sendLetter)
		add("405", func(e *exchange) { e.method = "PATCH" }, nil)
		add("204-options", func(e *exchange) { e.method, e.body = "OPTIONS", "" }, nil)
		add("500", nil, func(g *gated) { g.accounts.fault = errors.New("a cause that nobody may see") })
		add("503", nil, func(g *gated) {
			g.accounts.fault = &engine.Error{Code: engine.CodeReadOnly, Message: "The log can't be written.", RetryAfter: 1500 * time.Millisecond}
		})
		add("pending", nil, func(g *gated) { sendLetter(g); g.gate.transition = announced(time.Hour) })
		if good.body != "" {
			add("400-malformed", func(e *exchange) { e.body += "," }, nil)
			add("400-unknown", func(e *exchange) { e.body = `{"nombre":"x","name":1,"token":"t","email":1,"code":1}` }, nil)
			add("413", func(e *exchange) { e.body = `{"name":"` + strings.Repeat("n", accountBodyMax) + `"}` }, nil)
			add("415", func(e *exchange) { e.lines[0] = "Content-Type: text/plain" }, nil)
		}
		if good.method != "GET" {
			add("400-origin", func(e *exchange) { e.lines = append(e.lines, "Origin: https://evil.example") }, nil)
		}
		if len(good.lines) > 0 && strings.Contains(good.lines[len(good.lines)-1], "Bearer") {
			last := len(good.lines) - 1
			add("401-none", func(e *exchange) { e.lines = e.lines[:last] }, nil)
			add("401-unknown", func(e *exchange) { e.lines[last] = bearer(testSession(9)) }, nil)
			add("401-malformed", func(e *exchange) { e.lines[last] = bearer("x") }, nil)
			add("401-key", func(e *exchange) { e.lines[last] = bearer(testKey(8)) }, nil)
		}
	}
	return append(cases, accountSpecialCases()...)
}

// accountSpecialCases are the statuses that one operation alone has.
func accountSpecialCases() []gatedCase {
	good := accountGood()
	with := func(e exchange, body string) exchange { e.body = body; return e }
	at := func(e exchange, method, target string) exchange { e.method, e.target = method, target; return e }
	asked := func(ago time.Duration) func(*gated) {
		return func(g *gated) { g.accounts.issued[email("ana@example.do")] = fakeNow().Add(-ago) }
	}
	usageByKey := good["usage-get"]
	usageByKey.lines = []string{bearer(testKey(1))}
	return []gatedCase{
		{"codes-post-429", good["codes-post"], asked(1500 * time.Millisecond)},
		{"codes-post-429-client", good["codes-post"], func(g *gated) {
			g.accounts.fault = &engine.Error{Code: engine.CodeRateLimited, Message: "Too many attempts; try again later.", RetryAfter: time.Hour}
		}},
		{"codes-post-ok-unknown", with(good["codes-post"], `{"email":"nobody@example.do"}`), nil},
		{"codes-post-400-email", with(good["codes-post"], `{"email":"Ana <ana@example.do>"}`), nil},
		{"sessions-post-401-code", with(good["sessions-post"], `{"email":"ana@example.do","code":"00712346"}`), sendLetter},
		{"sessions-post-400-code", with(good["sessions-post"], `{"email":"ana@example.do","code":"123"}`), nil},
		{"keys-post-409", good["keys-post"], func(g *gated) {
			ana := email("ana@example.do")
			g.accounts.keys[ana] = append(g.accounts.keys[ana], engine.KeyRecord{ID: "k2", CreatedAt: fakeNow()})
		}},
		{"keys-post-ok-nameless", with(good["keys-post"], `{}`), nil},
		{"key-delete-404", at(good["key-delete"], "DELETE", keysPath+"/k77"), nil},
		{"key-delete-again", at(good["key-delete"], "DELETE", keysPath+"/k8"), nil},
		{"key-delete-400-id", at(good["key-delete"], "DELETE", keysPath+"/%zz"), nil},
		{"key-delete-400-body", with(good["key-delete"], `{}`), nil},
		{"usage-get-ok-key", usageByKey, nil},
		{"usage-get-ok-head", at(good["usage-get"], "HEAD", usagePath), nil},
		{"account-404", at(good["usage-get"], "GET", "/v1/account/nothing"), nil},
	}
}

func TestGolden_Accounts(t *testing.T) { playGolden(t, "accounts", accountCases()) }

// accountShapes are the bodies of the account operations (K1, K8).
func accountShapes() map[string]shape {
	text, count := pattern(".*"), literal("0|[1-9][0-9]*")
	instant := pattern(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]*[1-9])?Z`)
	key := []member{
		{"id", pattern(".+")}, {"name", text}, {"hint", pattern("[0-9A-Za-z]{4}")}, {"status", pattern("active|revoked")},
		{"createdAt", instant}, {"revokedAt", nullable(instant)}, {"lastUsedAt", nullable(instant)},
	}
	window := closed(member{"limit", count}, member{"remaining", count}, member{"resetAt", pattern(`[0-9-]{10}T[0-9:]{8}Z`)})
	withSecret := append(append([]member(nil), key...), member{"secret", pattern("tasard_(live|test)_[0-9A-Za-z]{36}")})
	data := func(s shape) shape { return closed(member{"data", s}) }
	return map[string]shape{
		"codes-post":    data(closed(member{"expiresInSeconds", literal("600")}, member{"resendAfterSeconds", literal("60")})),
		"sessions-post": data(closed(member{"token", pattern("tasard_session_[0-9A-Za-z]{30}")}, member{"expiresAt", instant})),
		"keys-get":      data(arrayOf(closed(key...))),
		"keys-post":     data(closed(withSecret...)),
		"usage-get":     data(closed(member{"day", window}, member{"minute", window})),
	}
}

// TestK1_Shapes judges the bodies and statuses of every case.
func TestK1_Shapes(t *testing.T) {
	statuses := map[string]int{
		"codes-post": 202, "sessions-post": 200, "sessions-delete": 204, "keys-get": 200, "keys-post": 201, "key-delete": 204, "usage-get": 200,
	}
	judged := 0
	for _, c := range accountCases() {
		_, a := c.run(t)
		name := strings.Join(strings.SplitN(c.name, "-", 3)[:2], "-")
		if strings.HasSuffix(c.name, "-ok") && a.status != statuses[name] {
			t.Errorf("%s: %d, want %d", c.name, a.status, statuses[name])
		}
		var err error
		switch {
		case c.method == http.MethodHead:
		case a.status == http.StatusNoContent:
			if len(a.body) > 0 || a.header.Get("Content-Type") != "" {
				err = errors.New("a body, or a word about one, where none may be")
			}
		case a.status < 300:
			err = accountShapes()[name](a.body)
		default:
			err = errorShape(bytes.Contains(a.body, []byte(`"code":"invalid_parameters"`)))(a.body)
		}
		if err != nil {
			t.Errorf("%s: %d %v: %s", c.name, a.status, err, a.body)
		}
		judged++
	}
	if judged == 0 {
		t.Fatal("nothing was judged")
	}
}
