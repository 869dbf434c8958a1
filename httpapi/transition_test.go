package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// noticeProblems tells what is wrong with the announcement on an answer; nil means none is due.
func noticeProblems(a answer, due *account.Transition) (problems []string) {
	want := map[string]string{"Deprecation": "", "Sunset": "", "Link": ""}
	if due != nil {
		want["Deprecation"] = "@" + strconv.FormatInt(due.AnnouncedAt.Unix(), 10)
		want["Sunset"] = due.RequiredAt.UTC().Format(http.TimeFormat)
		want["Link"] = `<https://tasard.example/keys>; rel="deprecation", <https://tasard.example/keys#when>; rel="sunset"`
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
	pending, past := announced(15*24*time.Hour), announced(-time.Nanosecond)
	for _, c := range everyStatus() {
		for _, due := range []*account.Transition{&pending, nil} {
			g := newGated(t, nil)
			if c.arrange != nil {
				c.arrange(g)
			}
			g.gate.transition = account.Transition{}
			if due != nil {
				g.gate.transition = *due
			}
			a := g.send(t, c.exchange)
			for _, problem := range noticeProblems(a, due) {
				t.Errorf("%s: %d: %s", c.name, a.status, problem)
			}
			g.gate.transition = past
			for _, problem := range noticeProblems(g.send(t, c.exchange), nil) {
				t.Errorf("%s, past: %s", c.name, problem)
			}
		}
	}
}

// TestK7_Instant: not a nanosecond earlier or later, without a restart.
func TestK7_Instant(t *testing.T) {
	g := newGated(t, nil)
	at := fakeNow().Add(14 * 24 * time.Hour)
	check := func(when time.Time, status int, due *account.Transition) {
		t.Helper()
		g.clock.set(when)
		a := g.get(t, bestTarget)
		if a.status != status || len(noticeProblems(a, due)) > 0 {
			t.Errorf("%v: %d, want %d; %v", when, a.status, status, noticeProblems(a, due))
		}
	}
	check(fakeNow(), 200, nil)
	g.gate.transition = account.Transition{AnnouncedAt: fakeNow(), RequiredAt: at, By: "operator"}
	pending := g.gate.transition
	check(fakeNow(), 200, &pending)
	check(at.Add(-time.Nanosecond), 200, &pending)
	check(at, 401, nil)
	check(at.Add(time.Hour), 401, nil)
	check(at.Add(-time.Second), 200, &pending) // the clock is set back
	g.gate.transition = account.Transition{}
	check(at.Add(-time.Second), 200, nil) // withdrawn
	g.gate.transition = account.Transition{AnnouncedAt: fakeNow().Add(time.Hour), RequiredAt: at.Add(24 * time.Hour), By: "operator"}
	again := g.gate.transition
	check(at, 200, &again)
}

// turningGate lets the instant pass between the moment the answer begins and the moment the gate decides.
type turningGate struct {
	*fakeGate
	clock *fakeClock
}

func (g turningGate) Admit(c account.Caller) (account.Grant, error) {
	g.clock.set(g.transition.RequiredAt)
	return g.fakeGate.Admit(c)
}

// TestK7_NeverBoth: an answer that is caught by the instant is a 401 without an announcement.
func TestK7_NeverBoth(t *testing.T) {
	f := newFixture(t, nil)
	gate := newFakeGate(f.clock.now)
	gate.transition = announced(time.Second)
	f.server.config.Gate = turningGate{gate, f.clock}
	a := f.get(t, bestTarget)
	if a.status != 401 || len(noticeProblems(a, nil)) > 0 {
		t.Errorf("%d %v", a.status, a.header)
	}
}

// TestK7_Links: one link may be missing, or both.
func TestK7_Links(t *testing.T) {
	for want, links := range map[string][2]string{
		`<https://a.example>; rel="deprecation"`: {"https://a.example", ""},
		`<https://b.example>; rel="sunset"`:      {"", "https://b.example"},
		"":                                       {"", ""},
	} {
		g := newGated(t, func(c *Config) { c.DeprecationLink, c.SunsetLink = links[0], links[1] })
		g.gate.transition = announced(time.Hour)
		a := g.get(t, bestTarget)
		if got := strings.Join(a.header.Values("Link"), " | "); got != want || a.header.Get("Sunset") == "" {
			t.Errorf("%q: Link %q, Sunset %q", links, got, a.header.Get("Sunset"))
		}
	}
}
