package baseline

import (
	"encoding/csv"
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

const realObservations = "../../../shared/data/observations.csv"

// realRuns are the runs of 16 real sources, by source. They are about a day apart, so that three runs are three days.
func realRuns(t *testing.T) map[string][]Run {
	t.Helper()
	file, err := os.Open(realObservations)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the real observations are not here: " + realObservations)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string][]Run{}
	for _, line := range lines[1:] {
		at, err := time.Parse(time.RFC3339, line[0])
		if err != nil {
			t.Fatal(err)
		}
		of := runs[line[7]]
		if n := len(of); n == 0 || !of[n-1].At.Equal(at) {
			of = append(of, Run{Slot: at, At: at, Complete: everything})
		}
		run := &of[len(of)-1]
		run.Observations = append(run.Observations, engine.Observation{
			InstitutionID: line[1], Currency: line[2], Channel: engine.Channel(line[3]), Kind: engine.Kind(line[4]), Buy: line[5], Sell: line[6],
		})
		runs[line[7]] = of
	}
	return runs
}

// learned returns the Baseline after each run.
func learned(runs []Run) []Baseline {
	all, b := make([]Baseline, len(runs)), Baseline{}
	for i := range runs {
		b = b.After(runs[i])
		all[i] = b
	}
	return all
}

// without returns a run without one side of a quote.
func (r Run) without(key Key, side int) Run {
	var rest []engine.Observation
	for _, o := range r.Observations {
		if (Key{o.Currency, o.Key()}) == key {
			*[]*string{&o.Buy, &o.Sell}[side] = ""
		}
		rest = append(rest, o)
	}
	r.Observations = rest
	return r
}

// TestRealObservations counts what the rules say of real observations. Nearly all of the alarms are real: an aggregator
// stopped listing an institution, a site stopped giving rates, prices stayed the same for weeks.
//
//	go test ./collectors/baseline -run TestRealObservations -v
func TestRealObservations(t *testing.T) {
	var parts, alarms, short, planted, detected int // missing sides
	var runsCount, frozen, ended, freezes int       // frozen sources
	var delays []int                                // days until a planted freeze was detected
	for source, runs := range realRuns(t) {
		all := learned(runs)
		runsCount += len(runs)
		for i := range all {
			for key, quote := range all[i].Quotes {
				for side, part := range quote.Sides {
					parts++
					switch {
					case part.Lost() && part.Missing == missingMin:
						if alarms++; returnsWithin(all[i:], key, side, 2) {
							short++
						}
					case i%30 == 0 && i+missingMin < len(runs) && part.Usual() && part.Missing == 0:
						planted++
						b := all[i]
						for _, run := range runs[i+1 : i+1+missingMin] {
							b = b.After(run.without(key, side))
						}
						if b.Quotes[key].Sides[side].Lost() {
							detected++
						}
					}
				}
			}
			if i > 0 && all[i].Frozen() && !all[i-1].Frozen() {
				frozen++
				t.Logf("%s frozen on %s: %v, limit %v", source, all[i].At.Format(time.DateOnly), all[i].Unchanged(), all[i].ChangeLimit())
			}
			if i > 0 && !all[i].Frozen() && all[i-1].Frozen() {
				ended++
			}
			if i%10 == 0 && i >= 60 && i+45 < len(runs) && runs[i+44].At.Sub(runs[i-40].At) < 120*day && !all[i].Frozen() {
				freezes++
				if delay, caught := frozenAfter(all[i], runs[i:i+45]); caught {
					delays = append(delays, delay)
				}
			}
		}
	}
	slices.Sort(delays)
	t.Logf("missing sides: %d alarms in %d checks, %d of them ended within two runs; planted losses: %d of %d detected at the third run",
		alarms, parts, short, detected, planted)
	t.Logf("frozen sources: %d alarms in %d runs, %d of them ended by a change; planted freezes: %d of %d detected within 45 runs, half of them within %d days",
		frozen, runsCount, ended, len(delays), freezes, delays[len(delays)/2])
	if detected != planted || planted < 500 || alarms > 50 || short > 8 {
		t.Error("the rule for missing sides is worse than before")
	}
	if frozen > 15 || len(delays)*100 < freezes*98 || freezes < 400 || delays[len(delays)/2] > 20 {
		t.Error("the rule for frozen sources is worse than before")
	}
}

// returnsWithin reports whether a side that is missing in the first Baseline is there again in one of the next ones.
func returnsWithin(all []Baseline, key Key, side, runs int) bool {
	for _, b := range all[:min(runs+1, len(all))] {
		if b.Quotes[key].Sides[side].Missing == 0 {
			return true
		}
	}
	return false
}

// frozenAfter returns after how many days a source is called frozen if the first of its runs is repeated at the times
// of all.
func frozenAfter(b Baseline, runs []Run) (days int, frozen bool) {
	for _, run := range runs[1:] {
		run.Observations = runs[0].Observations
		if b = b.After(run); b.Frozen() {
			return int(run.At.Sub(runs[0].At) / day), true
		}
	}
	return 0, false
}
