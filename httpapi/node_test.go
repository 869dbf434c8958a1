package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
)

// letterBox is a mailer that keeps the newest email to each address.
type letterBox struct {
	mu      sync.Mutex
	letters map[engine.Email]engine.Letter
}

func (b *letterBox) Send(l engine.Letter) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.letters[l.To] = l
	return nil
}

func (b *letterBox) code(to string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.letters[email(to)].Code.Reveal()
}

// node is the real thing: log, actors and server, over loopback.
type node struct {
	*serving
	t      *testing.T
	dir    string
	clock  *fakeClock
	box    *letterBox
	system *actors.System
}

func startNode(t *testing.T) *node {
	t.Helper()
	n := &node{
		t: t, dir: t.TempDir(), clock: newFakeClock(fakeNow()), box: &letterBox{letters: map[engine.Email]engine.Letter{}},
	}
	n.start()
	t.Cleanup(n.halt)
	return n
}

func (n *node) start() {
	n.t.Helper()
	n.system = must(actors.Open(actors.Config{
		Dir: n.dir, Clock: n.clock.now, Mailer: n.box, KeyPrefix: engine.KeyPrefixTest, Log: actors.LogConfig{ReserveBytes: -1},
		Steady: func() time.Duration { return n.clock.now().Sub(fakeNow().Add(-time.Hour)) },
	}))
	<-n.system.Ready()
	must(n.system.Observe([]engine.Refresh{{SourceID: "list", ObservedAt: n.clock.now(), Observations: []engine.Observation{
		{InstitutionID: "bhd", Currency: "USD", Buy: "58.50", Sell: "59.30"},
	}}}))
	n.serving = serve(n.t, func(c *Config) {
		c.Service, c.Catalogue, c.Clock, c.Gate, c.Accounts = n.system, engine.DefaultCatalogue(), n.clock.now, n.system, n.system
		c.DeprecationLink = "https://tasard.example/keys"
	})
}

// halt is a clean stop.
func (n *node) halt() {
	n.stop(n.t)
	if err := n.system.Close(); err != nil {
		n.t.Error(err)
	}
}

// call is one request over a connection of its own.
func (n *node) call(method, target, body string, lines ...string) answer {
	n.t.Helper()
	conn, wire := n.dial(n.t)
	defer conn.Close()
	if body != "" {
		lines = append(lines, jsonLine)
	}
	write(n.t, conn, string(exchange{method: method, target: target, lines: lines, body: body}.bytes()))
	return parseAnswer(n.t, wire, method)
}

// want is call with the status that must come of it, and the data in the answer.
func (n *node) want(status int, method, target, body string, lines ...string) map[string]any {
	n.t.Helper()
	a := n.call(method, target, body, lines...)
	var read struct{ Data any }
	if a.status != status {
		n.t.Fatalf("%s %s: %d, want %d: %s", method, target, a.status, status, a.body)
	}
	if len(a.body) > 0 {
		ok(n.t, json.Unmarshal(a.body, &read))
	}
	data, _ := read.Data.(map[string]any)
	return data
}

// signIn goes from an address to a session.
func (n *node) signIn(address string) string {
	n.t.Helper()
	n.want(202, "POST", codesPath, `{"email":"`+address+`"}`)
	body := `{"email":"` + address + `","code":"` + n.box.code(address) + `"}`
	return bearer(n.want(200, "POST", sessionsPath, body)["token"].(string))
}

func remaining(t *testing.T, a answer) int {
	t.Helper()
	count, err := strconv.Atoi(a.header.Get("X-RateLimit-Remaining"))
	ok(t, err)
	return count
}

// TestK1_Node goes the way of a new user on a real node: code, session, key, counted requests, limit, rotation, revocation, restart.
func TestK1_Node(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	session := n.signIn("luz@example.do")
	first := n.want(201, "POST", keysPath, `{"name":"uno"}`, session)
	second := n.want(201, "POST", keysPath, `{}`, session)
	n.want(409, "POST", keysPath, `{}`, session)
	one, two := bearer(first["secret"].(string)), bearer(second["secret"].(string))
	for i := range 60 {
		line := []string{one, two}[i%2]
		if a := n.call("GET", "/v1/rates", "", line); a.status != 200 || remaining(t, a) != 59-i {
			t.Fatalf("request %d: %d %s", i+1, a.status, a.limits())
		}
	}
	limited := n.call("GET", "/v1/rates", "", one)
	if limited.status != 429 || limited.header.Get("Retry-After") != "60" || limited.fault(t).Error.Code != "rate_limited" {
		t.Errorf("the 61st: %d, Retry-After %s: %s", limited.status, limited.header.Get("Retry-After"), limited.body)
	}
	usage := n.want(200, "GET", usagePath, "", session)
	if day := usage["day"].(map[string]any); day["remaining"] != 940.0 || usage["minute"].(map[string]any)["remaining"] != 0.0 {
		t.Errorf("usage: %v", usage)
	}
	if a := n.call("GET", "/v1/rates", ""); a.status != 200 || remaining(t, a) != 59 {
		t.Errorf("without a key: %d %s", a.status, a.limits())
	}
	n.clock.set(fakeNow().Add(time.Minute))
	n.want(204, "DELETE", keysPath+"/"+first["id"].(string), "", session)
	n.want(204, "DELETE", keysPath+"/"+first["id"].(string), "", session)
	n.want(401, "GET", usagePath, "", one)
	n.halt()
	n.start()
	if a := n.call("GET", "/v1/rates", "", two); a.status != 200 || !strings.HasPrefix(a.header.Get("RateLimit"), `"day";r=939;`) {
		t.Errorf("after a restart: %d %s", a.status, a.limits())
	}
	n.want(401, "GET", usagePath, "", one)
	keys, hint := n.call("GET", keysPath, "", session), two[len(two)-4:]
	if keys.status != 200 || strings.Contains(string(keys.body), two[len("Authorization: Bearer "):]) || !strings.Contains(string(keys.body), hint) {
		t.Errorf("the list tells a secret, or no hint: %d %s", keys.status, keys.body)
	}
	n.want(204, "DELETE", sessionsPath, "", session)
	n.want(401, "GET", keysPath, "", session)
}

// TestK7_Node: announced to a running node, in force at the instant.
func TestK7_Node(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	key := bearer(n.want(201, "POST", keysPath, `{}`, n.signIn("luz@example.do"))["secret"].(string))
	at := fakeNow().Add(engine.NoticeMin)
	if _, err := n.system.Announce(at, "operator"); err != nil {
		t.Fatal(err)
	}
	a := n.call("GET", "/v1/rates", "")
	if a.status != 200 || a.header.Get("Sunset") != at.Format(http.TimeFormat) || a.header.Get("Deprecation") != "@"+strconv.FormatInt(fakeNow().Unix(), 10) {
		t.Errorf("announced: %d %v", a.status, a.header)
	}
	n.clock.set(at.Add(-time.Nanosecond))
	if a := n.call("GET", "/v1/currencies", ""); a.status != 200 || a.header.Get("Sunset") == "" {
		t.Errorf("just before: %d %v", a.status, a.header)
	}
	n.clock.set(at)
	for line, want := range map[string]string{"X-None: 1": "missing_key", bearer("x"): "invalid_key", bearer(testKey(3)): "invalid_key"} {
		a := n.call("GET", "/v1/currencies", "", line)
		if a.status != 401 || a.fault(t).Error.Code != want || a.header.Get("Sunset") != "" {
			t.Errorf("%s: %d %s", line, a.status, a.body)
		}
	}
	if a := n.call("GET", "/v1/currencies", "", key); a.status != 200 || a.header.Get("Deprecation") != "" {
		t.Errorf("with a key: %d %v", a.status, a.header)
	}
	if a := n.call("GET", "/v1/nothing", "", key); a.status != 404 {
		t.Errorf("%d", a.status)
	}
}

// TestS3_Node: known, unknown and throttled addresses get the same answers.
func TestS3_Node(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	n.signIn("luz@example.do")
	n.clock.set(fakeNow().Add(2 * time.Minute))
	for _, step := range []struct {
		target, more string
		status       int
	}{
		{codesPath, "", 202}, {codesPath, "", 429}, {sessionsPath, `,"code":"00000000"`, 401}, {codesPath, "", 429},
	} {
		known := n.call("POST", step.target, `{"email":"luz@example.do"`+step.more+`}`)
		unknown := n.call("POST", step.target, `{"email":"sol@example.do"`+step.more+`}`)
		for _, a := range []answer{known, unknown} {
			a.header.Del("X-Request-Id")
			a.header.Del("Date")
		}
		same := func(a answer) string {
			text, _, _ := strings.Cut(string(a.body), `"requestId"`)
			return strconv.Itoa(a.status) + string(must(json.Marshal(a.header))) + text
		}
		if known.status != step.status || same(known) != same(unknown) {
			t.Errorf("%s: known %s, unknown %s", step.target, same(known), same(unknown))
		}
	}
}
