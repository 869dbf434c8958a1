package httpapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tasard/tasard/engine/account"
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
