package httpapi

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// TestK1_Flow goes the whole way: code, session, key, a counted request, rotation, revocation, signing out.
func TestK1_Flow(t *testing.T) {
	g := newGated(t, nil)
	read := func(a answer, status int) (body struct{ Data map[string]any }) {
		t.Helper()
		if a.status != status {
			t.Fatalf("%d, want %d: %s", a.status, status, a.body)
		}
		if err := json.Unmarshal(a.body, &body); len(a.body) > 0 && err != nil {
			t.Fatal(err)
		}
		return body
	}
	post := func(target, body string, lines ...string) answer {
		return g.send(t, exchange{method: "POST", target: target, lines: append(lines, jsonLine), body: body})
	}
	read(post(codesPath, `{"email":"Luz@Example.do"}`), 202)
	code := g.accounts.letters[email("luz@example.do")]
	session := bearer(read(post(sessionsPath, `{"email":"luz@example.do","code":"`+code+`"}`), 200).Data["token"].(string))
	created := post(keysPath, `{"name":"uno"}`, session)
	key := read(created, 201).Data
	if want := keysPath + "/" + key["id"].(string); created.header.Get("Location") != want {
		t.Errorf("Location %s, want %s", created.header.Get("Location"), want)
	}
	secret := key["secret"].(string)
	g.gate.accounts[digestOf(secret)] = 5
	if a := g.ask(t, bestTarget, bearer(secret)); a.status != 200 || g.gate.charged("account 5") != 1 {
		t.Errorf("the new key: %d, %d charged", a.status, g.gate.charged("account 5"))
	}
	if a := g.ask(t, keysPath, session); a.status != 200 || strings.Contains(string(a.body), secret) || !strings.Contains(string(a.body), secret[len(secret)-4:]) {
		t.Errorf("the list tells the secret, or no hint: %s", a.body)
	}
	second := read(post(keysPath, `{}`, session), 201).Data
	if a := post(keysPath, `{}`, session); a.status != 409 || a.fault(t).Error.Code != "key_limit_reached" {
		t.Errorf("a third key: %d %s (K5)", a.status, a.body)
	}
	for range 2 {
		read(g.send(t, exchange{method: "DELETE", target: keysPath + "/" + second["id"].(string), lines: []string{session}}), 204)
	}
	read(post(keysPath, `{}`, session), 201)
	read(g.send(t, exchange{method: "DELETE", target: sessionsPath, lines: []string{session}}), 204)
	if a := g.ask(t, keysPath, session); a.status != 401 || a.fault(t).Error.Code != "invalid_session" {
		t.Errorf("after signing out: %d %s", a.status, a.body)
	}
	if got := g.gate.charged(anyone); got != 0 {
		t.Errorf("account operations cost %d", got)
	}
}

// TestK1_Bodies: what a body may be.
func TestK1_Bodies(t *testing.T) {
	long := `{"name":"` + strings.Repeat("x", 4000)
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
		{`{"name":"a"} x`, 400, "malformed_request"},
		{`{"name":"a",}`, 400, "malformed_request"},
		{`{'name':'a'}`, 400, "malformed_request"},
		{`{"name":"a"`, 400, "malformed_request"},
		{`[]`, 400, "malformed_request"},
		{`"name"`, 400, "malformed_request"},
		{`null`, 400, "malformed_request"},
		{` `, 400, "malformed_request"},
		{"", 400, "malformed_request"},
		{"\xef\xbb\xbf{}", 400, "malformed_request"},
		{"{\"name\":\"\xff\"}", 400, "malformed_request"},
		{`name=a`, 400, "malformed_request"},
		{strings.Repeat("[", 4000), 400, "malformed_request"},
		{long + `"}`, 400, "[name]"},
		{long + strings.Repeat("x", 100) + `"}`, 413, "payload_too_large"},
	}
	for _, test := range tests {
		g := newGated(t, func(c *Config) { c.Limits.BodyBytesMax = 1 << 20 })
		a := g.send(t, exchange{method: "POST", target: keysPath, lines: []string{jsonLine, bearer(testSession(100))}, body: test.body})
		got := ""
		if a.status >= 400 {
			got = problemPaths(t, a)
		}
		if a.status != test.status || got != test.want {
			t.Errorf("%.60q: %d %s, want %d %s: %s", test.body, a.status, got, test.status, test.want, a.body)
		}
		if a.closes != (test.want == "malformed_request") {
			t.Errorf("%.60q: closes %v (E1)", test.body, a.closes)
		}
	}
}

// problemPaths is the paths of the problems, or the code where there are none.
func problemPaths(t *testing.T, a answer) string {
	t.Helper()
	fault := a.fault(t)
	if len(fault.Error.Details) == 0 {
		return fault.Error.Code
	}
	paths, _ := strings.CutSuffix(strings.Join(a.problemNames(t), " "), " ")
	return paths
}

func (a answer) problemNames(t *testing.T) (names []string) {
	t.Helper()
	for _, problem := range a.problems(t) {
		name, _, _ := strings.Cut(problem, ": ")
		names = append(names, name)
	}
	return names
}

// TestK1_AllProblemsAtOnce, of the URL, the path and the body (Q3).
func TestK1_AllProblemsAtOnce(t *testing.T) {
	g := newGated(t, nil)
	a := g.send(t, exchange{method: "POST", target: sessionsPath + "?x=1&key=2", lines: []string{jsonLine}, body: `{"email":"x","code":"1234567","y":0}`})
	if got := problemPaths(t, a); got != "[x] [key] [email] [code] [y]" {
		t.Errorf("%s: %s", got, a.body)
	}
	a = g.send(t, exchange{method: "POST", target: sessionsPath, lines: []string{jsonLine}, body: `{}`})
	if got := problemPaths(t, a); got != "[email] [code]" || !strings.Contains(string(a.body), "is required") {
		t.Errorf("%s: %s", got, a.body)
	}
	a = g.send(t, exchange{method: "DELETE", target: keysPath + "/%zz?limit=1", lines: []string{bearer(testSession(100))}})
	if got := problemPaths(t, a); got != "[limit] [id]" {
		t.Errorf("%s: %s", got, a.body)
	}
	if g.accounts.asked != 1 { // whether the session is good
		t.Errorf("bad requests asked %d questions", g.accounts.asked)
	}
}

// TestK1_MediaType: JSON in UTF-8, with whatever parameters.
func TestK1_MediaType(t *testing.T) {
	for line, status := range map[string]int{
		"Content-Type: application/json":                  202,
		"content-type: Application/JSON; charset=utf-8":   202,
		`Content-Type: application/json;charset="UTF-8"`:  202,
		"Content-Type: application/json; profile=x":       202,
		"Content-Type: application/json; charset=latin1":  415,
		"Content-Type: application/json; charset":         415,
		"Content-Type: application/json, text/plain":      415,
		"Content-Type: application/jsonp":                 415,
		"Content-Type: application/merge-patch+json":      415,
		"Content-Type: text/json":                         415,
		"Content-Type: text/plain":                        415,
		"Content-Type: application/x-www-form-urlencoded": 415,
		"Content-Type: multipart/form-data; boundary=x":   415,
		"Content-Type:": 415,
		"X-None: 1":     415,
		"Content-Type: application/json\r\nContent-Encoding: gzip": 415,
	} {
		g := newGated(t, nil)
		a := g.send(t, exchange{method: "POST", target: codesPath, lines: strings.Split(line, "\r\n"), body: anaBody})
		if a.status != status {
			t.Errorf("%q: %d, want %d: %s", line, a.status, status, a.body)
		}
		if status == 415 && (a.fault(t).Error.Code != "unsupported_media_type" || g.accounts.asked > 0) {
			t.Errorf("%q: %s, %d asked", line, a.body, g.accounts.asked)
		}
	}
}

// TestK1_Credentials: a session opens account operations alone, a key usage alone; nothing of it is charged.
func TestK1_Credentials(t *testing.T) {
	tests := []struct {
		name, line string
		keys       string // code of GET keys
		usage      string // code of GET usage
	}{
		{"none", "X-None: 1", "invalid_session", "missing_key"},
		{"session", bearer(testSession(100)), "", ""},
		{"unknown session", bearer(testSession(7)), "invalid_session", "invalid_session"},
		{"key", bearer(testKey(1)), "invalid_session", ""},
		{"revoked key", bearer(testKey(8)), "invalid_session", "revoked_key"},
		{"unknown key", bearer(testKey(3)), "invalid_session", "invalid_key"},
		{"rubbish", bearer("x"), "invalid_session", "invalid_key"},
		{"prefix alone", bearer(engine.SessionPrefix), "invalid_session", "invalid_key"},
		{"another scheme", "Authorization: Basic " + testSession(100), "invalid_session", "invalid_key"},
	}
	for _, test := range tests {
		g := newGated(t, nil)
		for target, want := range map[string]string{keysPath: test.keys, usagePath: test.usage} {
			a := g.ask(t, target, test.line)
			switch {
			case want == "" && a.status != 200:
				t.Errorf("%s, %s: %d %s", test.name, target, a.status, a.body)
			case want != "" && (a.status != 401 || a.fault(t).Error.Code != want):
				t.Errorf("%s, %s: %d %s, want %s", test.name, target, a.status, a.body, want)
			}
		}
		if len(g.gate.callers) > 0 {
			t.Errorf("%s: the gate was asked", test.name)
		}
	}
	g := newGated(t, nil)
	g.gate.transition = announced(0)
	if a := g.ask(t, bestTarget, bearer(testSession(100))); a.status != 401 || a.fault(t).Error.Code != "invalid_key" {
		t.Errorf("a session for rates: %d %s", a.status, a.body)
	}
}

// TestL7_AccountOrder: route, method, origin, credential, content.
func TestL7_AccountOrder(t *testing.T) {
	g := newGated(t, nil)
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

// TestK2_ClientAddress: the brakes see the client behind the proxy.
func TestK2_ClientAddress(t *testing.T) {
	for _, name := range []string{"codes-post", "sessions-post"} {
		g := newGated(t, func(c *Config) { c.Proxies = testProxies() })
		e := accountGood()[name]
		e.peer, e.lines = "10.0.0.1", append(e.lines, "X-Forwarded-For: 192.0.2.99, 192.0.2.1")
		g.send(t, e)
		if g.accounts.from != netip.MustParseAddr("192.0.2.1") {
			t.Errorf("%s: %s", name, g.accounts.from)
		}
	}
}

// TestK3_SecondCode: within a minute 429 with the rest of it, for any address alike.
func TestK3_SecondCode(t *testing.T) {
	g := newGated(t, nil)
	for _, address := range []string{"ana@example.do", "nobody@example.do"} {
		e := exchange{method: "POST", target: codesPath, lines: []string{jsonLine}, body: `{"email":"` + address + `"}`}
		if a := g.send(t, e); a.status != 202 {
			t.Fatalf("%d", a.status)
		}
		g.clock.set(g.clock.now().Add(2500 * time.Millisecond))
		a := g.send(t, e)
		if a.status != 429 || a.header.Get("Retry-After") != "58" || a.fault(t).Error.Code != "code_requested_too_soon" || a.limits() != "" {
			t.Errorf("%s: %d, Retry-After %s: %s", address, a.status, a.header.Get("Retry-After"), a.body)
		}
	}
}

// TestS11_CrossSite: what a page of another site can make a browser send does nothing.
func TestS11_CrossSite(t *testing.T) {
	tests := []struct {
		name   string
		lines  []string
		status int
	}{
		{"a program", []string{jsonLine}, 202},
		{"own page", []string{jsonLine, "Origin: https://api.example.do", "Sec-Fetch-Site: same-origin"}, 202},
		{"own page, old browser", []string{jsonLine, "Origin: https://API.example.do"}, 202},
		{"typed by hand", []string{jsonLine, "Sec-Fetch-Site: none"}, 202},
		{"foreign page", []string{jsonLine, "Origin: https://evil.example", "Sec-Fetch-Site: cross-site"}, 400},
		{"foreign page, old browser", []string{jsonLine, "Origin: https://evil.example"}, 400},
		{"sister page", []string{jsonLine, "Origin: https://blog.example.do", "Sec-Fetch-Site: same-site"}, 400},
		{"another port", []string{jsonLine, "Origin: https://api.example.do:8443"}, 400},
		{"a name that begins alike", []string{jsonLine, "Origin: https://api.example.do.evil.example"}, 400},
		{"sandboxed page", []string{jsonLine, "Origin: null"}, 400},
		{"no origin at all", []string{jsonLine, "Origin: api.example.do"}, 400},
		{"form", []string{"Content-Type: application/x-www-form-urlencoded"}, 415},
		{"form as text", []string{"Content-Type: text/plain"}, 415},
		{"form with a file", []string{"Content-Type: multipart/form-data; boundary=x"}, 415},
		{"beacon", []string{"Content-Type: text/plain;charset=UTF-8", "Sec-Fetch-Site: cross-site"}, 400},
		{"no type", nil, 415},
	}
	for _, test := range tests {
		g := newGated(t, nil)
		a := g.send(t, exchange{method: "POST", target: codesPath, lines: test.lines, body: anaBody})
		if a.status != test.status || (a.status == 202) != (g.accounts.asked == 1) {
			t.Errorf("%s: %d, want %d, %d asked: %s", test.name, a.status, test.status, g.accounts.asked, a.body)
		}
	}
	for _, method := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE", "TRACE"} {
		g := newGated(t, nil)
		if a := g.send(t, exchange{method: method, target: codesPath}); a.status != 405 || a.header.Get("Allow") != "POST, OPTIONS" || g.accounts.asked > 0 {
			t.Errorf("%s: %d, Allow %s", method, a.status, a.header.Get("Allow"))
		}
	}
	for _, target := range []string{bestTarget, "/v1/currencies"} {
		if a := newGated(t, nil).send(t, exchange{method: "POST", target: target, lines: []string{jsonLine}, body: "{}"}); a.status != 405 {
			t.Errorf("POST %s: %d", target, a.status)
		}
	}
}

// FuzzAccountBody holds the strict reading of bodies against the standard library's loose one.
func FuzzAccountBody(f *testing.F) {
	for _, seed := range []string{
		anaBody, anaSession, `{}`, `{"email":"a@b.do","email":"c@d.do"}`, `{"EMAIL":"a@b.do"}`, `{"email":null,"code":["1"]}`, `[{}]`, "{} {}",
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
		if parsed, err := engine.ParseEmail(loose["email"].(string)); err != nil || parsed != r.email || len(loose) > len(fields) {
			t.Fatalf("%q reads as %v, not %v", body, r.email, loose)
		}
	})
}
