package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/conn"
)

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
	f := newFixture(t, nil)
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
	s.noteShortage()
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
