package collectors

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tasard/tasard/engine"
)

const (
	knownRunsMin   = 21                  // runs with a side before it is expected: a week at three slots a day
	missingRunsMin = 3                   // runs in a row without a known side, before it is called missing: a day
	forgottenRuns  = 64                  // runs without a side, after which it is expected no more: three weeks
	frozenAfter    = 28 * 24 * time.Hour // without a change of any price: longer than all holidays
	// baselineQuotesMax limits the size of a Baseline: a page that is read wrongly may seem to have any number of
	// institutions.
	baselineQuotesMax   = 512
	baselineKeyBytesMax = 2 * engine.InstitutionIDMax
)

// Baseline is what a source gave so far, and when its prices last changed. A side (buy or sell) of a rate that was read
// in at least 21 runs (one for each slot) is missing if the last three runs did not have it. A run counts only if every
// page that may have the currency was read; failed pages are another problem. After 64 runs without a side it is
// forgotten. The zero value knows nothing. A Baseline is immutable, and changes nothing that is published.
type Baseline struct {
	Slot   time.Time                `json:"slot,omitzero"`  // slot of the newest run
	At     time.Time                `json:"at,omitzero"`    // time of the newest run
	Count  int                      `json:"count,omitzero"` // runs, at most forgottenRuns
	Quotes map[string]BaselineQuote `json:"quotes"`         // by the id of the rate, as in the API
}

// BaselineQuote is what is known of one quote.
type BaselineQuote struct {
	Prices         uint64          `json:"prices"`         // hash of the newest prices, as the source wrote them
	UnchangedSince time.Time       `json:"unchangedSince"` // when the prices were first read, or the end of their date
	Sides          [2]BaselineSide `json:"sides"`          // buy, sell
}

// BaselineSide counts the runs with one side of a quote.
type BaselineSide struct {
	Runs    int `json:"runs,omitempty"`    // with the side, since it was last missing; at most forgottenRuns
	Missing int `json:"missing,omitempty"` // newest runs without the side
}

// Known reports whether the side is expected.
func (s BaselineSide) Known() bool { return s.Runs >= knownRunsMin }

func (s BaselineSide) after(read, complete bool) BaselineSide {
	switch {
	case read && s.Missing >= missingRunsMin:
		return BaselineSide{Runs: 1}
	case read:
		return BaselineSide{Runs: min(s.Runs+1, forgottenRuns)}
	case complete && s.Runs > 0:
		s.Missing++
	}
	if s.Missing >= forgottenRuns {
		return BaselineSide{}
	}
	return s
}

// DecodeBaseline returns the Baseline that Encode has written. The empty text is the zero Baseline.
func DecodeBaseline(text string) (b Baseline, err error) {
	if text != "" {
		err = json.Unmarshal([]byte(text), &b)
	}
	if err != nil {
		return Baseline{}, fmt.Errorf("read what was learnt about the source: %w", err)
	}
	return b, nil
}

// Encode returns the Baseline as text.
func (b Baseline) Encode() string {
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // impossible: texts, numbers and times of this millennium
	}
	return string(text)
}

// baselineRun has the quotes that were read from a source in one slot. The sides of a quote may be in two observations.
type baselineRun struct {
	slot, at     time.Time
	observations []engine.Observation
	complete     func(currency string) bool // every page that may have the currency was read
}

// after returns the Baseline after a run. A slot that has been learnt already is not learnt again.
func (b Baseline) after(run baselineRun) Baseline {
	if !run.slot.After(b.Slot) {
		return b
	}
	next := Baseline{Slot: run.slot, At: run.at, Count: min(b.Count+1, forgottenRuns), Quotes: map[string]BaselineQuote{}}
	maps.Copy(next.Quotes, b.Quotes)
	type reading struct {
		sides [2]string
		date  engine.Date // of the prices, or zero
	}
	read := map[string]reading{}
	for i := range run.observations {
		o := &run.observations[i]
		key := o.Key().ID(o.Currency)
		r := read[key]
		r.sides[0], r.sides[1], r.date = cmp.Or(o.Buy, r.sides[0]), cmp.Or(o.Sell, r.sides[1]), max(r.date, o.EffectiveDate)
		read[key] = r
		isValid := len(key) <= baselineKeyBytesMax && utf8.ValidString(key) && strings.Count(key, ":") == 3
		if _, known := next.Quotes[key]; !known && isValid && len(next.Quotes) < baselineQuotesMax {
			next.Quotes[key] = BaselineQuote{}
		}
	}
	for key, quote := range next.Quotes {
		r, complete := read[key], run.complete(strings.Split(key, ":")[1])
		for side := range quote.Sides {
			quote.Sides[side] = quote.Sides[side].after(r.sides[side] != "", complete)
		}
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(strings.Join(r.sides[:], "/"))) // a hash returns no error
		if r.sides != ([2]string{}) && hash.Sum64() != quote.Prices {
			quote.Prices, quote.UnchangedSince = hash.Sum64(), run.at
			if end := (r.date + 1).Start().Add(-time.Second).UTC(); !r.date.IsZero() && end.Before(run.at) {
				quote.UnchangedSince = end
			}
		}
		if next.Quotes[key] = quote; quote.Sides == ([2]BaselineSide{}) {
			delete(next.Quotes, key)
		}
	}
	return next
}

// UnchangedSince returns when a price of the source last changed. It is zero before the first run.
func (b Baseline) UnchangedSince() (newest time.Time) {
	for _, quote := range b.Quotes {
		if quote.UnchangedSince.After(newest) {
			newest = quote.UnchangedSince
		}
	}
	return newest
}

// Unchanged returns how long no price had changed at the newest run.
func (b Baseline) Unchanged() time.Duration { return b.At.Sub(b.UnchangedSince()) }

// FrozenLimit returns how long no price may change before the source is called frozen.
func (b Baseline) FrozenLimit() time.Duration { return frozenAfter }

// Frozen reports whether no price had changed for longer than FrozenLimit at the newest run.
func (b Baseline) Frozen() bool { return len(b.Quotes) > 0 && b.Unchanged() > frozenAfter }

// Missing returns a sentence for each side that the source gave before and does not give, sorted.
func (b Baseline) Missing() []string {
	var missing []string
	for key, quote := range b.Quotes {
		for i, side := range quote.Sides {
			if side.Known() && side.Missing >= missingRunsMin {
				missing = append(missing, fmt.Sprintf("%s of %s missing for %d runs", [2]string{"buy", "sell"}[i], key, side.Missing))
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// neverRead returns those of some currencies that the source never gave, once it has been read missingRunsMin times.
func (b Baseline) neverRead(currencies []string) (never []string) {
	if b.Count != missingRunsMin {
		return nil
	}
	for _, currency := range currencies {
		isOf := func(key string) bool { return strings.Split(key, ":")[1] == currency }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(b.Quotes)), isOf) {
			never = append(never, currency)
		}
	}
	return never
}
