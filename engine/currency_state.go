package engine

import (
	"slices"
	"time"
)

// DefaultRules returns the default limits for accepting observations. In a test with four years of real observations
// they refused every wrong value and at most one good value in a thousand.
func DefaultRules() Rules {
	return Rules{
		JumpPermille: 50, MedianPermille: 100, MedianQuotesMin: 3, ReferencePermille: 300,
		LastGoodAgeMax: 7 * 24 * time.Hour, FutureDaysMax: 7, HistoryDays: 5 * 366,
	}
}

// CurrencyState is the mutable state of one currency: quotes, history and quarantine (refused observations). Its
// methods must not be called concurrently. The values that they return are immutable, so any goroutine may read them.
type CurrencyState struct {
	currency   string
	catalogue  *Catalogue
	rules      Rules
	store      *quoteStore
	snapshot   *CurrencySnapshot // nil after a change
	quotes     []*quote          // quotes of the newest CurrencySnapshot, sorted by key
	days       []*day            // days of the newest CurrencySnapshot, sorted by date
	oldestFull Date              // first day whose commercial rows are in the newest CurrencySnapshot
}

// NewCurrencyState returns an empty state.
func NewCurrencyState(currency string, catalogue *Catalogue, rules Rules) *CurrencyState {
	rules.HistoryDays = max(rules.HistoryDays, HistoryDaysMin)
	// The store keeps history up to its newest day, which may be FutureDaysMax days in the future.
	store := newQuoteStore(rules.HistoryDays + rules.FutureDaysMax)
	return &CurrencyState{currency: currency, catalogue: catalogue, rules: rules, store: store}
}

// RestoreCurrencyState returns a state equal to the saved one.
func RestoreCurrencyState(saved SavedCurrency, catalogue *Catalogue, rules Rules) *CurrencyState {
	c := NewCurrencyState(saved.Currency, catalogue, rules)
	for _, quote := range saved.SourceQuotes {
		quote.PublishedAt = pastOnly(quote.PublishedAt, quote.LastCheckedAt)
		c.store.mutableQuote(quote.Key).accept(&quote)
		c.store.quotesOf[quote.SourceID]++
	}
	c.store.restoreRows(saved.History)
	for _, pending := range saved.Pending {
		if pending.Sightings == 0 { // of an earlier version
			pending.Since, pending.Sightings = pending.ObservedAt, 1
		}
		c.store.mutableQuote(pending.Key).addPending(pending)
	}
	for _, quarantined := range saved.Quarantine {
		c.store.quarantine = append(c.store.quarantine, quarantined)
		c.store.quarantineIDs[quarantined.key()] = quarantined.ID
	}
	c.store.slots, c.store.slotsShared = saved.Slots, true
	c.store.lastQuarantineID = saved.LastQuarantineID
	return c
}

// Apply changes the state by a durable event. The result depends only on the event and the state.
func (c *CurrencyState) Apply(event Event) {
	c.store.apply(event)
	c.snapshot = nil
}

// Saved returns the state in the form that is written to backups and to snapshots of the log.
func (c *CurrencyState) Saved() SavedCurrency { return c.Snapshot().Saved() }

// Snapshot returns an immutable copy of the state. It returns the same copy until Apply is called.
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
		quarantine: quarantine[:len(quarantine):len(quarantine)], // the store may append to the array
		slots:      c.store.slots, lastQuarantineID: c.store.lastQuarantineID,
	}
	c.snapshot.setFreshness()
	return c.snapshot
}

// snapshotQuotes replaces c.quotes by a new list that includes the quotes that have changed since the last snapshot.
func (c *CurrencyState) snapshotQuotes() {
	s := c.store
	if len(s.changedQuotes) == 0 {
		return
	}
	list, oldLen := slices.Clone(c.quotes), len(c.quotes)
	for _, q := range s.changedQuotes {
		q.shared = true
		if i, found := slices.BinarySearchFunc(list[:oldLen], q.key, compareQuoteKey); found {
			list[i] = q
		} else {
			list = append(list, q)
		}
	}
	if len(list) > oldLen {
		slices.SortFunc(list, func(a, b *quote) int { return a.key.Compare(b.key) })
	}
	c.quotes, s.changedQuotes = list, s.changedQuotes[:0]
}

func compareQuoteKey(q *quote, key QuoteKey) int { return q.key.Compare(key) }
