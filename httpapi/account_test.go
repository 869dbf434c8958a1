package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/engine/account/secrettest"
)

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
		{long + strings.Repeat("x", 100) + `"}`, 413, "payload_too_large"},
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
