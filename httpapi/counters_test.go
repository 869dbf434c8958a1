package httpapi

import (
	"bufio"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// wireClient asks over one connection after the other, and counts what it got as the server should.
type wireClient struct {
	t       *testing.T
	address string
	conn    net.Conn
	reader  *bufio.Reader
	got     map[RequestCount]uint64 // by what Count is not
}

func (c *wireClient) ask(route, method string, request []byte) (status int) {
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
	if methods := methodLabels(); !slices.Contains(methods[:], method) {
		method = "other"
	}
	if status = a.status; !slices.Contains(statusLabels(), status) {
		status = 0
	}
	c.got[RequestCount{Route: route, Method: method, Status: status}]++
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
			client := &wireClient{t: t, address: g.address, got: map[RequestCount]uint64{}}
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
			stats := g.server.Stats()
			found, total := map[RequestCount]uint64{}, uint64(0)
			for _, r := range stats.Requests {
				total += r.Count
				count := r.Count
				r.Count = 0
				found[r] = count
			}
			if !maps.Equal(found, client.got) {
				t.Errorf("the server counted\n%v\nthe client\n%v", found, client.got)
			}
			checkSums(t, &stats, total-unread, errors, g.fixture)
		})
	}
	for _, status := range []int{200, 201, 202, 204, 304, 400, 401, 404, 405, 413, 415, 429, 431, 500, 503, http.StatusTeapot} {
		if !statuses[status] {
			t.Errorf("no request was answered %d", status)
		}
	}
}

// checkSums holds what else is counted against the number of requests.
func checkSums(t *testing.T, stats *Stats, timed, errors uint64, g *fixture) {
	t.Helper()
	times, coded, decided := uint64(0), uint64(0), uint64(0)
	for _, route := range stats.Durations {
		for _, count := range route.Counts {
			times += count
		}
	}
	for _, e := range stats.Errors {
		coded += e.Count
	}
	for _, a := range stats.Admissions {
		decided += a.Count
	}
	if want := uint64(len(g.admitter.callers)); times != timed || coded != errors || decided != want {
		t.Errorf("%d answers were timed of %d, %d of %d errors have a code, %d of %d admissions are counted", times, timed, coded, errors, decided, want)
	}
	if c := stats.Connections; c.Accepted == 0 || c.Max != connsDefault || c.OverClientLimit+c.Shortages != 0 {
		t.Errorf("connections %+v", c)
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
	got := map[string]uint64{}
	for _, a := range g.server.Stats().Admissions {
		if a.Count > 0 {
			got[a.Caller+" "+a.Outcome] = a.Count
		}
	}
	want := map[string]uint64{
		"key admitted": 2, "key rate_limited": 1, "anonymous admitted": 2, "anonymous rate_limited": 1, "anonymous quota_exceeded": 1,
		"anonymous missing_key": 1, "anonymous invalid_key": 1, "key revoked_key": 1, "key account_suspended": 1, "key unavailable": 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("admissions %v, want %v", got, want)
	}
}

// TestCounters_Tables: each route, method and bound has its place, and refusals of the admitter are codes.
func TestCounters_Tables(t *testing.T) {
	names := routeNames()
	if len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) || names[routeSite] != "site" || names[routeUnmatched] != "none" {
		t.Errorf("a route is counted twice, or in another's place: %q", names)
	}
	outcomes := admissionOutcomes()
	for _, outcome := range outcomes[2:] {
		if codeIndex(engine.Code(outcome)) < 0 {
			t.Errorf("%s is an outcome and no code", outcome)
		}
	}
	for at, bound := range DurationBounds() {
		var d durationHistogram
		d.Add(bound)
		d.Add(bound + 1)
		if d[at].Load() != 1 || d[at+1].Load() != 1 || d[durationBoundCount+1].Load() != uint64(2*bound+1) {
			t.Errorf("%s is not the bound %d", bound, at)
		}
	}
	var d durationHistogram
	if d.Add(-time.Hour); d[0].Load() != 1 || d[durationBoundCount+1].Load() != 0 {
		t.Error("a clock that was set back takes time away")
	}
	for number, method := range methodLabels() {
		if methodIndex([]byte(method)) != number {
			t.Errorf("%s is counted as another method", method)
		}
	}
	counters := newCounters(time.Second, false)
	for _, odd := range []int{-1, 0, 99, 299, 418, 600, 1 << 40} {
		if got := counters.cell(routeUnmatched, 0, odd); got != int(routeUnmatched)*counters.routeCells() {
			t.Errorf("status %d is counted in cell %d", odd, got)
		}
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
		s.clock.set(s.clock.now().Add(30 * time.Second))
	}
	if got, want := s.server.Stats().Connections, (ConnectionCounts{Open: 2, Max: 10, Accepted: 6, OverClientLimit: 4}); got != want {
		t.Errorf("connections %+v, want %+v", got, want)
	}
	eventually(t, func() bool { return strings.Count(log.text(), "\n") == 2 })
	for _, part := range []string{"--connections-per-address", "network=127.0.0.0/24 limit=2 refused=1\n", "refused=2\n"} {
		if !strings.Contains(log.text(), part) {
			t.Errorf("the log has no %q: %s", part, log.text())
		}
	}
	for _, conn := range conns {
		conn.Close()
	}
	eventually(t, func() bool { return s.server.Stats().Connections.Open == 0 })
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
		if got := s.server.Stats().Connections; got.IdleClosed != uint64(newcomers+1) {
			t.Errorf("newcomer %d: %+v", newcomers, got)
		}
	}
	write(t, served["busy"], " HTTP/1.1\r\nHost: a\r\n\r\n")
	if a := parseAnswer(t, bufio.NewReader(served["busy"]), "GET"); a.status != 200 {
		t.Errorf("the request that had begun: %d", a.status)
	}
	return order
}
