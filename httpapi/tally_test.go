package httpapi

import (
	"bufio"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"pgregory.net/rapid"

	"github.com/tasard/tasard/engine"
)

// served is a server on a port of its own, until the test ends.
func served(t testing.TB, s *Server) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Shutdown(t.Context()), <-ended); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// wireClient asks over one connection after the other, and counts what it got as the server should.
type wireClient struct {
	t       *testing.T
	address string
	conn    net.Conn
	reader  *bufio.Reader
	got     map[RequestCount]uint64 // by what Count is not
}

// ask sends bytes and reads one answer.
func (c *wireClient) ask(route, method string, request []byte) (status int) {
	c.t.Helper()
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			c.t.Fatal(err)
		}
		c.conn, c.reader = conn, bufio.NewReader(conn)
	}
	if _, err := c.conn.Write(request); err != nil {
		c.t.Fatal(err)
	}
	a := parseAnswer(c.t, c.reader, method)
	if a.closes {
		c.close()
	}
	if !slices.Contains(countedMethods(), method) {
		method = "other"
	}
	status = a.status
	if !slices.Contains(countedStatuses(), status) {
		status = 0
	}
	c.got[RequestCount{Route: route, Method: method, Status: status}]++
	return a.status
}

func (c *wireClient) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// oddSite answers a status of nobody else's.
type oddSite struct{}

func (oddSite) Has(path string) bool { return path == "/" || path == "/odd" }

// ServeHTTP is http.Handler.
func (oddSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/odd" {
		w.WriteHeader(http.StatusTeapot)
	}
}

// tallied are requests of every route, most of them with an answer of their own.
func tallied() map[string][]exchange {
	key, session, json := bearer(testKey(1)), bearer(testSession(100)), "Content-Type: application/json"
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
			{method: "POST", target: "/v1/account/codes", lines: []string{json}, body: `{"email":"eva@example.do"}`},
			{method: "POST", target: "/v1/account/codes", lines: []string{json}, body: `{"email":"eva@example.do"}`},
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

// weathers are states of the node in which everything is asked.
func weathers() map[string]func(*gated) {
	return map[string]func(*gated){
		"well":       func(*gated) {},
		"no rates":   func(g *gated) { g.service.fault = &engine.Error{Code: engine.CodeDataUnavailable, Message: "m"} },
		"a panic":    func(g *gated) { g.service.panics = errors.New("planted") },
		"a day":      func(g *gated) { g.gate.allowance = engine.Allowance{Day: 1, Minute: 5} },
		"a minute":   func(g *gated) { g.gate.allowance = engine.Allowance{Day: 5, Minute: 1} },
		"keys":       func(g *gated) { g.gate.transition = announced(-time.Hour) },
		"gate":       func(g *gated) { g.gate.fault = &engine.Error{Code: engine.CodeOverloaded, Message: "m"} },
		"accounts":   func(g *gated) { g.accounts.fault = &engine.Error{Code: engine.CodeReadOnly, Message: "m"} },
		"limits off": func(g *gated) { g.gate.off = true },
	}
}

// TestTally_Exact asks every route in every weather over TCP and wants the counts of the server to be those of the client, to the last
// request, and each answer to be timed, errors and admissions to add up.
func TestTally_Exact(t *testing.T) {
	statuses := map[int]bool{}
	for name, change := range weathers() {
		t.Run(name, func(t *testing.T) {
			g := newGated(t, func(c *Config) { c.Site = oddSite{} })
			change(g)
			client := &wireClient{t: t, address: served(t, g.server), got: map[RequestCount]uint64{}}
			defer client.close()
			errors, unread := uint64(0), uint64(0)
			for route, exchanges := range tallied() {
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
			checkSums(t, &stats, total-unread, errors, g)
		})
	}
	for _, status := range []int{200, 201, 202, 204, 304, 400, 401, 404, 405, 413, 415, 429, 431, 500, 503, http.StatusTeapot} {
		if !statuses[status] {
			t.Errorf("no request was answered %d", status)
		}
	}
}

// checkSums holds what else is counted against the number of requests.
func checkSums(t *testing.T, stats *Stats, timed, errors uint64, g *gated) {
	t.Helper()
	times, coded, admitted, refused := uint64(0), uint64(0), uint64(0), uint64(0)
	for _, route := range stats.Times {
		for _, count := range route.Counts {
			times += count
		}
	}
	for _, e := range stats.Errors {
		coded += e.Count
	}
	for _, a := range stats.Admissions {
		if a.Outcome == outcomeAdmitted {
			admitted += a.Count
		} else {
			refused += a.Count
		}
	}
	if times != timed {
		t.Errorf("%d answers were timed of %d", times, timed)
	}
	if coded != errors {
		t.Errorf("%d errors by code, %d by status", coded, errors)
	}
	if want := uint64(len(g.gate.callers)); admitted+refused != want {
		t.Errorf("%d admitted and %d refused, the gate was asked %d times", admitted, refused, want)
	}
	if c := stats.Connections; c.Accepted == 0 || c.Most != connsDefault || c.Crowded+c.Spare+c.Short != 0 {
		t.Errorf("connections %+v", c)
	}
}

// TestTally_Admissions tells who was let in and why others were not.
func TestTally_Admissions(t *testing.T) {
	g := newGated(t, nil)
	g.gate.allowance = engine.Allowance{Day: 4, Minute: 2}
	best := goldenTargets()["best"]
	for range 3 {
		g.get(t, best, bearer(testKey(1)))
		g.get(t, best)
	}
	g.gate.allowance.Day = 2
	g.get(t, best)
	g.gate.transition = announced(-time.Hour)
	for _, line := range []string{"X-No: key", bearer("not-a-key"), bearer(testKey(8)), bearer(testKey(9))} {
		g.get(t, best, line)
	}
	g.gate.fault = &engine.Error{Code: engine.CodeDataUnavailable, Message: "m"}
	g.get(t, best, bearer(testKey(1)))
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

// TestTally_NobodyMakesNames: whatever is asked, what is counted has names of closed lists alone, and the tables do not grow.
func TestTally_NobodyMakesNames(t *testing.T) {
	g := newGated(t, func(c *Config) { c.Site = oddSite{} })
	cells := len(g.server.tally.shards[0].requests)
	asked := uint64(0)
	rapid.Check(t, func(r *rapid.T) {
		method := rapid.OneOf(rapid.SampledFrom([]string{"GET", "get", "G", "OPTIONS"}), rapid.StringMatching(`[!#$%&'*+.^_|~0-9A-Za-z-]{1,30}`)).Draw(r, "method")
		target := rapid.OneOf(rapid.SampledFrom([]string{"/v1/rates", "*", "//", "/v1/account/keys/x", "http://a/v1/convert"}), rapid.StringMatching(`/[!-~]{0,60}`)).Draw(r, "target")
		g.send(t, exchange{method: method, target: target})
		asked++
	})
	total := uint64(0)
	for _, c := range g.server.Stats().Requests {
		total += c.Count
		if !slices.Contains(rowNames(), c.Route) || !slices.Contains(countedMethods(), c.Method) || !slices.Contains(countedStatuses(), c.Status) {
			t.Errorf("somebody made the name %+v", c)
		}
	}
	if total != asked || len(g.server.tally.shards[0].requests) != cells {
		t.Errorf("%d requests counted of %d, in %d cells of %d", total, asked, len(g.server.tally.shards[0].requests), cells)
	}
}

// TestTally_Tables: each route, code and bound has its place.
func TestTally_Tables(t *testing.T) {
	names := rowNames()
	if len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Errorf("a route is counted twice: %q", names)
	}
	if fixed := []string{names[rowRefused], names[rowNone], names[rowAsterisk], names[rowSite]}; !slices.Equal(fixed, names[:rowsFixed]) || names[rowSite] != "site" || names[rowNone] != "none" {
		t.Errorf("rows without an operation: %q", fixed)
	}
	for _, code := range countedCodes() {
		if _, known := status(code); !known {
			t.Errorf("%s is counted and never answered", code)
		}
	}
	for _, outcome := range admissionOutcomes()[2:] {
		if !slices.Contains(countedCodes(), engine.Code(outcome)) {
			t.Errorf("%s is an outcome and no code", outcome)
		}
	}
	bounds := TimeBounds()
	for at, bound := range bounds {
		var d durations
		d.add(bound)
		d.add(bound + 1)
		if d.counts[at].Load() != 1 || d.counts[at+1].Load() != 1 || d.sum.Load() != int64(2*bound+1) {
			t.Errorf("%s is not the bound %d", bound, at)
		}
	}
	var d durations
	d.add(-time.Hour)
	if d.counts[0].Load() != 1 || d.sum.Load() != 0 {
		t.Error("a clock that was set back takes time away")
	}
	for number, method := range countedMethods() {
		if methodAt([]byte(method)) != number {
			t.Errorf("%s is counted as another method", method)
		}
	}
	tally := newTally(time.Second)
	for _, odd := range []int{-1, 0, 99, 299, 418, 600, 1 << 40} {
		if got := tally.cell(rowNone, 0, odd); got != int(rowNone)*tally.cells {
			t.Errorf("status %d is counted in cell %d", odd, got)
		}
	}
}

// TestTally_EveryCodeIsCounted holds the list against the code of the package that answers: a code that status knows and the list does
// not would be lost.
func TestTally_EveryCodeIsCounted(t *testing.T) {
	for _, name := range everyCode(t) {
		if _, known := status(name); known && !slices.Contains(countedCodes(), name) {
			t.Errorf("%s is answered and not counted", name)
		}
	}
}

// everyCode are the codes that the engine declares.
func everyCode(t *testing.T) []engine.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "engine", "service.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var codes []engine.Code
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Code") {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, engine.Code(text))
		return true
	})
	if len(codes) < 20 {
		t.Fatalf("found only the codes %q", codes)
	}
	return codes
}

// eventually waits for what another goroutine does.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	look, late := time.NewTicker(time.Millisecond), time.NewTimer(10*time.Second)
	defer look.Stop()
	defer late.Stop()
	for !done() {
		select {
		case <-look.C:
		case <-late.C:
			t.Fatal("it never came")
		}
	}
}

// TestTally_Connections counts those that are open, turned away and beyond the cap.
func TestTally_Connections(t *testing.T) {
	g := newGated(t, func(c *Config) { c.Limits = Limits{ConnsMax: 10, ConnsPerAddress: 2} })
	address := served(t, g.server)
	best := exchange{method: "GET", target: goldenTargets()["best"]}.bytes()
	var conns []net.Conn
	for range 2 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		if _, err := conn.Write(best); err != nil {
			t.Fatal(err)
		}
		parseAnswer(t, bufio.NewReader(conn), "GET")
	}
	third, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := third.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("a third connection of an address is served")
	}
	third.Close()
	if got, want := g.server.Stats().Connections, (ConnectionCounts{Open: 2, Most: 10, Accepted: 3, Crowded: 1}); got != want {
		t.Errorf("connections %+v, want %+v", got, want)
	}
	for _, conn := range conns {
		conn.Close()
	}
	eventually(t, func() bool { return g.server.Stats().Connections.Open == 0 })
}

// TestTally_Shed counts who was refused for load, by lane.
func TestTally_Shed(t *testing.T) {
	g := newGated(t, func(c *Config) { c.Limits = Limits{ConnsMax: 1, ConnsPerAddress: -1} })
	address := served(t, g.server)
	first := &wireClient{t: t, address: address, got: map[RequestCount]uint64{}}
	defer first.close()
	first.ask("/v1/rates/best", "GET", exchange{method: "GET", target: goldenTargets()["best"]}.bytes())
	beyond := &wireClient{t: t, address: address, got: map[RequestCount]uint64{}}
	defer beyond.close()
	if status := beyond.ask("refused", "GET", exchange{method: "GET", target: goldenTargets()["convert"]}.bytes()); status != 503 {
		t.Errorf("beyond the cap: %d", status)
	}
	stats := g.server.Stats()
	for _, shed := range stats.Shed {
		want := uint64(0)
		if shed.Lane == "anonymous_costly" && shed.Reason == "full" {
			want = 1
		}
		if shed.Count != want {
			t.Errorf("%+v, want %d", shed, want)
		}
	}
	if stats.Connections.Spare != 1 || !slices.Contains(stats.Requests, RequestCount{"refused", "GET", 503, 1}) {
		t.Errorf("%+v", stats)
	}
}

// TestTally_AllocatesNothing: counting, and a log of accesses that is off, cost no allocation.
func TestTally_AllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	tally := newTally(time.Second)
	var ctx fasthttp.RequestCtx
	a := &asked{conn: &slottedTCP{shard: tally.shard()}, row: rowSite}
	count := testing.AllocsPerRun(100, func() {
		tally.count(&ctx, a)
		tally.countAdmission(a, true, "")
		a.conn.times.add(time.Millisecond)
	})
	if count != 0 {
		t.Errorf("%v allocations", count)
	}
}

// BenchmarkTally is what counting costs a request.
func BenchmarkTally(b *testing.B) {
	tally := newTally(time.Second)
	b.RunParallel(func(p *testing.PB) {
		var ctx fasthttp.RequestCtx
		ctx.Request.Header.SetMethod("GET")
		a := &asked{conn: &slottedTCP{shard: tally.shard()}, row: rowSite}
		for p.Next() {
			tally.count(&ctx, a)
			a.conn.times.add(30 * time.Microsecond)
		}
	})
}

// TestAccess tells of an answer what is of use, and nothing of what was asked or of who did.
func TestAccess(t *testing.T) {
	var told []Access
	g := newGated(t, func(c *Config) { c.Access, c.Site = func(a Access) { told = append(told, a) }, oddSite{} })
	for _, c := range []struct {
		exchange
		route, network string
		keyed          bool
	}{
		{exchange{method: "GET", target: goldenTargets()["best"] + "&channel=branch", lines: []string{bearer(testKey(1))}}, "/v1/rates/best", "192.0.2.0/24", true},
		{exchange{method: "HEAD", target: goldenTargets()["institution"], peer: "2001:db8:1:2:3::4"}, "/v1/institutions/{id}", "2001:db8:1::/48", false},
		{exchange{method: "GET", target: "/secret-path?key=secret"}, "none", "192.0.2.0/24", false},
		{exchange{method: "GET", target: goldenTargets()["rates"] + "&api_key=secret"}, "/v1/rates", "192.0.2.0/24", false},
		{exchange{method: "SECRET", target: "/odd"}, "site", "192.0.2.0/24", false},
		{exchange{method: "POST", target: "/v1/account/codes", lines: []string{"Content-Type: application/json"}, body: `{"email":"secret@example.do"}`}, "/v1/account/codes", "192.0.2.0/24", false},
	} {
		told = nil
		a := g.send(t, c.exchange)
		if len(told) != 1 {
			t.Fatalf("%s %s: told %d times", c.method, c.target, len(told))
		}
		got := told[0]
		if got.RequestID != a.header.Get(headerRequestID) || got.RequestID == "" || got.Status != a.status || got.Bytes != len(a.body) ||
			got.Route != c.route || got.Network != c.network || got.Keyed != c.keyed {
			t.Errorf("%s %s: %+v, the answer was %d with %d bytes", c.method, c.target, got, a.status, len(a.body))
		}
		if text := strings.ToLower(fmt.Sprintf("%+v", got)); strings.Contains(text, "secret") || strings.Contains(text, "branch") || strings.Contains(text, "192.0.2.7") {
			t.Errorf("%s tells too much", text)
		}
	}
}

// TestAccess_From keeps good answers out of a log of errors, and tells of a panic and of what could not be read.
func TestAccess_From(t *testing.T) {
	told := make(chan Access, 10)
	g := newGated(t, func(c *Config) { c.Access, c.AccessFrom = func(a Access) { told <- a }, 400 })
	client := &wireClient{t: t, address: served(t, g.server), got: map[RequestCount]uint64{}}
	defer client.close()
	client.ask("", "GET", exchange{method: "GET", target: "/livez"}.bytes())
	client.ask("", "GET", exchange{method: "GET", target: "/" + strings.Repeat("a", 9000)}.bytes())
	if a := <-told; a.Status != 431 || a.Route != "refused" || len(a.RequestID) != requestIDBytes || a.Duration < 0 {
		t.Errorf("what could not be read: %+v", a)
	}
	g.service.panics = errors.New("planted")
	client.ask("", "GET", exchange{method: "GET", target: goldenTargets()["best"]}.bytes())
	if a := <-told; a.Status != 500 || a.Route != "/v1/rates/best" || a.Network != "127.0.0.0/24" {
		t.Errorf("a panic: %+v", a)
	}
	if len(told) > 0 {
		t.Errorf("told of %+v", <-told)
	}
}
