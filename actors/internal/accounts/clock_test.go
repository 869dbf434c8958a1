package accounts

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/engine"
)

// twoClocks are a wall clock that steps and a monotonic one that does not.
type twoClocks struct {
	wall      time.Time
	monotonic time.Duration
	clock     *monotonicClock
	said      bytes.Buffer
}

func newTwoClocks(wall, seen time.Time) *twoClocks {
	c := &twoClocks{wall: wall}
	c.clock = newMonotonicClock(func() time.Time { return c.wall }, func() time.Duration { return c.monotonic })
	c.clock.logger = slog.New(slog.NewTextHandler(&c.said, nil))
	c.clock.resume(time.Hour, seen)
	c.clock.detectsSteps.Store(true)
	return c
}

// pass lets time go by on both, with a look every half second as the writer does.
func (c *twoClocks) pass(span time.Duration) {
	for ; span > 0; span -= commitlog.CheckInterval {
		by := min(span, commitlog.CheckInterval)
		c.wall, c.monotonic = c.wall.Add(by), c.monotonic+by
		c.clock.Check()
	}
}

// day is the one that counts.
func (c *twoClocks) day() engine.Date {
	now := c.clock.Now()
	if now.Day != 0 {
		return now.Day
	}
	return engine.DateOf(now.Wall)
}

func (c *twoClocks) suspect() bool { return c.clock.Condition().State == "clock_suspect" }

func TestQ4Clock_StepsAreDoubtedForAMinute(t *testing.T) {
	for _, step := range []time.Duration{
		time.Second, 5 * time.Second, 61 * time.Second, time.Hour, 25 * time.Hour, 40 * 24 * time.Hour,
		-time.Second, -5 * time.Second, -61 * time.Second, -time.Hour, -25 * time.Hour, -40 * 24 * time.Hour,
	} {
		c := newTwoClocks(noon, time.Time{})
		c.pass(10 * time.Second)
		before := c.day()
		c.wall = c.wall.Add(step)
		doubted := step.Abs() > clockStepMin
		if c.day() != before || c.suspect() != doubted {
			t.Errorf("%s: at once %s after %s, suspect %t", step, c.day(), before, c.suspect())
		}
		c.pass(clockSuspectMax - time.Second)
		if c.day() != before || c.suspect() != doubted {
			t.Errorf("%s: after a minute but a second %s after %s, suspect %t", step, c.day(), before, c.suspect())
		}
		c.pass(2 * time.Second)
		if c.day() != engine.DateOf(c.wall) || c.suspect() {
			t.Errorf("%s: after a minute %s, want %s; suspect %t", step, c.day(), engine.DateOf(c.wall), c.suspect())
		}
		if got := strings.Count(c.said.String(), "clock_suspect"); doubted != (got == 1) {
			t.Errorf("%s: said %d times:\n%s", step, got, c.said.String())
		}
	}
}

func TestQ4Clock_AStepThatIsTakenBackOpensNoDay(t *testing.T) {
	c := newTwoClocks(noon, time.Time{})
	before := c.day()
	c.wall = c.wall.Add(25 * time.Hour)
	c.pass(30 * time.Second)
	if !c.suspect() || c.day() != before {
		t.Fatalf("suspect %t, day %s", c.suspect(), c.day())
	}
	c.wall = c.wall.Add(-25 * time.Hour)
	c.pass(time.Second)
	if c.suspect() || c.day() != before {
		t.Errorf("taken back: suspect %t, day %s", c.suspect(), c.day())
	}
}

// Midnight comes in time while a clock is doubted, by the time that is believed.
func TestQ4Clock_MidnightWhileDoubted(t *testing.T) {
	c := newTwoClocks(engine.NextMidnight(noon).Add(-30*time.Second), time.Time{})
	before := c.day()
	c.wall = c.wall.Add(-time.Hour)
	c.pass(29 * time.Second)
	if c.day() != before {
		t.Errorf("a second before midnight it is %s", c.day())
	}
	c.pass(2 * time.Second)
	if c.day() != before+1 {
		t.Errorf("a second after midnight it is %s, want %s", c.day(), before+1)
	}
}

// A clock that drifts, and is mended in small steps, is never doubted.
func TestQ4Clock_Drift(t *testing.T) {
	c := newTwoClocks(noon, time.Time{})
	for range 100 {
		c.wall = c.wall.Add(-4 * time.Second)
		c.pass(time.Second)
		if c.suspect() {
			t.Fatalf("suspect:\n%s", c.said.String())
		}
	}
}

func TestQ4Clock_SetBackBeforeTheStart(t *testing.T) {
	c := newTwoClocks(noon, noon.Add(time.Hour))
	if !c.suspect() {
		t.Error("an hour behind the log, and not suspect")
	}
	c.pass(clockSuspectMax + time.Second)
	if c.suspect() {
		t.Error("suspect after a minute")
	}
	if c = newTwoClocks(noon, noon.Add(-time.Hour)); c.suspect() {
		t.Error("ahead of the log is what a start always is")
	}
}
