package engine

import (
	"slices"
	"time"
)

// DefaultRules returns limits that refuse every error in four years of real observations and at most one good value in
// a thousand.
func DefaultRules() Rules {
	return Rules{
		JumpPermille: 50, MedianPermille: 100, MedianQuotesMin: 5,
		LastGoodAgeMax: 7 * 24 * time.Hour, FutureDaysMax: 7, HistoryDays: 5 * 366,
	}
}

// CurrencyState is the mutable state of one currency: quotes, history and quarantine. Only its owner may call its
// methods; the values they return are immutable and may be read by any goroutine.
type CurrencyState struct {
	currency   string
	catalogue  *Catalogue
	rules      Rules
	store      *quoteStore
	snapshot   *CurrencySnapshot // nil after a change
	quotes     []*quote          // of the last snapshot, in list order
	days       []*day            // of the last snapshot, by date
	oldestFull Date              // from this day on the last snapshot has all rows
}

// NewCurrencyState returns an empty state.
func NewCurrencyState(currency string, catalogue *Catalogue, rules Rules) *CurrencyState {
	rules.HistoryDays = max(rules.HistoryDays, HistoryDaysMin)
	// Days ahead are added because the newest day may be one of them.
	store := newQuoteStore(rules.HistoryDays + rules.FutureDaysMax)
	return &CurrencyState{currency: currency, catalogue: catalogue, rules: rules, store: store}
}

// RestoreCurrencyState returns the state that was saved.
func RestoreCurrencyState(from SavedCurrency, catalogue *Catalogue, rules Rules) *CurrencyState {
	c := NewCurrencyState(from.Currency, catalogue, rules)
	for _, quote := range from.SourceQuotes {
		c.store.mutableQuote(quote.Key).accept(&quote)
	}
	c.store.restoreRows(from.History)
	for _, pending := range from.Pending {
		c.store.mutableQuote(pending.Key).addPending(pending)
	}
	for _, quarantined := range from.Quarantine {
		c.store.quarantine = append(c.store.quarantine, quarantined)
		c.store.quarantineIDs[quarantined.key()] = quarantined.ID
	}
	c.store.slots, c.store.slotsShared = from.Slots, true
	c.store.lastQuarantineID = from.LastQuarantineID
	return c
}

// Apply changes the state by a durable event. The result depends only on the event and the state.
func (c *CurrencyState) Apply(event Event) {
	c.store.apply(event)
	c.snapshot = nil
}

// Saved returns the state in the form that is written to snapshots and backups.
func (c *CurrencyState) Saved() SavedCurrency { return c.Snapshot().Saved() }

// Snapshot returns an immutable copy of the state, the same one until an event is applied.
func (c *CurrencyState) Snapshot() *CurrencySnapshot {
	if c.snapshot != nil {
		return c.snapshot
	}
	c.snapshotQuotes()
	c.snapshotDays()
	c.store.slotsShared = true
	quarantine := c.store.quarantine
	c.snapshot = &CurrencySnapshot{
		currency: c.currency, catalogue: c.catalogue, quotes: c.quotes, days: c.days,
		quarantine: quarantine[:len(quarantine):len(quarantine)], // the store appends behind it
		slots:      c.store.slots, lastQuarantineID: c.store.lastQuarantineID,
	}
	return c.snapshot
}

// View returns Snapshot().View(old, now), yielding in between.
func (c *CurrencyState) View(old *RankedView, now time.Time) *RankedView {
	return c.Snapshot().view(old, now, c.store.yielder)
}

// snapshotQuotes replaces the list of quotes by one with the quotes that have changed.
func (c *CurrencyState) snapshotQuotes() {
	s := c.store
	if len(s.changedQuotes) == 0 {
		return
	}
	list, known := slices.Clone(c.quotes), len(c.quotes)
	for _, q := range s.changedQuotes {
		s.yielder.step(1)
		q.shared = true
		if at, found := slices.BinarySearchFunc(list[:known], q.key, compareQuoteKey); found {
			list[at] = q
		} else {
			list = append(list, q)
		}
	}
	if len(list) > known {
		s.yielder.step(len(list))
		slices.SortFunc(list, func(a, b *quote) int { return a.key.Compare(b.key) })
	}
	c.quotes, s.changedQuotes = list, s.changedQuotes[:0]
}

func compareQuoteKey(q *quote, key QuoteKey) int { return q.key.Compare(key) }
