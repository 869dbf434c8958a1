package httpapi

import (
	"fmt"
	"strings"
	"testing"
)

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
