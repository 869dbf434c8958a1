package collectors

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/engine"
)

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
		w.sink.markDone(Daily().Last(w.now()), good)
		n := w.run(w.config(good, off))
		w.sites["good"] = servePages(0, "popular USD -58 59\n#seen", "no rates")
		report, err := n.RunNow(t.Context(), "good")
		if err != nil || outcomes(&report) != "USD negative" || report.Failure == nil || report.Failure.Page != "eur" || len(report.Notes) != 1 {
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
		slot := Daily().Last(w.now())
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
