package collectors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// saturday is a quarter of an hour before the first slot of 2026-09-12.
func saturday() time.Time { return santoDomingo(2026, 9, 12, 7, 45, 0) }

const oneQuote = "popular USD 58.10 59.30"

func (w *testEnv) manySources(n int) []*source.Definition {
	var definitions []*source.Definition
	for i := range n {
		id := fmt.Sprintf("source-%02d", i)
		definitions = append(definitions, usdSource(id, "popular"))
		w.sites[id] = servePages(time.Duration(i)*time.Second, oneQuote)
	}
	return definitions
}

// TestT2_SimulatedWeeks: every slot is published once for each source, soon after the slot, and never all at once.
func TestT2_SimulatedWeeks(t *testing.T) {
	days := sweep(7, 21)
	inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
		definitions := w.manySources(12)
		w.sink.markDone(Daily.Last(w.now()), definitions...)
		n := w.run(w.config(definitions...))
		end := w.start.Add(time.Duration(days) * 24 * time.Hour)
		w.advanceTo(end)
		n.stop(w)
		instants := map[time.Time]int{}
		for _, d := range definitions {
			slot := Daily.Next(w.start)
			for _, p := range w.sink.acceptedFrom(d.ID) {
				if !p.slot.Equal(slot) || p.at.Before(slot) || p.at.After(slot.Add(jitterDefault+sourceTimeout)) || !p.complete {
					t.Fatalf("%v, want the slot of %v within %v", p, slot, jitterDefault)
				}
				instants[p.at]++
				slot = Daily.Next(slot)
			}
			if slot.Before(end) {
				t.Errorf("%s: ends before %v, want %d slots", d.ID, slot, 3*days)
			}
			if asked := len(w.requestTimes(d.ID)); asked != 3*days {
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
			inTestEnv(t, c.start, func(t *testing.T, w *testEnv) {
				definitions := w.manySources(3)
				config := w.config(definitions...)
				config.LastSlot = func(string) time.Time { return c.done }
				w.run(config)
				w.advanceTo(c.start.Add(time.Minute))
				late := !Daily.Last(c.start).Equal(c.done)
				for _, d := range definitions {
					if got := len(w.sink.acceptedFrom(d.ID)) == 1; got != late {
						t.Errorf("%s after a minute: made up %v, want %v", d.ID, got, late)
					}
				}
				w.advanceTo(santoDomingo(2026, 9, 14, 22, 0, 0))
				for _, d := range definitions {
					var slots []time.Time
					for _, p := range w.sink.acceptedFrom(d.ID) {
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

// TestD5_ClockSteps sets the clock: no slot is published twice, and of several missed slots only the newest.
func TestD5_ClockSteps(t *testing.T) {
	inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
		d := w.manySources(1)[0]
		w.sink.markDone(Daily.Last(w.now()), d)
		config := w.config(d)
		config.Jitter = -1
		w.run(config)
		slots := func() []string {
			var all []string
			for _, p := range w.sink.acceptedFrom(d.ID) {
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
		w.advanceTo(santoDomingo(2026, 9, 12, 8, 30, 0))
		expect("an ordinary slot", "0s")
		w.jumpClock(-time.Hour)
		w.advanceTo(santoDomingo(2026, 9, 12, 11, 0, 0))
		expect("the clock went back and passed the slot again", "0s")
		if asked := len(w.requestTimes(d.ID)); asked != 1 {
			t.Errorf("asked %d times for one slot", asked)
		}
		w.jumpClock(50 * time.Hour) // Monday 13:00: five slots later
		w.advanceTo(w.now().Add(2 * time.Minute))
		expect("the machine slept for two days", "0s", "52h0m0s")
		w.jumpClock(-72 * time.Hour)
		w.advanceTo(w.now().Add(24 * time.Hour))
		w.jumpClock(72 * time.Hour)
		w.advanceTo(w.now().Add(2 * time.Minute))
		for i, p := range w.sink.acceptedFrom(d.ID) {
			if i > 0 && !p.slot.After(w.sink.acceptedFrom(d.ID)[i-1].slot) {
				t.Errorf("a slot came twice or late: %v", slots())
			}
		}
	})
}

// TestSlotOfItsTime: after a long wait for the semaphore, a source is published for the slot in which it was fetched.
func TestSlotOfItsTime(t *testing.T) {
	inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
		definitions := append(w.manySources(1), usdSource("a", "bhd"), usdSource("b", "bhd"), usdSource("c", "bhd"))
		for _, d := range definitions[1:] {
			w.sites[d.ID] = hangUntilCancelled
		}
		config := w.config(definitions...)
		config.Schedule, config.Concurrency = Schedule(time.Minute), 1
		w.run(config)
		w.advanceTo(w.start.Add(4 * time.Hour))
		taken := w.sink.acceptedFrom("source-00")
		for _, p := range taken {
			if !Schedule(time.Minute).Last(p.at).Equal(p.slot) {
				t.Errorf("%v", p)
			}
		}
		if len(taken) < 20 {
			t.Errorf("only %d slots of 240", len(taken))
		}
	})
}

func TestRunEndsPromptly(t *testing.T) {
	inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
		definitions := append(w.manySources(3), usdSource("zz-hanging", "bhd"))
		w.sites["zz-hanging"] = hangUntilCancelled
		for _, until := range []time.Duration{0, 10 * time.Second, 20 * time.Minute} {
			config := w.config(definitions...)
			config.Concurrency = 1 // so that one waits for its place
			n := w.run(config)
			w.advanceTo(w.now().Add(until))
			if took := n.stop(w); took > 0 {
				t.Errorf("after %v: ended only after %v", until, took)
			}
			before := len(w.sink.accepted)
			w.advanceTo(w.now().Add(24 * time.Hour))
			if len(w.sink.accepted) != before {
				t.Error("something was collected after the end")
			}
		}
	})
}

func TestRun_TwiceAndDisabled(t *testing.T) {
	inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
		good := w.config(w.manySources(1)...)
		n := w.run(good)
		if err := n.Run(t.Context()); err == nil {
			t.Error("a collector ran twice")
		}
		n.stop(w)
		off := usdSource("off", "popular")
		off.Disabled = "its address is not known"
		n = w.run(w.config(off))
		w.advanceTo(w.now().Add(24 * time.Hour))
		if len(w.requestTimes("off")) != 0 || n.health("off").State != Disabled {
			t.Errorf("a disabled source: asked %v, %+v", w.requestTimes("off"), n.health("off"))
		}
	})
}

func TestCheck(t *testing.T) {
	inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
		d := twoPages("two", "popular")
		d.Disabled = "it is being tried"
		w.sites["two"] = func(_ context.Context, page int) (string, error) {
			if page == 1 {
				return "", source.Failf(source.Blocked, "a wall")
			}
			return oneQuote + "\n+popular USD 58 59 2026-09-11\n#unknown label Peso", nil
		}
		config := w.config(d, usdSource("hanging", "bhd"))
		config.Sink = nil
		w.sites["hanging"] = hangUntilCancelled
		c := New(config)
		c.parse = parseLines
		report, err := c.Check(t.Context(), "two")
		if err != nil || len(report.Observations) != 1 || report.HistoryDays != 1 || len(report.Notes) != 1 {
			t.Errorf("%+v, %v", report, err)
		}
		if report.Failure == nil || report.Failure.Kind != source.Blocked || report.Failure.Page != "eur" {
			t.Errorf("failure %v, want blocked of page eur", report.Failure)
		}
		if p := report.Pages; len(p) != 2 || len(p[0].Digest) != 64 || p[0].Failure != nil ||
			p[1].Digest != "" || p[1].Failure == nil {
			t.Errorf("pages %+v", p)
		}
		if h := c.Health()[1]; h.Runs != 0 || len(w.sink.accepted) > 0 {
			t.Errorf("a check left traces: %+v", h)
		}
		report, err = c.Check(t.Context(), "hanging")
		if err != nil || report.Failure == nil || report.Failure.Kind != source.Timeout || report.Duration != sourceTimeout {
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

// A source that moved between two addresses is read from the second one, and is not failing.
func TestCheck_SecondAddress(t *testing.T) {
	inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
		d := twoPages("two", "popular")
		d.Pages[1] = source.Page{Name: "new", InsteadOf: d.Pages[0].Name, Currency: "USD", Requests: []source.Request{{URL: "https://new.example/"}}}
		first := source.Failf(source.HTTPStatus, "404")
		w.sites["two"] = func(_ context.Context, page int) (string, error) {
			if page == 0 {
				return "", first
			}
			return oneQuote, nil
		}
		c := New(w.config(d))
		c.parse = parseLines
		report, err := c.Check(t.Context(), "two")
		if err != nil || report.Failure != nil || len(report.Observations) != 1 || len(report.Pages) != 1 || report.Pages[0].Digest == "" {
			t.Errorf("%+v, %v", report, err)
		}
		if !strings.Contains(strings.Join(report.Notes, ""), "404") {
			t.Errorf("notes %q do not say why", report.Notes)
		}
		if got := BuildRefreshes(d, []source.Result{{Observations: report.Observations}, {}}, w.now(), time.Time{}); !got[0].Complete {
			t.Error("the currency is not complete, as if the other address were needed too")
		}
		first = source.Failf(source.Blocked, "a wall")
		if report, _ := c.Check(t.Context(), "two"); report.Failure == nil || report.Failure.Kind != source.Blocked {
			t.Errorf("a blocked source was read at its other address: %+v", report)
		}
	})
}

// TestHealth follows one source through its states: what operators see, and what the log says of it, once.
func TestHealth(t *testing.T) {
	inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
		d := usdSource("s", "popular")
		w.sink.markDone(Daily.Last(w.now()), d)
		config := w.config(d)
		config.Jitter = -1
		n := w.run(config)
		if h := n.health("s"); h.State != Never || !h.NextRun.Equal(Daily.Next(w.start)) ||
			!h.LastSlot.Equal(Daily.Last(w.start)) || !h.LastTry.IsZero() {
			t.Errorf("at the start: %+v", h)
		}
		good := oneQuote + "\n+popular USD 58 59 2026-09-11\n#unknown label Peso"
		for i, step := range []struct {
			site  pageServer
			state State
			kind  source.FailureKind // of the last failure
			log   string             // what the log says of this slot, "" = nothing
		}{
			{servePages(3*time.Second, good), OK, "", ""},
			{servePages(0, good), OK, "", ""},
			{failWith(source.Network), Failing, source.Network, `level=WARN msg="source has a problem" source=s state=failing`},
			{failWith(source.Network), Failing, source.Network, ""},
			{servePages(0, good), OK, source.Network, `level=INFO msg="source recovered"`},
			{servePages(0, oneQuote+"\nbhd USD -1 2"), Partial, source.Network, `state=partial`},
			{servePages(0, oneQuote+"\nbhd USD -1 2"), Partial, source.Network, ""},
			{servePages(0, "bhd USD -1 2"), Quarantined, source.Implausible, `state=quarantined failure="implausible: the rules accepted none of its observations; the first: bhd USD: negative`},
			{servePages(0, good), OK, source.Implausible, "recovered"},
		} {
			w.sites["s"] = step.site
			logged := w.log.Len()
			slot := n.health("s").NextRun
			w.advanceTo(slot.Add(time.Minute))
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
			if i == 0 && (h.Duration != 3*time.Second || h.Counts != Counts{Read: 1, Accepted: 1} ||
				len(h.Notes) != 1 || len(h.Digests[0]) != 64) {
				t.Errorf("the first run: %+v", h)
			}
			if step.state == OK && (!h.LastSlot.Equal(slot) || h.LastSuccess.Before(slot)) {
				t.Errorf("step %d: last success %v, slot %v, want %v", i, h.LastSuccess, h.LastSlot, slot)
			}
		}
		h := n.health("s")
		if fmt.Sprint(h.Failures) != "map[implausible:1 network:2]" {
			t.Errorf("failures %v", h.Failures)
		}
		h.Failures[source.Network] = 99
		if n.health("s").Failures[source.Network] == 99 {
			t.Error("what Health gives is not a copy")
		}
	})
}

// TestHealth_FrozenIsLoggedOnce: a source with the same quote for weeks is logged once, and again only after a change.
func TestHealth_FrozenIsLoggedOnce(t *testing.T) {
	inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
		d := usdSource("s", "popular")
		w.run(w.config(d))
		for i, quote := range []string{oneQuote, "popular USD 58.20 59.30"} {
			w.sites["s"] = servePages(0, quote)
			for _, days := range []time.Duration{27, 2, 20} {
				w.advanceTo(w.now().Add(days * 24 * time.Hour))
				want := i + 1
				if days == 27 {
					want = i
				}
				if got := strings.Count(w.log.String(), "source has not changed for a long time"); got != want {
					t.Errorf("%s: logged %d times, want %d:\n%s", quote, got, want, w.log)
				}
			}
		}
	})
}

// TestHealth_Repeated wants an answer that the engine has had already to count as a success.
func TestHealth_Repeated(t *testing.T) {
	inTestEnv(t, saturday().Add(time.Hour), func(t *testing.T, w *testEnv) {
		d := usdSource("s", "popular")
		w.sites["s"] = servePages(0, oneQuote)
		w.sink.markDone(Daily.Last(w.now()), d)
		config := w.config(d)
		config.LastSlot = nil
		n := w.run(config)
		w.advanceTo(w.start.Add(time.Minute))
		if h := n.health("s"); h.State != OK || h.Repeated != 1 || h.Accepted != 0 || h.LastSuccess.IsZero() || len(w.sink.accepted) != 0 {
			t.Errorf("%+v", h)
		}
	})
}

func TestS15_SourcesFailing(t *testing.T) {
	now := time.Date(2026, 6, 17, 16, 0, 0, 0, time.UTC)
	c := New(Config{Clock: func() time.Time { return now }})
	for range 8 {
		c.runners = append(c.runners, &runner{health: Health{State: Never}})
	}
	for _, test := range []struct {
		confirmed int // of the others it is not known whether their definitions fit
		states    []State
		want      string
	}{
		{8, nil, engine.ConditionOK},
		{8, []State{OK, OK, OK, OK, OK, Partial, Disabled, Never}, engine.ConditionOK},
		{8, []State{OK, OK, OK, OK, OK, Failing, Disabled, Never}, engine.ConditionOK}, // one of six is the usual
		{8, []State{OK, OK, OK, OK, Quarantined, Failing, Disabled, Never}, "some_failing"},
		{8, []State{Failing, Quarantined, Failing, Failing, Failing, Failing, Disabled, Never}, "all_failing"},
		{8, []State{OK, Quarantined, Failing, Failing, Failing, Failing, Disabled, Never}, "some_failing"},
		{8, []State{OK, OK, OK, OK, OK, OK, OK, OK}, engine.ConditionOK},
		{4, []State{OK, OK, OK, OK, Failing, Failing, Failing, Failing}, engine.ConditionOK},
		{4, []State{OK, OK, OK, Failing, OK, OK, OK, OK}, "some_failing"},
		{4, []State{Failing, Failing, Failing, Failing, Failing, Failing, Failing, OK}, "some_failing"},
		{4, []State{Failing, Failing, Failing, Failing, Failing, Failing, Failing, Failing}, "all_failing"},
	} {
		for i, state := range test.states {
			c.runners[i].health.State, c.runners[i].health.Confirmed = state, i < test.confirmed
		}
		c.updateConditions(now)
		if got := c.Condition(); got.Name != "sources" || got.State != test.want || got.Down {
			t.Errorf("%v, %d confirmed: %+v, want %s", test.states, test.confirmed, got, test.want)
		}
	}
}

// A source that its evidence does not confirm is confirmed once this node has published its rates, also before a start.
func TestS15_AReadSourceIsConfirmed(t *testing.T) {
	inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
		broken := usdSource("broken", "bhd")
		sample := usdSource("sample", "caribe")
		sample.Evidence.Grade = source.Confirmed
		failing := failWith(source.Layout)
		w.sites["read"], w.sites["broken"], w.sites["sample"] = servePages(0, oneQuote), failing, failing
		check := func(n *runningCollector, when string) {
			t.Helper()
			for id, want := range map[string]bool{"read": true, "sample": true, "broken": false} {
				if n.health(id).Confirmed != want {
					t.Errorf("%s: %s is confirmed: %v", when, id, !want)
				}
			}
		}
		n := w.run(w.config(usdSource("read", "popular"), broken, sample))
		w.advanceTo(w.now().Add(24 * time.Hour))
		check(n, "after a day")
		n.stop(w)
		w.sites["read"] = failing
		n = w.run(w.config(usdSource("read", "popular"), broken, sample))
		w.advanceTo(w.now().Add(24 * time.Hour))
		check(n, "after a start")
	})
}

// outcomes has the quotes of a report with what became of them.
func outcomes(report *Report) string {
	var all []string
	for i := range report.Observations {
		all = append(all, strings.TrimSpace(report.Observations[i].Currency+" "+string(report.Refusals[i].Reason)))
	}
	return strings.Join(all, ", ")
}

func codeOf(err error) engine.Code {
	var coded *engine.Error
	if errors.As(err, &coded) {
		return coded.Code
	}
	return ""
}

// TestRunNow wants a source read and published between two slots, with what was refused, and the next slot as it would
// have been.
func TestRunNow(t *testing.T) {
	inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
		good, off := twoPages("good", "popular"), usdSource("off", "popular")
		off.Disabled = "blocked"
		w.sites["good"] = servePages(0, oneQuote, "popular EUR 70 71")
		w.sink.markDone(Daily.Last(w.now()), good)
		n := w.run(w.config(good, off))
		w.sites["good"] = servePages(0, "popular USD -58 59\n#seen", "no rates")
		report, err := n.RunNow(t.Context(), "good")
		if err != nil || outcomes(&report) != "USD negative" || report.Failure == nil || report.Failure.Page != "eur" || len(report.Notes) != 1 ||
			n.health("good").ConsecutiveFailures != 0 { // the slot did not fail
			t.Errorf("%+v, %v", report, err)
		}
		w.sites["good"] = servePages(0, oneQuote, "popular EUR 70 .")
		if report, err = n.RunNow(t.Context(), "good"); err != nil || outcomes(&report) != "USD, EUR" || report.Failure != nil {
			t.Errorf("%+v, %v", report, err)
		}
		if h := n.health("good"); h.State != OK || h.Accepted != 2 || h.Runs != 2 || !h.LastTry.Equal(w.start) {
			t.Errorf("%+v", h)
		}
		if slots := w.sink.acceptedFrom("good"); len(slots) != 0 || len(w.sink.accepted) < 2 {
			t.Errorf("published with a slot: %v; in all %v", slots, w.sink.accepted)
		}
		w.advanceTo(w.start.Add(time.Hour))
		if slots := w.sink.acceptedFrom("good"); len(slots) != 2 {
			t.Errorf("the next slot: %v", slots)
		}
		for id, want := range map[string]engine.Code{"none": engine.CodeNotFound, "off": engine.CodeInvalidParameters} {
			if _, err := n.RunNow(t.Context(), id); codeOf(err) != want {
				t.Errorf("%s: %v", id, err)
			}
		}
		n.stop(w)
		for _, c := range []*Collector{n.Collector, New(w.config(good))} {
			if _, err := c.RunNow(t.Context(), "good"); codeOf(err) != engine.CodeDataUnavailable {
				t.Errorf("a collector that does not run: %v", err)
			}
		}
	})
}

// TestRunNow_KeepsWhatIsLearnt wants a run after a restart, before the next slot, to know what the source gives.
func TestRunNow_KeepsWhatIsLearnt(t *testing.T) {
	inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
		d := usdSource("s", "popular")
		w.sites["s"] = servePages(0, oneQuote)
		slot := Daily.Last(w.now())
		w.sink.markDone(slot, d)
		known := Baseline{}
		for i := range 30 {
			o := engine.Observation{InstitutionID: "popular", Currency: "USD", Buy: fmt.Sprint(50 + i), Sell: "90"}
			at := slot.Add(time.Duration(i-29) * 8 * time.Hour)
			known = known.after(baselineRun{slot: at, at: at, observations: []engine.Observation{o}, complete: func(string) bool { return true }})
		}
		config := w.config(d)
		config.Baseline = func(string) string { return known.Encode() }
		n := w.run(config)
		if _, err := n.RunNow(t.Context(), "s"); err != nil {
			t.Error(err)
		}
		if learnt := n.health("s").Baseline; learnt.Encode() != known.Encode() {
			t.Errorf("%.300s, want %.300s", learnt.Encode(), known.Encode())
		}
	})
}

// TestArchive wants every document kept that was fetched, also those that could not be read.
func TestArchive(t *testing.T) {
	dir := t.TempDir()
	inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
		d := twoPages("s", "popular")
		w.sites["s"] = servePages(0, "popular USD 58 59", "panic")
		config := w.config(d)
		config.Archive = archive.New(archive.Config{Dir: dir, Clock: w.now})
		n := w.run(config)
		w.advanceTo(w.start.Add(time.Minute))
		n.stop(w)
		if _, err := n.Check(t.Context(), "s"); err != nil { // the same documents
			t.Error(err)
		}
		if stats := config.Archive.Stats(); stats.Documents != 2 || stats.Failures != 0 {
			t.Errorf("%+v, want 2 documents", stats)
		}
	})
}

// TestFailure_SaysWhereTheRatesAre: the failure of a page that has changed names the prices, their place, and what to
// type.
func TestFailure_SaysWhereTheRatesAre(t *testing.T) {
	const page = `<p class="tasas">Dólar compra 58.10 venta 60.10</p>`
	const sentence = "want; the rates seem to have moved: USD 58.10/60.10 at p.tasas; try: tasard sources suggest bdi-site"
	for name, c := range map[string]struct {
		source, body string
		kind         source.FailureKind
		want         string
	}{
		"changed":              {"bdi-site", page, source.Layout, sentence},
		"without a value":      {"bdi-site", page, source.Empty, sentence},
		"blocked":              {"bdi-site", page, source.Blocked, "want"},
		"several institutions": {"infodolar", page, source.Layout, "want"},
		"no prices":            {"bdi-site", "<p>Ha ocurrido un error</p>", source.Layout, "want"},
	} {
		d, _ := source.DefaultSet().Find(c.source)
		got := withSuggestion(source.Failf(c.kind, "want"), d, 0, &source.Document{Body: []byte(c.body)})
		if got.Detail != c.want || strings.Count(got.Detail, "try:") > 1 {
			t.Errorf("%s: %q, want %q", name, got.Detail, c.want)
		}
	}
}

// The real workbook of the central bank, edition of 2023: every day is read, and believed but for the bank's own
// errors. Without the bounds of the definition, decades of good values would be held back. The test is skipped where
// the workbook is absent.
func TestI3_TheWholeHistoryPasses(t *testing.T) {
	body, err := os.ReadFile(filepath.Join("..", "..", "shared", "data", "bcrd__TASA_DOLAR_REFERENCIA_MC__2023-04-20.xlsx"))
	if os.IsNotExist(err) {
		t.Skip("there is no workbook")
	}
	must(t, err)
	bounded, _ := source.DefaultSet().Find("bcrd-usd")
	unbounded := *bounded
	unbounded.ID = "bcrd-unbounded"
	answer, err := bounded.Parse(0, &source.Document{Body: body})
	must(t, err)
	show := func(o engine.Observation) string {
		return fmt.Sprint(o.Currency, " ", o.Buy, " ", o.Sell, " ", o.EffectiveDate)
	}
	if len(answer.History) != 8111 || len(answer.Observations) != 1 || len(answer.Notes) > 0 {
		t.Fatalf("%d days before the newest, %d rates, notes %q", len(answer.History), len(answer.Observations), answer.Notes)
	}
	if first, newest := show(answer.History[0].Observations[0]), show(answer.Observations[0]); first != "USD 11.2 11.5 1991-01-02" || newest != "USD 54.4749 54.6807 2023-04-20" {
		t.Errorf("from %s to %s", first, newest)
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, d := range []*source.Definition{bounded, &unbounded} {
		l, held := newTestEngine(t, engine.DefaultRules(), source.DefaultSet().Sources()...), []string{}
		for _, refresh := range BuildRefreshes(d, []source.Result{answer}, now, time.Time{}) {
			for _, refusal := range l.observe([]engine.Refresh{refresh}, now) {
				held = append(held, fmt.Sprint(refusal.Observation.EffectiveDate, " ", refusal.Reason))
			}
		}
		if d == bounded && !slices.Equal(held, []string{"1991-01-25 crossed"}) || d != bounded && len(held) < 1000 {
			t.Errorf("%s: %d values are held, the first of them %q", d.ID, len(held), held[:min(len(held), 3)])
		}
	}
}
