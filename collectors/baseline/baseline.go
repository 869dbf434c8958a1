package baseline

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
	keyFields   = 4
	keyBytesMax = 2 * engine.InstitutionIDMax

	day           = 24 * time.Hour
	changesMax    = 64 // spans between changes that are remembered
	changesMin    = 32 // with fewer, the limit is limitDaysMax
	limitDaysMin  = 7
	limitDaysMax  = 30
	limitMultiple = 2
	// quotesMax limits the size of a Baseline: a page that is read wrongly may seem to have any number of institutions.
	quotesMax = 512
	// pauseMax is the longest time between two runs after which a change still tells how long prices usually stay the
	// same. If the node was off for longer, the prices may have changed in between.
	pauseMax = 4 * day
)

// Baseline is what is known of a source. The zero value knows nothing. It is immutable.
type Baseline struct {
	Slot   time.Time     `json:"slot,omitzero"`  // slot of the newest run
	At     time.Time     `json:"at,omitzero"`    // time of the newest run
	Spans  []int         `json:"spans,omitzero"` // days from one change of a price to the next, oldest first
	Quotes map[Key]Quote `json:"quotes"`
}

// Key identifies a quote of a source.
type Key struct {
	Currency string
	engine.QuoteKey
}

// Quote is what is known of one quote.
type Quote struct {
	Prices         uint64    `json:"prices"`         // hash of the newest prices, as the source wrote them
	UnchangedSince time.Time `json:"unchangedSince"` // when the prices were first read, or the end of their date
	Sides          [2]Part   `json:"sides"`          // buy, sell
}

var sideNames = [2]string{"buy", "sell"}

// Run has the quotes that were read from a source in one slot. The sides of a quote may be in two observations.
type Run struct {
	Slot, At     time.Time
	Observations []engine.Observation
	Complete     func(currency string) bool // every page that may have the currency was read
}

// String returns the id of the rate, as in the API.
func (k Key) String() string { return k.ID(k.Currency) }

// valid reports whether UnmarshalText accepts the text of the key.
func (k Key) valid() bool {
	text := k.String()
	return len(text) <= keyBytesMax && utf8.ValidString(text) && strings.Count(text, ":") == keyFields-1
}

// MarshalText implements encoding.TextMarshaler.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Key) UnmarshalText(text []byte) error {
	fields := strings.Split(string(text), ":")
	if len(fields) != keyFields {
		return fmt.Errorf("a quote %q, want INSTITUTION:CURRENCY:CHANNEL:KIND", text)
	}
	*k = Key{fields[1], engine.QuoteKey{Institution: fields[0], Channel: engine.Channel(fields[2]), Kind: engine.Kind(fields[3])}}
	return nil
}

// Decode returns the Baseline that Encode has written. The empty text is the zero Baseline.
func Decode(text string) (Baseline, error) {
	var b Baseline
	if text == "" {
		return b, nil
	}
	if err := json.Unmarshal([]byte(text), &b); err != nil {
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

// After returns the Baseline after a run. A slot that has been learnt already is not learnt again.
func (b Baseline) After(run Run) Baseline {
	if !run.Slot.After(b.Slot) {
		return b
	}
	next := Baseline{Slot: run.Slot, At: run.At, Spans: b.Spans, Quotes: maps.Clone(b.Quotes)}
	if next.Quotes == nil {
		next.Quotes = map[Key]Quote{}
	}
	read := readingsOf(run.Observations)
	for key := range read {
		if _, known := next.Quotes[key]; !known && len(next.Quotes) < quotesMax && key.valid() {
			next.Quotes[key] = Quote{}
		}
	}
	for key, quote := range next.Quotes {
		quote = quote.after(read[key], run.At, run.Complete(key.Currency))
		next.Quotes[key] = quote
		if quote.Sides == ([2]Part{}) {
			delete(next.Quotes, key)
		}
	}
	next.learnSpan(&b)
	return next
}

// reading is one quote in a run.
type reading struct {
	sides [2]string
	date  engine.Date // of the prices, or zero
}

func readingsOf(observations []engine.Observation) map[Key]reading {
	all := map[Key]reading{}
	for i := range observations {
		o := &observations[i]
		key := Key{o.Currency, o.Key()}
		read := all[key]
		read.sides[0], read.sides[1] = cmp.Or(o.Buy, read.sides[0]), cmp.Or(o.Sell, read.sides[1])
		read.date = max(read.date, o.EffectiveDate)
		all[key] = read
	}
	return all
}

func (q Quote) after(read reading, at time.Time, complete bool) Quote {
	for side := range q.Sides {
		q.Sides[side] = q.Sides[side].after(read.sides[side] != "", complete)
	}
	prices := strings.Join(read.sides[:], "/")
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(prices)) // a hash returns no error
	if prices == "/" || hash.Sum64() == q.Prices {
		return q
	}
	q.Prices, q.UnchangedSince = hash.Sum64(), at
	if end := (read.date + 1).Start().Add(-time.Second).UTC(); !read.date.IsZero() && end.Before(at) {
		q.UnchangedSince = end
	}
	return q
}

// learnSpan adds the days between the last two changes of a price, if the last one was in the newest run.
func (b *Baseline) learnSpan(before *Baseline) {
	from, to := before.UnchangedSince(), b.UnchangedSince()
	if from.IsZero() || !to.After(from) || b.At.Sub(before.At) > pauseMax {
		return
	}
	spans := append(slices.Clone(b.Spans), int(to.Sub(from).Round(day)/day))
	b.Spans = spans[max(0, len(spans)-changesMax):]
}

// UnchangedSince returns when a price of the source last changed. It is zero before the first run.
func (b Baseline) UnchangedSince() time.Time {
	var newest time.Time
	for _, quote := range b.Quotes {
		if quote.UnchangedSince.After(newest) {
			newest = quote.UnchangedSince
		}
	}
	return newest
}

// ChangeLimit returns how long no price may change before the source is called frozen.
func (b Baseline) ChangeLimit() time.Duration {
	if len(b.Spans) < changesMin {
		return limitDaysMax * day
	}
	longest := slices.Sorted(slices.Values(b.Spans))
	days := limitMultiple * longest[len(longest)-2]
	return time.Duration(min(max(days, limitDaysMin), limitDaysMax)) * day
}

// Unchanged returns how long no price had changed at the newest run.
func (b Baseline) Unchanged() time.Duration { return b.At.Sub(b.UnchangedSince()) }

// Frozen reports whether no price had changed for longer than ChangeLimit at the newest run.
func (b Baseline) Frozen() bool { return b.Unchanged() > b.ChangeLimit() }

// Missing returns a sentence for each usual part that is missing, sorted.
func (b Baseline) Missing() []string {
	var missing []string
	for key, quote := range b.Quotes {
		for side, part := range quote.Sides {
			if part.Lost() {
				missing = append(missing, fmt.Sprintf("%s of %s missing for %d runs; it was there in %d of %d",
					sideNames[side], key, part.Missing, part.Count(), part.Runs))
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// Forgotten returns the parts that an earlier Baseline called usual and b has forgotten, sorted.
func (b Baseline) Forgotten(earlier Baseline) []string {
	var forgotten []string
	for key, quote := range earlier.Quotes {
		for side, part := range quote.Sides {
			if part.Usual() && b.Quotes[key].Sides[side].Runs == 0 {
				forgotten = append(forgotten, sideNames[side]+" of "+key.String())
			}
		}
	}
	slices.Sort(forgotten)
	return forgotten
}
