package collectors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// saturday is a quarter of an hour before the first slot of 2026-09-12.
func saturday() time.Time { return santoDomingo(2026, 9, 12, 7, 45, 0) }

const oneQuote = "popular USD 58.10 59.30"

// manySources are n steady sources of the world.
func (w *world) manySources(n int) []*source.Definition {
	var definitions []*source.Definition
	for i := range n {
		id := fmt.Sprintf("source-%02d", i)
		definitions = append(definitions, usdSource(id, "popular"))
		w.sites[id] = steady(time.Duration(i)*time.Second, oneQuote)
	}
	return definitions
}

// TestT2_SimulatedWeeks collects for three weeks: every slot exactly once for each source, soon after it, and never all at once.
func TestT2_SimulatedWeeks(t *testing.T) {
	days := sweep(7, 21)
	inWorld(t, saturday(), func(t *testing.T, w *world) {
		definitions := w.manySources(12)
		w.store.know(Daily().Last(w.now()), definitions...)
		n := w.run(w.config(definitions...))
		end := w.start.Add(time.Duration(days) * 24 * time.Hour)
		w.pass(end)
		n.stop(w)
		instants := map[time.Time]int{}
		for _, d := range definitions {
			slot := Daily().Next(w.start)
			for _, p := range w.store.of(d.ID) {
				if !p.slot.Equal(slot) || p.at.Before(slot) || p.at.After(slot.Add(spreadDefault+budgetDefault)) || !p.complete {
					t.Fatalf("%v, want the slot of %v within %v", p, slot, spreadDefault)
				}
				instants[p.at]++
				slot = Daily().Next(slot)
			}
			if slot.Before(end) {
				t.Errorf("%s: ends before %v, want %d slots", d.ID, slot, 3*days)
			}
			if asked := len(w.asks(d.ID)); asked != 3*days {
				t.Errorf("%s: asked %d times in %d slots", d.ID, asked, 3*days)
			}
		}
		for at, count := range instants {
			if count > 2 {
				t.Errorf("%d sources at %v: that is no spread", count, at)
			}
		}
		if w.log.Len() > 0 {
			t.Errorf("weeks without an event left something in the log: %.500s", w.log)
		}
	})
}

// TestD5_CatchUpOnce starts nodes at odd moments.
func TestD5_CatchUpOnce(t *testing.T) {
	eight, twelve, five := santoDomingo(2026, 9, 14, 8, 0, 0), santoDomingo(2026, 9, 14, 12, 0, 0), santoDomingo(2026, 9, 14, 17, 0, 0)
	for name, c := range map[string]struct {
		start, done time.Time
		want        []time.Time // slots until the evening
	}{
		"nothing known":              {eight.Add(2 * time.Hour), time.Time{}, []time.Time{eight, twelve, five}},
		"the newest is done":         {eight.Add(2 * time.Hour), eight, []time.Time{twelve, five}},
		"one was missed":             {twelve.Add(time.Hour), eight, []time.Time{twelve, five}},
		"a minute ago":               {eight.Add(time.Minute), eight.Add(-15 * time.Hour), []time.Time{eight, twelve, five}},
		"a week was missed":          {twelve.Add(time.Hour), eight.AddDate(0, 0, -7), []time.Time{twelve, five}},
		"done by a clock gone wrong": {eight.Add(2 * time.Hour), eight.AddDate(10, 0, 0), []time.Time{eight, twelve, five}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, c.start, func(t *testing.T, w *world) {
				definitions := w.manySources(3)
				config := w.config(definitions...)
				config.Done = func(string) time.Time { return c.done }
				w.run(config)
				w.pass(c.start.Add(time.Minute))
				late := !Daily().Last(c.start).Equal(c.done)
				for _, d := range definitions {
					if got := len(w.store.of(d.ID)) == 1; got != late {
						t.Errorf("%s after a minute: made up %v, want %v", d.ID, got, late)
					}
				}
				w.pass(santoDomingo(2026, 9, 14, 22, 0, 0))
				for _, d := range definitions {
					var slots []time.Time
					for _, p := range w.store.of(d.ID) {
						slots = append(slots, p.slot)
					}
					if !slices.EqualFunc(slots, c.want, time.Time.Equal) {
						t.Errorf("%s: slots %v, want %v", d.ID, slots, c.want)
					}
				}
			})
		})
	}
}

// TestD5_ClockSteps sets the clock: no slot is done twice, and of those that a sleep missed only the newest is made up for.
func TestD5_ClockSteps(t *testing.T) {
	inWorld(t, saturday(), func(t *testing.T, w *world) {
		d := w.manySources(1)[0]
		w.store.know(Daily().Last(w.now()), d)
		config := w.config(d)
		config.Spread = -1
		w.run(config)
		slots := func() []string {
			var all []string
			for _, p := range w.store.of(d.ID) {
				all = append(all, p.slot.Sub(w.start.Add(15*time.Minute)).String())
			}
			return all
		}
		expect := func(when string, want ...string) {
			t.Helper()
			if got := slots(); !slices.Equal(got, want) {
				t.Fatalf("%s: slots %v, want %v", when, got, want)
			}
		}
		w.pass(santoDomingo(2026, 9, 12, 8, 30, 0))
		expect("an ordinary slot", "0s")
		w.set(-time.Hour)
		w.pass(santoDomingo(2026, 9, 12, 11, 0, 0))
		expect("the clock went back and passed the slot again", "0s")
		if asked := len(w.asks(d.ID)); asked != 1 {
			t.Errorf("asked %d times for one slot", asked)
		}
		w.set(50 * time.Hour) // Monday 13:00: five slots later
		w.pass(w.now().Add(2 * time.Minute))
		expect("the machine slept for two days", "0s", "52h0m0s")
		w.set(-72 * time.Hour)
		w.pass(w.now().Add(24 * time.Hour))
		w.set(72 * time.Hour)
		w.pass(w.now().Add(2 * time.Minute))
		for i, p := range w.store.of(d.ID) {
			if i > 0 && !p.slot.After(w.store.of(d.ID)[i-1].slot) {
				t.Errorf("a slot came twice or late: %v", slots())
			}
		}
	})
}

// TestSlotOfItsTime: what a source says after a long wait counts for the slot in which it was asked, never for an older one.
func TestSlotOfItsTime(t *testing.T) {
	inWorld(t, saturday(), func(t *testing.T, w *world) {
		definitions := append(w.manySources(1), usdSource("a", "bhd"), usdSource("b", "bhd"), usdSource("c", "bhd"))
		for _, d := range definitions[1:] {
			w.sites[d.ID] = hanging
		}
		config := w.config(definitions...)
		config.Schedule, config.Concurrency, config.RestAfter = Every(time.Minute), 1, 1000
		w.run(config)
		w.pass(w.start.Add(4 * time.Hour))
		taken := w.store.of("source-00")
		for _, p := range taken {
			if !Every(time.Minute).Last(p.at).Equal(p.slot) {
				t.Errorf("%v", p)
			}
		}
		if len(taken) < 20 {
			t.Errorf("only %d slots of 240", len(taken))
		}
	})
}

// TestRunEndsPromptly wants a collector to end at once, whatever it is doing.
func TestRunEndsPromptly(t *testing.T) {
	inWorld(t, saturday(), func(t *testing.T, w *world) {
		definitions := append(w.manySources(3), usdSource("zz-hanging", "bhd"))
		w.sites["zz-hanging"] = hanging
		for _, until := range []time.Duration{0, 10 * time.Second, 20 * time.Minute} {
			config := w.config(definitions...)
			config.Concurrency = 1 // so that one waits for its place
			n := w.run(config)
			w.pass(w.now().Add(until))
			if took := n.stop(w); took > 0 {
				t.Errorf("after %v: ended only after %v", until, took)
			}
			before := len(w.store.taken)
			w.pass(w.now().Add(24 * time.Hour))
			if len(w.store.taken) != before {
				t.Error("something was collected after the end")
			}
		}
	})
}

func TestRun_WhatIsWrong(t *testing.T) {
	inWorld(t, saturday(), func(t *testing.T, w *world) {
		good := w.config(w.manySources(1)...)
		for name, break_ := range map[string]func(*Config){
			"Fetcher":    func(c *Config) { c.Fetcher = nil },
			"Sink":       func(c *Config) { c.Sink = nil },
			"Clock":      func(c *Config) { c.Clock = nil },
			"negative":   func(c *Config) { c.Budget = -1 },
			`"source-00`: func(c *Config) { c.Definitions = append(c.Definitions, c.Definitions[0]) },
		} {
			config := good
			break_(&config)
			if err := New(config).Run(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
		n := w.run(good)
		if err := n.Run(t.Context()); err == nil {
			t.Error("a collector ran twice")
		}
		n.stop(w)
		off := usdSource("off", "popular")
		off.Disabled = "nobody knows its address"
		n = w.run(w.config(off))
		w.pass(w.now().Add(24 * time.Hour))
		if len(w.asks("off")) != 0 || n.health("off").State != Disabled || n.health("off").Disabled == "" {
			t.Errorf("a disabled source: asked %v, %+v", w.asks("off"), n.health("off"))
		}
	})
}

// TestCheck asks once and stores nothing.
func TestCheck(t *testing.T) {
	inWorld(t, saturday(), func(t *testing.T, w *world) {
		d := twoPages("two", "popular")
		d.Disabled = "it is being tried"
		w.sites["two"] = func(_ context.Context, page int) (string, error) {
			if page == 1 {
				return "", source.Fail(source.Blocked, "a wall")
			}
			return oneQuote + "\n+popular USD 58 59 2026-09-11\n#unknown label Peso", nil
		}
		config := w.config(d, usdSource("hanging", "bhd"))
		config.Sink = nil
		w.sites["hanging"] = hanging
		c := New(config)
		c.parse = parseLines
		report, err := c.Check(t.Context(), "two")
		if err != nil || len(report.Observations) != 1 || report.HistoryDays != 1 || len(report.Notes) != 1 || report.Disabled == "" {
			t.Errorf("%+v, %v", report, err)
		}
		if report.Failure == nil || report.Failure.Kind != source.Blocked || report.Failure.Page != "eur" {
			t.Errorf("failure %v, want blocked of page eur", report.Failure)
		}
		if p := report.Pages; len(p) != 2 || len(p[0].Digest) != 64 || p[0].Bytes == 0 || p[0].Failure != nil ||
			p[1].Digest != "" || p[1].Failure == nil {
			t.Errorf("pages %+v", p)
		}
		if h := c.Health()[1]; h.Runs != 0 || len(w.store.taken) > 0 {
			t.Errorf("a check left traces: %+v", h)
		}
		report, err = c.Check(t.Context(), "hanging")
		if err != nil || report.Failure == nil || report.Failure.Kind != source.Timeout || report.Duration != budgetDefault {
			t.Errorf("%+v, %v; want a timeout after the budget", report, err)
		}
		if _, err := c.Check(t.Context(), "three"); err == nil || !strings.Contains(err.Error(), `"three"`) {
			t.Errorf("an unknown source: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			cancel()
		}()
		if _, err := c.Check(ctx, "hanging"); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
	})
}
