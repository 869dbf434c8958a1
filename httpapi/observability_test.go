package httpapi

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/counters"
)

// wireClient asks over one connection after the other, and counts what it got as the server should.
type wireClient struct {
	t       *testing.T
	address string
	conn    net.Conn
	reader  *bufio.Reader
	got     map[string]uint64 // by series
}

// requestSeries returns the name of the series that counts such requests.
func requestSeries(route, method, status string) string {
	return fmt.Sprintf("tasard_http_requests_total{method=%q,route=%q,status=%q}", method, route, status)
}

// series returns the metrics of a server that are not zero. A histogram counts by the number of its values.
func series(t testing.TB, s *Server) map[string]uint64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s.Metrics()...)
	families, err := registry.Gather()
	ok(t, err)
	found := map[string]uint64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}
			name := family.GetName()
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			if count := uint64(m.GetCounter().GetValue()+m.GetGauge().GetValue()) + m.GetHistogram().GetSampleCount(); count > 0 {
				found[name] = count
			}
		}
	}
	return found
}

// sumOf adds up the series of a metric.
func sumOf(all map[string]uint64, metric string) (sum uint64) {
	for name, count := range all {
		if strings.HasPrefix(name, metric) {
			sum += count
		}
	}
	return sum
}

func (c *wireClient) ask(route, method string, request []byte) int {
	c.t.Helper()
	if c.conn == nil {
		c.conn = dial(c.t, c.address)
		c.reader = bufio.NewReader(c.conn)
	}
	write(c.t, c.conn, string(request))
	a := parseAnswer(c.t, c.reader, method)
	if a.closes {
		c.conn.Close()
		c.conn = nil
	}
	c.got[requestSeries(route, counters.MethodLabel([]byte(method)), strconv.Itoa(a.status))]++
	return a.status
}

// countedRequests are requests of every route, most of them with an answer of their own.
func countedRequests() map[string][]exchange {
	key, session, json := bearer(testKey(1)), bearer(testSession(100)), jsonLine
	all := map[string][]exchange{
		"*":    {{method: "OPTIONS", target: "*"}},
		"site": {{method: "GET", target: "/"}, {method: "POST", target: "/", body: "a=b"}, {method: "GET", target: "/odd"}},
		"none": {{method: "GET", target: "/no"}, {method: "BREW", target: "/v1/rates/"}, {method: "GET", target: "/v1/institutions/a/b"}, {method: "DELETE", target: "/V1/rates"}},
		"refused": {
			{method: "GET", target: "/v1/rates#a"}, {method: "GET", target: "/v1/rates", body: "x"}, // by the guard; the others by the library
			{method: "GET", target: "/" + strings.Repeat("a", 9000)},
			{method: "POST", target: "/v1/account/codes", lines: []string{json}, body: strings.Repeat(" ", 5000)},
		},
		"/livez": {{method: "GET", target: "/livez?a"}, {method: "PUT", target: "/livez"}}, "/healthz": {{method: "HEAD", target: "/healthz"}},
		"/readyz": {{method: "GET", target: "/readyz"}},
		"/v1/account/codes": {
			{method: "POST", target: "/v1/account/codes", lines: []string{json}, body: anaBody},
			{method: "GET", target: "/v1/account/codes"}, {method: "POST", target: "/v1/account/codes"},
		},
		"/v1/account/sessions": {
			{method: "POST", target: "/v1/account/sessions", lines: []string{json}, body: `{"email":"leo@example.do","code":"11111111"}`},
			{method: "OPTIONS", target: "/v1/account/sessions"}, {method: "DELETE", target: "/v1/account/sessions"},
		},
		"/v1/account/keys":      {{method: "GET", target: "/v1/account/keys", lines: []string{session}}, {method: "POST", target: "/v1/account/keys", lines: []string{session, json}, body: "{}"}},
		"/v1/account/keys/{id}": {{method: "DELETE", target: "/v1/account/keys/k8", lines: []string{session}}, {method: "DELETE", target: "/v1/account/keys/none", lines: []string{session}}},
		"/v1/account/usage":     {{method: "GET", target: "/v1/account/usage", lines: []string{key}}, {method: "HEAD", target: "/v1/account/usage"}},
	}
	for _, target := range goldenTargets() {
		path, _, _ := strings.Cut(target, "?")
		route := strings.Replace(path, "/bhd", "/{id}", 1)
		all[route] = []exchange{
			{method: "GET", target: target}, {method: "GET", target: target}, {method: "GET", target: target, lines: []string{key}},
			{method: "HEAD", target: target, lines: []string{key}}, {method: "OPTIONS", target: target}, {method: "POST", target: target},
			{method: "PATCH", target: target}, {method: "GET", target: path + "?unknown=1"}, {method: "GET", target: target, lines: []string{"If-None-Match: *"}},
			{method: "GET", target: target, lines: []string{bearer(testKey(9))}},
		}
	}
	return all
}

func nodeStates() map[string]func(*fixture) {
	return map[string]func(*fixture){
		"well":       func(*fixture) {},
		"no rates":   fails(fault(engine.CodeDataUnavailable, "m", 0)),
		"a panic":    panics(errors.New("planted")),
		"a day":      func(g *fixture) { g.admitter.allowance = account.Quota{Day: 1, Minute: 5} },
		"a minute":   func(g *fixture) { g.admitter.allowance = account.Quota{Day: 5, Minute: 1} },
		"keys":       func(g *fixture) { g.admitter.transition = keysRequiredIn(-time.Hour) },
		"gate":       admitterFails(fault(engine.CodeOverloaded, "m", 0)),
		"accounts":   accountsFail(fault(engine.CodeReadOnly, "m", 0)),
		"limits off": func(g *fixture) { g.admitter.off = true },
	}
}

// TestCounters_Exact: the counts of the server are those of a client that asks every route in every weather, to the
// last request.
func TestCounters_Exact(t *testing.T) {
	statuses := map[int]bool{}
	for name, change := range nodeStates() {
		t.Run(name, func(t *testing.T) {
			g := serve(t, withLimits(func(c *Config) { c.Site = &fakeSite{} }))
			change(g.fixture)
			client := &wireClient{t: t, address: g.address, got: map[string]uint64{}}
			errors, unread := uint64(0), uint64(0)
			for route, exchanges := range countedRequests() {
				for i, e := range exchanges {
					status := client.ask(route, e.method, e.bytes())
					statuses[status] = true
					if status >= 400 && route != "site" {
						errors++
					}
					if route == "refused" && i > 1 {
						unread++
					}
				}
			}
			all := series(t, g.server)
			found := maps.Clone(all)
			maps.DeleteFunc(found, func(name string, _ uint64) bool { return !strings.HasPrefix(name, "tasard_http_requests_total") })
			if !maps.Equal(found, client.got) {
				t.Errorf("the server counted\n%v\nthe client\n%v", found, client.got)
			}
			for metric, want := range map[string]uint64{
				"tasard_http_request_duration": sumOf(found, "") - unread, "tasard_http_errors_total": errors, "tasard_admissions_total": uint64(len(g.admitter.callers)),
				"tasard_http_connections_max": 16_384, "tasard_http_connections_refused_total": 0, "tasard_http_accept_failures_total": 0,
			} {
				if got := sumOf(all, metric); got != want {
					t.Errorf("%s: %d, want %d", metric, got, want)
				}
			}
		})
	}
	for _, status := range []int{200, 201, 202, 204, 304, 400, 401, 404, 405, 413, 415, 429, 431, 500, 503, http.StatusTeapot} {
		if !statuses[status] {
			t.Errorf("no request was answered %d", status)
		}
	}
}

// TestCounters_Admissions counts admissions, and refusals by their reason.
func TestCounters_Admissions(t *testing.T) {
	g := newFixtureWithLimits(t, nil)
	g.admitter.allowance = account.Quota{Day: 4, Minute: 2}
	for range 3 {
		g.get(t, bestTarget, bearer(testKey(1)))
		g.get(t, bestTarget)
	}
	g.admitter.allowance.Day = 2
	g.get(t, bestTarget)
	g.admitter.transition = keysRequiredIn(-time.Hour)
	for _, line := range []string{"X-No: key", bearer("not-a-key"), bearer(testKey(8)), bearer(testKey(9))} {
		g.get(t, bestTarget, line)
	}
	g.admitter.fault = fault(engine.CodeDataUnavailable, "m", 0)
	g.get(t, bestTarget, bearer(testKey(1)))
	got := series(t, g.server)
	for of, count := range map[string]uint64{
		"key admitted": 2, "key rate_limited": 1, "anonymous admitted": 2, "anonymous rate_limited": 1, "anonymous quota_exceeded": 1,
		"anonymous missing_key": 1, "anonymous invalid_key": 1, "key revoked_key": 1, "key account_suspended": 1, "key unavailable": 1,
	} {
		caller, outcome, _ := strings.Cut(of, " ")
		if name := fmt.Sprintf("tasard_admissions_total{caller=%q,outcome=%q}", caller, outcome); got[name] != count {
			t.Errorf("%s: %d, want %d", of, got[name], count)
		}
	}
	if sum := sumOf(got, "tasard_admissions_total"); sum != 12 {
		t.Errorf("%d admissions", sum)
	}
}

// TestCounters_Connections counts those that are open, turned away and beyond the cap.
func TestCounters_Connections(t *testing.T) {
	log := &lockedBuffer{}
	s := serve(t, func(c *Config) {
		c.Limits, c.Logger = Limits{ConnsMax: 10, ConnsPerClient: 2}, slog.New(slog.NewTextHandler(log, nil))
	})
	var conns []net.Conn
	for range 2 {
		conn, wire := s.dial(t)
		conns = append(conns, conn)
		askOn(t, conn, wire, bestTarget)
	}
	for range 4 {
		third, _ := s.dial(t)
		if n, err := third.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Error("a third connection of an address is served")
		}
	}
	for metric, want := range map[string]uint64{"": 2, "_max": 10, "_accepted_total": 6, `_refused_total{reason="address"}`: 4} {
		if got := series(t, s.server)["tasard_http_connections"+metric]; got != want {
			t.Errorf("connections%s: %d, want %d", metric, got, want)
		}
	}
	eventually(t, func() bool { return strings.Count(log.text(), "\n") == 1 })
	for _, part := range []string{"--connections-per-address", "network=127.0.0.0/24 limit=2 refused=1\n"} {
		if !strings.Contains(log.text(), part) {
			t.Errorf("the log has no %q: %s", part, log.text())
		}
	}
	for _, conn := range conns {
		conn.Close()
	}
	eventually(t, func() bool { return series(t, s.server)["tasard_http_connections"] == 0 })
}

// TestO5_IdleMakesRoom: at the cap each newcomer is served, in the place of the connection that was idle longest.
// Answers that cost nothing do not make a connection younger, and one with half a request stays. The server notes a
// little after an answer that a connection is idle, so steps too close together are taken again with longer pauses.
func TestO5_IdleMakesRoom(t *testing.T) {
	want := []string{"free", "recent", "charged"}
	for pause := 10 * time.Millisecond; ; pause *= 10 {
		got := idleOrder(t, pause)
		if slices.Equal(got, want) {
			return
		}
		if pause > time.Second {
			t.Fatalf("newcomers took the places of %v, want %v", got, want)
		}
	}
}

// idleOrder fills a server with four connections and returns the names of three in the order in which newcomers take
// their places. It pauses after each step.
func idleOrder(t *testing.T, pause time.Duration) (order []string) {
	s := serve(t, withLimits(func(c *Config) { c.Limits = Limits{ConnsMax: 4, ConnsPerClient: -1} }))
	served, closed := map[string]net.Conn{}, make(chan string, 3)
	ask := func(conn net.Conn, target string) {
		askOn(t, conn, bufio.NewReader(conn), target)
		bubbleSleep(pause)
	}
	for _, name := range []string{"busy", "charged", "free", "recent"} {
		served[name], _ = s.dial(t)
		ask(served[name], bestTarget)
	}
	write(t, served["busy"], "GET /v1/rates")
	ask(served["free"], "/nothing-here")
	ask(served["charged"], bestTarget)
	for _, name := range []string{"charged", "free", "recent"} {
		go func() {
			_, _ = served[name].Read(make([]byte, 1))
			closed <- name
		}()
	}
	for newcomers := range 3 {
		conn, _ := s.dial(t)
		ask(conn, bestTarget)
		order = append(order, <-closed)
		if closed := series(t, s.server)["tasard_http_connections_idle_closed_total"]; closed != uint64(newcomers+1) {
			t.Errorf("newcomer %d: %d idle connections are closed", newcomers, closed)
		}
	}
	write(t, served["busy"], " HTTP/1.1\r\nHost: a\r\n\r\n")
	if a := parseAnswer(t, bufio.NewReader(served["busy"]), "GET"); a.status != 200 {
		t.Errorf("the request that had begun: %d", a.status)
	}
	return order
}

// TestAccess: a record has the route, status and size of an answer, but no path, query or client address.
func TestAccess(t *testing.T) {
	var records []AccessRecord
	g := newFixtureWithLimits(t, func(c *Config) {
		c.AccessLog, c.Site = func(a AccessRecord) { records = append(records, a) }, &fakeSite{}
	})
	const four, six = "192.0.2.0/24", "2001:db8:1::/48"
	for _, c := range []struct {
		exchange
		route, network string
		keyed          bool
	}{
		{exchange{method: "GET", target: bestTarget + "&channel=branch", lines: []string{bearer(testKey(1))}}, "/v1/rates/best", four, true},
		{exchange{method: "HEAD", target: goldenTargets()["institution"], peer: "2001:db8:1:2:3::4"}, "/v1/institutions/{id}", six, false},
		{exchange{method: "GET", target: "/secret-path?key=secret"}, "none", four, false},
		{exchange{method: "GET", target: goldenTargets()["rates"] + "&api_key=secret"}, "/v1/rates", four, false},
		{exchange{method: "SECRET", target: "/odd"}, "site", four, false},
		{exchange{method: "POST", target: codesPath, lines: []string{jsonLine}, body: `{"email":"secret@example.do"}`}, codesPath, four, false},
	} {
		records = nil
		a := g.send(t, c.exchange)
		if len(records) != 1 {
			t.Fatalf("%s %s: logged %d times", c.method, c.target, len(records))
		}
		got := records[0]
		if got.RequestID != a.header.Get(headerRequestID) || got.RequestID == "" || got.Status != a.status || got.Bytes != len(a.body) ||
			got.Route != c.route || got.Network != c.network || got.Keyed != c.keyed {
			t.Errorf("%s %s: %+v, the answer was %d with %d bytes", c.method, c.target, got, a.status, len(a.body))
		}
		text := strings.ToLower(fmt.Sprintf("%+v", got))
		if strings.Contains(text, "secret") || strings.Contains(text, "branch") || strings.Contains(text, peerDefault) {
			t.Errorf("%s tells too much", text)
		}
	}
}

// TestAccess_Failures logs a panic and what could not be read.
func TestAccess_Failures(t *testing.T) {
	records := make(chan AccessRecord, 10)
	s := serve(t, withLimits(func(c *Config) { c.AccessLog = func(a AccessRecord) { records <- a } }))
	conn, wire := s.dial(t)
	askOn(t, conn, wire, "/"+strings.Repeat("a", 9000))
	if a := <-records; a.Status != 431 || a.Route != "refused" || len(a.RequestID) != len(RequestID{}) || a.Duration < 0 {
		t.Errorf("what could not be read: %+v", a)
	}
	s.service.panics = "planted"
	conn, wire = s.dial(t)
	askOn(t, conn, wire, bestTarget)
	if a := <-records; a.Status != 500 || a.Route != "/v1/rates/best" || a.Network != "127.0.0.0/24" {
		t.Errorf("a panic: %+v", a)
	}
	if len(records) > 0 {
		t.Errorf("logged %+v", <-records)
	}
}

// TestAccess_Panic: the log has the id that the caller of a panicking request got, also where an answer with
// another id was made already.
func TestAccess_Panic(t *testing.T) {
	var records []AccessRecord
	g := newFixtureWithLimits(t, func(c *Config) { c.AccessLog = func(a AccessRecord) { records = append(records, a) } })
	plantPanics(g.server)
	for _, where := range []string{"before", "behind"} {
		a := g.get(t, bestTarget, plantHeader+": "+where)
		if last := records[len(records)-1]; last.RequestID != a.header.Get(headerRequestID) || last.RequestID == "" || last.Status != 500 {
			t.Errorf("a panic %s: the caller got the id %s, the log %+v", where, a.header.Get(headerRequestID), last)
		}
	}
}

type reportedHealth []engine.Condition

func (h reportedHealth) Conditions() []engine.Condition { return append([]engine.Condition(nil), h...) }

type readiness struct {
	Status     string
	Conditions []struct {
		Name, State string
		Since       *time.Time
		Detail      *string
	}
}

func (f *fixture) readiness(t *testing.T) (got answer, body readiness) {
	t.Helper()
	got = f.get(t, readyzPath)
	ok(t, json.Unmarshal(got.plain(t), &body))
	return got, body
}

// TestS15_Readiness: the worst condition is reported first. Liveness does not depend on any condition.
func TestS15_Readiness(t *testing.T) {
	well := engine.HealthyCondition("log")
	slow := engine.Condition{Name: "disk", State: "slow", Since: fakeNow(), Detail: `say "why"`}
	empty := engine.Condition{Name: "data", State: "empty", Down: true}
	for name, test := range map[string]struct {
		conditions reportedHealth
		want       string
		status     int
		first      string
	}{
		"only the server's": {nil, "ready", 200, "server"}, "all well": {reportedHealth{well}, "ready", 200, "log"},
		"one is bad": {reportedHealth{well, slow}, "degraded", 200, "disk"}, "one is down": {reportedHealth{well, slow, empty}, "unavailable", 503, "data"},
	} {
		f := newFixture(t, func(c *Config) { c.Health = test.conditions })
		got, body := f.readiness(t)
		if got.status != test.status || body.Status != test.want || body.Conditions[0].Name != test.first || len(body.Conditions) != len(test.conditions)+3 {
			t.Errorf("%s: %d, %+v", name, got.status, body)
		}
		if retry := got.header.Get("Retry-After"); (retry == readyRetry) != (test.status == 503) {
			t.Errorf("%s: Retry-After %q", name, retry)
		}
		f.service.panics = "planted"
		for _, path := range []string{livezPath, healthzPath} {
			if got := f.get(t, path); got.status != 200 || string(got.body) != liveBody {
				t.Errorf("%s, %s: %d %s", name, path, got.status, got.body)
			}
		}
	}
}

// TestS15_MethodsAndQueries: a query makes no difference, and no other method or path is answered. The headers are
// TestS10_Contract's.
func TestS15_MethodsAndQueries(t *testing.T) {
	g := newFixtureWithLimits(t, nil)
	for _, path := range []string{livezPath, healthzPath, readyzPath} {
		for _, method := range []string{"GET", "HEAD"} {
			if a := g.do(t, method, path+"?verbose=1&api_key=x"); a.status != 200 || a.limits() != "" || a.header.Get("Cache-Control") != noStore {
				t.Errorf("%s %s: %d %v", method, path, a.status, a.header)
			}
		}
		for _, method := range strings.Fields("POST PUT DELETE OPTIONS PATCH") {
			if got := g.do(t, method, path); got.code(t) != "405 method_not_allowed" || got.header.Get("Allow") != methodsHealth {
				t.Errorf("%s %s: %d, Allow %q", method, path, got.status, got.header.Get("Allow"))
			}
		}
		if got := g.get(t, path+"/"); got.status != 404 {
			t.Errorf("%s/: %d", path, got.status)
		}
	}
}

// TestS15_Load: refusals for load show at once, and stay for long enough not to flap; so does the end of a node.
func TestS15_Load(t *testing.T) {
	f := newFixtureWithLimits(t, nil)
	f.accounts.fault = fault(engine.CodeOverloaded, "a full mail queue", 0)
	if got := f.send(t, accountGood()["codes-post"]); got.status != 503 {
		t.Fatalf("status %d", got.status)
	}
	if got, _ := f.readiness(t); !strings.Contains(string(got.body), `"name":"load","state":"ok"`) {
		t.Errorf("a full mail queue is taken for load: %s", got.body)
	}
	f.service.fault = fault(engine.CodeOverloaded, "planted", 0)
	if got := f.get(t, "/v1/rates"); got.status != 503 {
		t.Fatalf("status %d", got.status)
	}
	for after, want := range map[time.Duration]string{0: "overloaded", 2 * time.Second: "overloaded", 4 * time.Second: "ok"} {
		f.clock.set(fakeNow().Add(after))
		if got, _ := f.readiness(t); !strings.Contains(string(got.body), `"name":"load","state":"`+want+`"`) {
			t.Errorf("after %s: %s", after, got.body)
		}
	}
	f.server.Drain()
	f.server.Drain()
	got, body := f.readiness(t)
	if got.status != 503 || body.Conditions[0].State != "draining" || body.Conditions[0].Since == nil {
		t.Errorf("%d, %+v", got.status, body)
	}
	if got := f.get(t, livezPath); got.status != 200 {
		t.Errorf("/livez: %d", got.status)
	}
}

// TestS15_Short: a shortage of descriptors shows when it is met, and lasts until one is to be had.
func TestS15_Short(t *testing.T) {
	now := fakeNow()
	s := &serverLoad{clock: func() time.Time { return now }, conns: new(conn.Counts), connsMax: 2}
	s.shortage.Report(now)
	if got := s.connectionsCondition().State; got != "short" {
		t.Errorf("%q", got)
	}
	now = now.Add(4 * time.Second)
	if got := s.connectionsCondition().State; got != "ok" {
		t.Errorf("after four seconds with descriptors to be had: %q", got)
	}
	if s.conns.Open.Store(2); s.connectionsCondition().State != "full" {
		t.Error("at the cap it is not full")
	}
}

// deprecationProblems tells what is wrong with the announcement on an answer; nil means none is due.
func deprecationProblems(a answer, due *account.KeyPolicy) (problems []string) {
	want := map[string]string{"Deprecation": "", "Sunset": "", "Link": ""}
	if due != nil {
		want["Deprecation"] = "@" + strconv.FormatInt(due.AnnouncedAt.Unix(), 10)
		want["Sunset"] = due.RequiredAt.UTC().Format(http.TimeFormat)
		want["Link"] = `<https://tasard.example/keys>; rel="deprecation", <https://tasard.example/keys>; rel="sunset"`
	}
	for name, value := range want {
		if got := strings.Join(a.header.Values(name), " | "); got != value {
			problems = append(problems, name+" is "+got+", want "+value)
		}
	}
	return problems
}

// TestK7_EveryAnswer: while the end is announced, each answer of each status says so; before and afterwards none does.
func TestK7_EveryAnswer(t *testing.T) {
	pending, past := keysRequiredIn(15*24*time.Hour), keysRequiredIn(-time.Nanosecond)
	for _, c := range everyStatus() {
		for _, due := range []*account.KeyPolicy{&pending, nil} {
			g := newFixtureWithLimits(t, nil)
			if c.arrange != nil {
				c.arrange(g)
			}
			g.admitter.transition = account.KeyPolicy{}
			if due != nil {
				g.admitter.transition = *due
			}
			a := g.send(t, c.exchange)
			for _, problem := range deprecationProblems(a, due) {
				t.Errorf("%s: %d: %s", c.name, a.status, problem)
			}
			g.admitter.transition = past
			for _, problem := range deprecationProblems(g.send(t, c.exchange), nil) {
				t.Errorf("%s, past: %s", c.name, problem)
			}
		}
	}
}

// TestK7_Instant: not a nanosecond earlier or later, without a restart.
func TestK7_Instant(t *testing.T) {
	g := newFixtureWithLimits(t, nil)
	at := fakeNow().Add(14 * 24 * time.Hour)
	check := func(when time.Time, status int, due *account.KeyPolicy) {
		t.Helper()
		g.clock.set(when)
		a := g.get(t, bestTarget)
		if a.status != status || len(deprecationProblems(a, due)) > 0 {
			t.Errorf("%v: %d, want %d; %v", when, a.status, status, deprecationProblems(a, due))
		}
	}
	check(fakeNow(), 200, nil)
	g.admitter.transition = account.KeyPolicy{AnnouncedAt: fakeNow(), RequiredAt: at, By: "operator"}
	pending := g.admitter.transition
	check(fakeNow(), 200, &pending)
	check(at.Add(-time.Nanosecond), 200, &pending)
	check(at, 401, nil)
	check(at.Add(time.Hour), 401, nil)
	check(at.Add(-time.Second), 200, &pending) // the clock is set back
	g.admitter.transition = account.KeyPolicy{}
	check(at.Add(-time.Second), 200, nil) // withdrawn
	g.admitter.transition = account.KeyPolicy{AnnouncedAt: fakeNow().Add(time.Hour), RequiredAt: at.Add(24 * time.Hour), By: "operator"}
	again := g.admitter.transition
	check(at, 200, &again)
}

// advancingAdmitter lets the instant pass between the moment the answer begins and the moment the admitter decides.
type advancingAdmitter struct {
	*fakeAdmitter
	clock *fakeClock
}

func (g advancingAdmitter) Admit(c account.Caller) (account.Admission, error) {
	g.clock.set(g.transition.RequiredAt)
	return g.fakeAdmitter.Admit(c)
}

// TestK7_NeverBoth: an answer that is caught by the instant is a 401 without an announcement.
func TestK7_NeverBoth(t *testing.T) {
	f := newFixture(t, nil)
	admitter := newFakeAdmitter(f.clock.now)
	admitter.transition = keysRequiredIn(time.Second)
	f.server.config.Admitter = advancingAdmitter{admitter, f.clock}
	a := f.get(t, bestTarget)
	if a.status != 401 || len(deprecationProblems(a, nil)) > 0 {
		t.Errorf("%d %v", a.status, a.header)
	}
}
