package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/engine/account/secrettest"
)

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
