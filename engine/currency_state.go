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
// methods must not be called concurrently. Their results are immutable, so any goroutine may read them.
type CurrencyState struct {
	currency  string
	catalogue *Catalogue
	rules     Rules
	store     *quoteStore
	snapshot  *CurrencySnapshot // nil after a change
	// DecideAll applies its events to the store at once, because each refresh is checked against the earlier ones. It
	// keeps the events in decided until Apply has been called with all of them. Any other call first undoes them.
	decided []Event
	applied int  // number of decided events received by Apply
	ahead   bool // the store differs from the snapshot
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
	}
	rows := slices.Clone(saved.History) // one allocation for all
	for i := range rows {
		c.store.setRow(&rows[i])
	}
	for _, pending := range saved.Pending {
		if pending.Sightings == 0 { // of an earlier version
			pending.Since, pending.Sightings = pending.ObservedAt, 1
		}
		c.store.mutableQuote(pending.Key).addPending(pending)
	}
	c.store.quarantine, c.store.slots, c.store.lastQuarantineID = saved.Quarantine, saved.Slots, saved.LastQuarantineID
	return c
}

// Apply changes the state by a durable event. The result depends only on the event and the state.
func (c *CurrencyState) Apply(event Event) {
	if c.applied < len(c.decided) && c.decided[c.applied] == event { // the store contains it already
		if c.applied++; c.applied == len(c.decided) {
			c.decided, c.applied, c.ahead, c.snapshot = nil, 0, false, nil
		}
		return
	}
	c.undo()
	c.store.apply(event)
	c.snapshot = nil
}

// undo removes the changes of decided events that Apply has not received.
func (c *CurrencyState) undo() {
	if !c.ahead {
		return
	}
	applied := c.decided[:c.applied]
	c.decided, c.applied, c.ahead = nil, 0, false
	c.store.restore(c.snapshot.contents)
	for _, event := range applied {
		c.store.apply(event)
		c.snapshot = nil
	}
}

// Saved returns the state for backups and for snapshots of the log.
func (c *CurrencyState) Saved() SavedCurrency { return c.Snapshot().Saved() }

// Snapshot returns an immutable copy of the state. It returns the same copy until Apply is called.
func (c *CurrencyState) Snapshot() *CurrencySnapshot {
	if c.applied > 0 {
		c.undo()
	}
	if c.snapshot == nil {
		c.store.trim()
		c.snapshot = &CurrencySnapshot{currency: c.currency, catalogue: c.catalogue, contents: c.store.share()}
		c.snapshot.setFreshness()
	}
	return c.snapshot
}
