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
	missingRunsMin = 3                   // consecutive runs without an expected side before it is missing: a day
	forgottenRuns  = 64                  // runs without a side after which it is forgotten: three weeks
	frozenAfter    = 28 * 24 * time.Hour // time without any price change: longer than all holidays
	// baselineQuotesMax limits the size of a Baseline: a misread page may seem to list any number of institutions.
	baselineQuotesMax   = 512
	baselineKeyBytesMax = 2 * engine.InstitutionIDMax
)

// Baseline is the history of a source: its usual quotes, and the last change of its prices. A run is one reading of the
// source for a slot. A side (buy or sell) of a rate is expected after 21 runs with the side. An expected side is
// missing after three runs without the side, and forgotten after 64. A run without a side counts only if every page
// that may contain the currency was read, because failed pages are reported otherwise. The zero value is an empty
// history. A Baseline is immutable, and does not affect published rates.
type Baseline struct {
	Slot   time.Time                `json:"slot,omitzero"`  // slot of the newest run
	At     time.Time                `json:"at,omitzero"`    // time of the newest run
	Count  int                      `json:"count,omitzero"` // runs, at most forgottenRuns
	Quotes map[string]BaselineQuote `json:"quotes"`         // by the id of the rate, as in the API
}

// BaselineQuote is the history of one quote.
type BaselineQuote struct {
	Prices         uint64          `json:"prices"`         // hash of the newest prices, as written by the source
	UnchangedSince time.Time       `json:"unchangedSince"` // first reading of these prices, or the earlier end of their effective date
	Sides          [2]BaselineSide `json:"sides"`          // buy, sell
}

// BaselineSide counts the runs with one side of a quote.
type BaselineSide struct {
	Runs    int `json:"runs,omitempty"`    // runs with the side since it was last missing; at most forgottenRuns
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

// DecodeBaseline decodes a result of Encode. The empty text is the zero Baseline.
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

// baselineRun is the quotes read from a source for one slot. The sides of a quote may be in two observations.
type baselineRun struct {
	slot, at     time.Time
	observations []engine.Observation
	complete     func(currency string) bool // every page that may contain the currency was read
}

// after returns the Baseline after a run. A repeated slot changes nothing.
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

// UnchangedSince returns the last change of any price of the source. It is zero before the first run.
func (b Baseline) UnchangedSince() (newest time.Time) {
	for _, quote := range b.Quotes {
		if quote.UnchangedSince.After(newest) {
			newest = quote.UnchangedSince
		}
	}
	return newest
}

// Unchanged returns the time from the last change of any price to the newest run.
func (b Baseline) Unchanged() time.Duration { return b.At.Sub(b.UnchangedSince()) }

// FrozenLimit returns the time without a change after which a source is frozen.
func (b Baseline) FrozenLimit() time.Duration { return frozenAfter }

// Frozen reports whether, at the newest run, no price had changed for longer than FrozenLimit.
func (b Baseline) Frozen() bool { return len(b.Quotes) > 0 && b.Unchanged() > frozenAfter }

// Missing returns a sentence for each missing side, sorted.
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

// neverRead returns, after exactly missingRunsMin runs, the currencies without any quote. After more or fewer: none.
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
