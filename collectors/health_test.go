package collectors

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// TestHealth follows one source through its states: what operators see, and what the log says of it, once.
func TestHealth(t *testing.T) {
	inWorld(t, saturday(), func(t *testing.T, w *world) {
		d := usdSource("s", "popular")
		w.store.know(Daily().Last(w.now()), d)
		config := w.config(d)
		config.Spread, config.RetryAfter, config.RestAfter = -1, []time.Duration{}, 3
		n := w.run(config)
		if h := n.health("s"); h.State != Never || !h.NextRun.Equal(Daily().Next(w.start)) ||
			!h.LastSlot.Equal(Daily().Last(w.start)) || !h.LastTry.IsZero() {
			t.Errorf("at the start: %+v", h)
		}
		good := oneQuote + "\n+popular USD 58 59 2026-09-11\n#unknown label Peso"
		for i, step := range []struct {
			site  behaviour
			state State
			kind  source.FailureKind // of the last failure
			log   string             // what the log says of this slot, "" = nothing
		}{
			{steady(3*time.Second, good), OK, "", `level=INFO msg="source left something out" source=s note="unknown label Peso"`},
			{steady(0, good), OK, "", ""},
			{failing(source.Network), Failing, source.Network, `level=WARN msg="source gives less than it should" source=s state=failing`},
			{failing(source.Network), Failing, source.Network, ""},
			{failing(source.Blocked), Resting, source.Blocked, `level=WARN msg="source rests`},
			{failing(source.Blocked), Resting, source.Blocked, ""},
			{steady(0, good), OK, source.Blocked, `level=INFO msg="source is well again"`},
			{steady(0, oneQuote+"\nbhd USD -1 2"), Partial, source.Blocked, `state=partial`},
			{steady(0, oneQuote+"\nbhd USD -1 2"), Partial, source.Blocked, ""},
			{steady(0, "bhd USD -1 2"), Held, source.Implausible, `state=held failure="implausible: nothing of it was believed; the first: bhd USD: negative`},
			{steady(0, good), OK, source.Implausible, "well again"},
		} {
			w.sites["s"] = step.site
			logged := w.log.Len()
			slot := n.health("s").NextRun
			w.pass(slot.Add(time.Minute))
			h, said := n.health("s"), w.log.String()[logged:]
			if h.State != step.state || h.Failure.Kind != step.kind || h.Running != (time.Time{}) || !h.LastTry.Equal(slot) {
				t.Fatalf("step %d: %+v, want %s, %s", i, h, step.state, step.kind)
			}
			if (step.log == "") != (said == "") || !strings.Contains(said, step.log) {
				t.Errorf("step %d: the log says %q, want %q", i, said, step.log)
			}
			if (h.ConsecutiveFailures == 0) != (step.state == OK || step.state == Partial) || h.Runs != uint64(i+1) {
				t.Errorf("step %d: %d failed slots, %d runs", i, h.ConsecutiveFailures, h.Runs)
			}
			if i == 0 && (h.Duration != 3*time.Second || h.Tally != Tally{Read: 1, Accepted: 1, Past: 1} ||
				len(h.Notes) != 1 || len(h.Digests[0]) != 64) {
				t.Errorf("the first run: %+v", h)
			}
			if step.state == OK && (!h.LastSlot.Equal(slot) || h.LastSuccess.Before(slot)) {
				t.Errorf("step %d: last success %v, slot %v, want %v", i, h.LastSuccess, h.LastSlot, slot)
			}
		}
		h := n.health("s")
		if fmt.Sprint(h.Failures) != "map[blocked:2 implausible:1 network:2]" {
			t.Errorf("failures %v", h.Failures)
		}
		h.Failures[source.Network] = 99
		if n.health("s").Failures[source.Network] == 99 {
			t.Error("what Health gives is not a copy")
		}
	})
}

// TestHealth_Repeated wants an answer that the engine has had already to count as a success.
func TestHealth_Repeated(t *testing.T) {
	inWorld(t, saturday().Add(time.Hour), func(t *testing.T, w *world) {
		d := usdSource("s", "popular")
		w.sites["s"] = steady(0, oneQuote)
		w.store.know(Daily().Last(w.now()), d)
		config := w.config(d)
		config.Done = nil
		n := w.run(config)
		w.pass(w.start.Add(time.Minute))
		if h := n.health("s"); h.State != OK || h.Repeated != 1 || h.Accepted != 0 || h.LastSuccess.IsZero() || len(w.store.taken) != 0 {
			t.Errorf("%+v", h)
		}
	})
}

// TestFrozen calls a source frozen that says the same for a month, at once when its own date tells, and no other.
func TestFrozen(t *testing.T) {
	inWorld(t, saturday(), func(t *testing.T, w *world) {
		same, moving, dated := usdSource("same", "popular"), usdSource("moving", "bhd"), usdSource("dated", "bcrd")
		w.sites["same"] = steady(0, "bhd USD 58 59\npopular USD 58 59")
		w.sites["moving"] = func(context.Context, int) (string, error) {
			return fmt.Sprintf("bhd USD 58.%02d 59", w.now().Day()), nil
		}
		w.sites["dated"] = steady(0, "bcrd USD 54.10 54.60 2022-07-19")
		n := w.run(w.config(same, moving, dated))
		w.pass(w.start.Add(20 * 24 * time.Hour))
		w.sites["same"] = steady(0, "popular USD 58 59\nbhd USD 58 59") // another order is no other word
		if h := n.health("dated"); !h.Frozen || !h.UnchangedSince.Equal(santoDomingo(2022, 7, 19, 23, 59, 59)) {
			t.Errorf("a source with an old date: %+v", h)
		}
		if n.health("same").Frozen {
			t.Errorf("after twenty days: %+v", n.health("same"))
		}
		w.pass(w.start.Add(31 * 24 * time.Hour))
		if h := n.health("same"); !h.Frozen || h.UnchangedSince.Sub(w.start) > time.Minute {
			t.Errorf("after thirty-one days: %+v", h)
		}
		if h := n.health("moving"); h.Frozen || w.now().Sub(h.UnchangedSince) > 24*time.Hour {
			t.Errorf("a source that moves: %+v", h)
		}
		if told := strings.Count(w.log.String(), "says the same for long"); told != 2 {
			t.Errorf("told %d times, want once for each of two:\n%s", told, w.log)
		}
		w.sites["same"] = steady(0, "popular USD 58.10 59")
		w.pass(w.start.Add(32 * 24 * time.Hour))
		if h := n.health("same"); h.Frozen {
			t.Errorf("after it moved: %+v", h)
		}
	})
}

// TestNotesAreBounded wants a source that always complains of something new to fill neither the log nor the memory.
func TestNotesAreBounded(t *testing.T) {
	inWorld(t, saturday(), func(t *testing.T, w *world) {
		d := usdSource("s", "popular")
		count := 0
		w.sites["s"] = func(context.Context, int) (string, error) {
			text := oneQuote
			for range 100 {
				count++
				text += fmt.Sprintf("\n#note %d", count)
			}
			return text, nil
		}
		w.run(w.config(d))
		w.pass(w.start.Add(7 * 24 * time.Hour))
		if told := strings.Count(w.log.String(), "left something out"); told != notesToldMax {
			t.Errorf("%d notes in the log, want %d", told, notesToldMax)
		}
	})
}

func TestS15_SourcesFailing(t *testing.T) {
	now := time.Date(2026, 6, 17, 16, 0, 0, 0, time.UTC)
	c := New(Config{Clock: func() time.Time { return now }})
	for range 8 {
		c.runners = append(c.runners, &runner{health: Health{State: Never}})
	}
	set := func(states ...State) {
		for i, state := range states {
			c.runners[i].health.State = state
		}
		c.judge(now)
	}
	for _, test := range []struct {
		states []State
		want   string
	}{
		{nil, engine.ConditionOK},
		{[]State{OK, OK, OK, OK, OK, Partial, Disabled, Never}, engine.ConditionOK},
		{[]State{OK, OK, OK, OK, OK, Failing, Disabled, Never}, engine.ConditionOK}, // one of six is the usual
		{[]State{OK, OK, OK, OK, Held, Failing, Disabled, Never}, "some_failing"},
		{[]State{Failing, Held, Resting, Failing, Failing, Failing, Disabled, Never}, "all_failing"},
		{[]State{OK, Held, Resting, Failing, Failing, Failing, Disabled, Never}, "some_failing"},
		{[]State{OK, OK, OK, OK, OK, OK, OK, OK}, engine.ConditionOK},
	} {
		set(test.states...)
		if got := c.Condition(); got.Name != "sources" || got.State != test.want || got.Down {
			t.Errorf("%v: %+v, want %s", test.states, got, test.want)
		}
	}
}
