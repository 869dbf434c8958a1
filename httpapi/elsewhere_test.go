package httpapi

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
)

// elsewhereRow is a request with a secret where it does not belong.
type elsewhereRow struct {
	name string
	exchange
	refused bool // it is a 400 even where no key is needed
	named   bool // the secret is the name of a parameter
}

// elsewhereRows put a secret in the path, the query, the referrer, cookies, other headers and bodies of data and account operations.
func elsewhereRows(secret string) []elsewhereRow {
	var rows []elsewhereRow
	add := func(name, method, target string, refused bool, lines ...string) {
		rows = append(rows, elsewhereRow{name, exchange{method: method, target: target, lines: lines}, refused, name == "query name"})
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
			elsewhereRow{"body " + name, exchange{method: "POST", target: keysPath, lines: []string{jsonLine}, body: body}, false, false},
			elsewhereRow{"body for a code " + name, exchange{method: "POST", target: codesPath, lines: []string{jsonLine}, body: body}, true, false})
	}
	return rows
}

// elsewhere is a server before, or after, keys are required, with its log.
type elsewhere struct {
	*gated
	required bool
	log      bytes.Buffer
}

func newElsewhere(t *testing.T, required bool) *elsewhere {
	e := &elsewhere{required: required}
	e.gated = newGated(t, func(c *Config) {
		c.Logger = slog.New(slog.NewJSONHandler(&e.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	e.gate.allowance = engine.Allowance{Day: 1 << 20, Minute: 1 << 20}
	if required {
		e.gate.transition = announced(-time.Hour)
	}
	return e
}

// problems sends a row and says what went wrong.
func (e *elsewhere) problems(t *testing.T, row elsewhereRow, secret string) (problems []string) {
	account := strings.HasPrefix(row.target, accountPrefix)
	ana := email("ana@example.do")
	keys := len(e.accounts.keys[ana])
	e.gate.callers = nil
	e.log.Reset()
	a := e.send(t, row.exchange)
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("required %v, %d: ", e.required, a.status)+fmt.Sprintf(format, args...))
	}
	for _, c := range e.gate.callers {
		if c.HasKey {
			wrong("the gate was handed a key")
		}
	}
	if e.gate.charged(account1) != 0 || len(e.accounts.keys[ana]) != keys {
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
	if found := leaks(answered, canaries(secret)); len(found) > 0 && !row.named {
		wrong("the answer holds it: %s", answered)
	}
	if found := leaks(e.log.String(), canaries(secret)); len(found) > 0 {
		wrong("the log holds it: %s", e.log.String())
	}
	return problems
}

// TestS6_SecretElsewhere: a key or a session in any place but the Authorization header is refused or ignored. It never authenticates, is
// never logged and never sent back, but as the name of a parameter that its sender made up (Q1).
func TestS6_SecretElsewhere(t *testing.T) {
	played := 0
	for _, secret := range []string{testKey(1), testSession(100)} {
		for _, server := range []*elsewhere{newElsewhere(t, false), newElsewhere(t, true)} {
			for _, row := range elsewhereRows(secret) {
				for _, problem := range server.problems(t, row, secret) {
					t.Errorf("%s, %s %s: %s", row.name, row.method, row.target, problem)
				}
				played++
			}
		}
	}
	t.Logf("%d requests with a secret elsewhere", played)
	if played < 200 {
		t.Errorf("only %d were played", played)
	}
}

// TestS6_Control: where it does belong the same secret does authenticate, and that is seen.
func TestS6_Control(t *testing.T) {
	for _, row := range []elsewhereRow{
		{"key", exchange{method: "GET", target: bestTarget, lines: []string{bearer(testKey(1))}}, false, false},
		{"session", exchange{method: "GET", target: keysPath, lines: []string{bearer(testSession(100))}}, false, false},
	} {
		if len(newElsewhere(t, false).problems(t, row, testKey(1))) == 0 {
			t.Errorf("%s passes", row.name)
		}
	}
}

// crossSite is one way in which a browser may send a request, and whether a page of another site could make it do so.
type crossSite struct {
	line    string
	foreign bool
}

// TestS11_Matrix: each operation that changes something, with each origin, each Sec-Fetch-Site and each content type: exactly those that
// no page of another site can send are carried out. Sec-Fetch-Site, which no page can set, has the word; Origin where it is absent.
func TestS11_Matrix(t *testing.T) {
	origins := []crossSite{
		{"", false}, {"https://api.example.do", false}, {"https://API.EXAMPLE.DO", false}, {"https://evil.example", true}, {"null", true},
		{"https://api.example.do.evil.example", true}, {"https://api.example.do:8443", true}, {"https://api.example.do@evil.example", true},
	}
	sites := []crossSite{
		{"", false}, {"same-origin", false}, {"none", false}, {"cross-site", true}, {"same-site", true}, {"same-origin, cross-site", true},
	}
	types := map[string]bool{
		"": false, "application/json": true, "application/json; charset=utf-8": true, "text/plain": false, "text/plain;charset=UTF-8": false,
		"application/x-www-form-urlencoded": false, "multipart/form-data; boundary=x": false, "text/plain; x=application/json": false,
	}
	played, done := 0, 0
	g := newGated(t, nil)
	restore(g)
	for name, good := range accountGood() {
		if good.method == http.MethodGet {
			continue
		}
		for _, origin := range origins {
			for _, site := range sites {
				for _, kind := range slices.Sorted(maps.Keys(types)) {
					e := good
					e.lines = crossLines(good, origin.line, site.line, kind)
					foreign := site.foreign || site.line == "" && origin.foreign
					wanted := !foreign && (types[kind] || good.body == "")
					a := g.send(t, e)
					carried := a.status < 300
					if carried != wanted {
						t.Errorf("%s, Origin %q, Sec-Fetch-Site %q, %q: %d, want it done: %v", name, origin.line, site.line, kind, a.status, wanted)
					}
					if carried {
						done++
						restore(g)
					}
					if a.header.Get("Access-Control-Allow-Origin") != "" {
						t.Errorf("%s: a page of another site may read the answer", name)
					}
					played++
				}
			}
		}
	}
	t.Logf("%d requests, %d carried out", played, done)
	if played < 1500 || done == 0 {
		t.Errorf("only %d were played, %d carried out", played, done)
	}
}

// crossLines are the lines of a good request as a browser would send it.
func crossLines(good exchange, origin, site, kind string) (lines []string) {
	for _, line := range good.lines {
		if line != jsonLine {
			lines = append(lines, line)
		}
	}
	for name, value := range map[string]string{"Origin": origin, "Sec-Fetch-Site": site, "Content-Type": kind} {
		if value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	return lines
}

// restore undoes what an account operation has done, and puts a code on its way.
func restore(g *gated) {
	fresh := newFakeAccounts(g.clock.now)
	g.accounts.sessions, g.accounts.keys, g.accounts.issued = fresh.sessions, fresh.keys, fresh.issued
	sendLetter(g)
}

// TestS10_EveryRoute: each pattern of the router, with each method and in each state of the server, carries the whole header set.
func TestS10_EveryRoute(t *testing.T) {
	patterns := newGated(t, nil).server.router.List()[fasthttp.MethodGet]
	arrangements := map[string]func(*gated){
		"plain":    nil,
		"required": func(g *gated) { g.gate.transition = announced(-time.Hour) },
		"fault": func(g *gated) {
			g.service.fault, g.accounts.fault = everyFault()["internal"].err, everyFault()["internal"].err
		},
		"empty": func(g *gated) { g.service.fault = everyFault()["unavailable"].err },
		"spent": func(g *gated) { g.gate.spend(anyone, 60, fakeNow()) },
		"panic": func(g *gated) { plantPanics(g.server) },
	}
	statuses := map[int]int{}
	walked := 0
	for name, arrange := range arrangements {
		g := newGated(t, nil)
		if arrange != nil {
			arrange(g)
		}
		for _, pattern := range append(slices.Clone(patterns), "/v1/nothing", "/") {
			target := strings.NewReplacer("{id:*}", "bhd", "{id}", "k1").Replace(pattern)
			for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND"} {
				for _, suffix := range []string{"?x=1", "?currency=USD&operation=buy&amount=1"} {
					lines := []string{jsonLine, bearer(testSession(100))}
					if name == "panic" {
						lines = append(lines, plantHeader+": before")
					}
					a := g.send(t, exchange{method: method, target: target + suffix, lines: lines})
					for _, problem := range securityProblems(strings.HasPrefix(target, accountPrefix), a) {
						t.Errorf("%s: %s %s%s: %d: %s", name, method, target, suffix, a.status, problem)
					}
					statuses[a.status]++
					walked++
				}
			}
		}
	}
	t.Logf("%d answers of %d patterns: %v", walked, len(patterns), statuses)
	if len(patterns) < 12 || walked < 2000 || len(statuses) < 9 {
		t.Errorf("%d patterns, %d answers, statuses %v", len(patterns), walked, statuses)
	}
}
