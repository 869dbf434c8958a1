package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine/account"
)

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
