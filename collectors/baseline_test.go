package collectors

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

var baselineStart = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func everything(string) bool { return true }

// readLines makes observations from lines of institution, currency, buy and sell; a dot is a missing side.
func readLines(lines ...string) []engine.Observation {
	var all []engine.Observation
	for _, line := range lines {
		words := strings.Fields(line)
		all = append(all, engine.Observation{InstitutionID: words[0], Currency: words[1], Buy: strings.Trim(words[2], "."), Sell: strings.Trim(words[3], ".")})
	}
	return all
}

// nextRun learns one run, eight hours after the last one.
func nextRun(b Baseline, complete func(string) bool, lines ...string) Baseline {
	at := b.At.Add(8 * time.Hour)
	if b.At.IsZero() {
		at = baselineStart
	}
	return b.after(baselineRun{slot: at, at: at, observations: readLines(lines...), complete: complete})
}

// repeatRun repeats a run.
func repeatRun(b Baseline, runs int, lines ...string) Baseline {
	for range runs {
		b = nextRun(b, everything, lines...)
	}
	return b
}

// A source gives dollars and euros, both sides, and then loses parts in various ways.
func TestBaseline_Missing(t *testing.T) {
	dollars, euros, eurosBuy := "bhd USD 57 59", "bhd EUR 66 71", "bhd EUR 66 ."
	const euroSell = "sell of bhd:EUR:unspecified:commercial missing for %d runs"
	full := repeatRun(Baseline{}, 100, dollars, euros)
	noEuros := func(currency string) bool { return currency != "EUR" }
	for name, c := range map[string]struct {
		b    Baseline
		want []string
	}{
		"all there":                 {full, nil},
		"two runs":                  {repeatRun(full, 2, dollars, eurosBuy), nil},
		"one side for three runs":   {repeatRun(full, 3, dollars, eurosBuy), []string{fmt.Sprintf(euroSell, 3)}},
		"one side for long":         {repeatRun(full, 63, dollars, eurosBuy), []string{fmt.Sprintf(euroSell, 63)}},
		"forgotten":                 {repeatRun(full, 64, dollars, eurosBuy), nil},
		"a whole currency":          {repeatRun(full, 4, dollars), []string{"buy of bhd:EUR:unspecified:commercial missing for 4 runs", fmt.Sprintf(euroSell, 4)}},
		"it came back":              {repeatRun(repeatRun(full, 4, dollars), 1, dollars, euros), nil},
		"it comes and goes":         {repeatRun(repeatRun(repeatRun(full, 4, dollars), 1, dollars, euros), 3, dollars, eurosBuy), nil},
		"too new":                   {repeatRun(repeatRun(Baseline{}, 20, dollars, euros), 30, dollars, eurosBuy), nil},
		"just known":                {repeatRun(repeatRun(Baseline{}, 21, dollars, euros), 3, dollars, eurosBuy), []string{fmt.Sprintf(euroSell, 3)}},
		"a new side, and gone":      {repeatRun(nextRun(full, everything, dollars, euros, "bhd CHF 70 75"), 10, dollars, euros), nil},
		"a page that fails":         {nextRun(nextRun(nextRun(full, noEuros, dollars), noEuros, dollars), noEuros, dollars), nil},
		"sides in two observations": {repeatRun(repeatRun(full, 5, dollars, "bhd EUR 66 .", "bhd EUR . 71"), 5, dollars, "bhd EUR . 71", "bhd EUR 66 ."), nil},
		"nothing":                   {Baseline{}, nil},
	} {
		if got := c.b.Missing(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for runs, want := range []int{0, 0, 0, 1, 0} {
		if got := repeatRun(Baseline{}, runs, dollars).neverRead([]string{"EUR", "USD"}); len(got) != want || want == 1 && got[0] != "EUR" {
			t.Errorf("never read after %d runs: %q", runs, got)
		}
	}
}

// Neither many quotes nor strange ones make a Baseline large or unreadable, a slot counts once, and what older versions
// wrote is read.
func TestBaseline_Limits(t *testing.T) {
	var lines []string
	for i := range 2 * baselineQuotesMax {
		lines = append(lines, fmt.Sprintf("house-%d USD 57 59", i))
	}
	b := nextRun(Baseline{}, everything, "bhd USD 57 59", "a:b USD 57 59", strings.Repeat("x", 500)+" USD 57 59", "bad\xff USD 57 59")
	if len(b.Quotes) != 1 {
		t.Errorf("strange institutions are learnt: %v", b)
	}
	b = repeatRun(b, 70, lines...)
	if text := b.Encode(); len(b.Quotes) != baselineQuotesMax || len(text) > engine.BaselineBytesMax {
		t.Errorf("%d quotes in %d bytes", len(b.Quotes), len(text))
	}
	if again := b.after(baselineRun{slot: b.Slot, at: b.At.Add(time.Hour), complete: everything}); !reflect.DeepEqual(again, b) {
		t.Error("the same slot is learnt twice")
	}
	if back, err := DecodeBaseline(b.Encode()); err != nil || !reflect.DeepEqual(back, b) {
		t.Errorf("%v: another Baseline is read: %+v\nwant %+v", err, back, b)
	}
	for _, text := range []string{"{", "[]"} {
		if got, err := DecodeBaseline(text); err == nil || got.Quotes != nil {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	const older = `{"slot":"2026-06-01T12:00:00Z","at":"2026-06-01T12:00:01Z","spans":[1,3],"quotes":{"bhd:USD:unspecified:commercial":` +
		`{"prices":12345678901234567890,"unchangedSince":"2026-05-31T12:00:00Z","sides":[{"seen":18446744073709551615,"runs":64},{"seen":7,"runs":3,"missing":2}]}}}`
	if got, err := DecodeBaseline(older); err != nil || got.Quotes["bhd:USD:unspecified:commercial"].Sides != [2]BaselineSide{{64, 0}, {3, 2}} {
		t.Errorf("of an older version: %+v, %v", got, err)
	}
}

func TestBaseline_Frozen(t *testing.T) {
	b := repeatRun(Baseline{}, 85, "bhd USD 57 59")
	if b.Frozen() {
		t.Errorf("frozen after %v", b.Unchanged())
	}
	if b = repeatRun(b, 1, "bhd USD 57 59"); !b.Frozen() {
		t.Errorf("not frozen after %v", b.Unchanged())
	}
	if b = repeatRun(b, 1, "bhd USD 57 59.01"); b.Frozen() || b.Unchanged() != 0 {
		t.Errorf("frozen after a change, for %v", b.Unchanged())
	}
	old := readLines("bcrd USD 54 55") // a page whose own date is old is frozen at once
	old[0].EffectiveDate = engine.DateOf(baselineStart.AddDate(-4, 0, 0))
	b = Baseline{}.after(baselineRun{slot: baselineStart, at: baselineStart, complete: everything, observations: old})
	if !b.Frozen() || engine.DateOf(b.UnchangedSince()) != old[0].EffectiveDate || (Baseline{}).Frozen() {
		t.Errorf("%v since %v", b.Frozen(), b.UnchangedSince())
	}
}

// TestBaseline_Real counts what the rules say of real observations of 16 sources. They are about a day apart, so that
// three runs are three days. Nearly all of the alarms are real.
func TestBaseline_Real(t *testing.T) {
	lines := realLines(t)
	runs := map[string][]baselineRun{}
	for _, line := range lines[1:] {
		at, err := time.Parse(time.RFC3339, line[0])
		if err != nil {
			t.Fatal(err)
		}
		of := runs[line[7]]
		if n := len(of); n == 0 || !of[n-1].at.Equal(at) {
			of = append(of, baselineRun{slot: at, at: at, complete: everything})
		}
		run := &of[len(of)-1]
		run.observations = append(run.observations, engine.Observation{
			InstitutionID: line[1], Currency: line[2], Channel: engine.Channel(line[3]), Kind: engine.Kind(line[4]), Buy: line[5], Sell: line[6],
		})
		runs[line[7]] = of
	}
	var count, alarms, frozen, planted, detected int
	for source, of := range runs {
		b := Baseline{}
		for i, run := range of {
			before := b
			b = b.after(run)
			count++
			for _, quote := range b.Quotes {
				for _, side := range quote.Sides {
					if side.Known() && side.Missing == missingRunsMin {
						alarms++
					}
				}
			}
			if b.Frozen() && !before.Frozen() {
				frozen++
				t.Logf("%s frozen on %s: %v", source, b.At.Format(time.DateOnly), b.Unchanged())
			}
			if i%30 == 0 && len(b.Quotes) > 0 { // the source gives nothing from now on
				known := 0
				lost := b
				for _, quote := range b.Quotes {
					for _, side := range quote.Sides {
						if side.Known() && side.Missing == 0 {
							known++
						}
					}
				}
				for n := range missingRunsMin {
					at := run.at.Add(time.Duration(n+1) * time.Hour)
					lost = lost.after(baselineRun{slot: at, at: at, complete: everything})
				}
				planted += known
				detected += min(len(lost.Missing()), known)
			}
		}
	}
	t.Logf("%d runs: %d alarms for missing sides, %d for frozen sources; %d of %d planted losses detected at the third run", count, alarms, frozen, detected, planted)
	if alarms > 50 || frozen > 15 || planted < 500 || detected != planted {
		t.Error("the rules are worse than before")
	}
}

// realLines returns the lines of the real observations, with the heading.
func realLines(t *testing.T) [][]string {
	file, err := os.Open("../../shared/data/observations.csv")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the real observations are not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return lines
}
