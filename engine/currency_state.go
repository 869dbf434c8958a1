package engine

import (
	"fmt"
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
	store := &quoteStore{historyDays: rules.HistoryDays + rules.FutureDaysMax, market: &market{}}
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
		c.store.mutableQuote(pending.Key).pending.put(pending)
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
	c.store.contents, c.store.market.known = c.snapshot.contents, false
	c.store.share()
	for _, event := range applied {
		c.store.apply(event)
		c.snapshot = nil
	}
}

// Snapshot returns an immutable copy of the state. It returns the same copy until Apply is called.
func (c *CurrencyState) Snapshot() *CurrencySnapshot {
	if c.applied > 0 {
		c.undo()
	}
	if c.snapshot == nil {
		c.store.trim()
		c.snapshot = &CurrencySnapshot{Currency: c.currency, catalogue: c.catalogue, contents: c.store.share()}
		c.snapshot.setFreshness()
	}
	return c.snapshot
}

// Decision is the result of a command. Its events must be written to the log and then applied.
type Decision struct {
	Events  []Event
	Receipt Receipt // Refusal.Refresh is an index of the command's refreshes
}

// Decide checks a command against the state and the rules. The state changes only when Apply is called with the events.
// Observe returns no error; the receipt lists the refused observations. The other commands return an *Error if the
// quote or the quarantined observation does not exist, or if the observation can't be released.
func (c *CurrencyState) Decide(command Command, now time.Time) (Decision, error) {
	c.undo()
	now = PlainUTC(now)
	switch command := command.(type) {
	case Observe:
		return c.DecideAll([]Observe{command}, now)[0], nil
	case Withdraw:
		return c.withdraw(command, now)
	case Release:
		return c.release(command, now)
	case Reject:
		if _, err := c.findQuarantined(command.QuarantineID); err != nil {
			return Decision{}, err
		}
		return Decision{Events: []Event{&Rejected{c.currency, command.QuarantineID, now, command.By}}}, nil
	}
	panic(fmt.Sprintf("engine: no rule decides a command of type %T", command))
}

// DecideAll decides commands, each against the state after the earlier ones. Therefore it applies the events to the
// store at once; see CurrencyState.decided.
func (c *CurrencyState) DecideAll(commands []Observe, now time.Time) []Decision {
	c.undo()
	c.Snapshot() // for undo
	c.ahead = true
	decisions := make([]Decision, len(commands))
	var events []Event
	for i := range commands {
		c.observe(&decisions[i], commands[i].Refreshes, PlainUTC(now))
		events = append(events, decisions[i].Events...)
	}
	c.decided, c.ahead = events, len(events) > 0
	return decisions
}

func (c *CurrencyState) observe(decision *Decision, refreshes []Refresh, now time.Time) {
	for i := range refreshes {
		if c.store.slotAnswered(&refreshes[i]) {
			decision.Receipt.Repeated += len(refreshes[i].Observations)
			continue
		}
		v := newValidator(c, &refreshes[i], now)
		v.following = refreshes[i+1:]
		event := v.validate()
		v.report(&decision.Receipt, i)
		if len(event.Quotes)+len(event.Quarantined) > 0 || !event.Slot.IsZero() {
			decision.add(c.store, event)
			v.withdrawContradicted(decision)
		}
	}
}

func (d *Decision) add(store *quoteStore, event Event) {
	store.apply(event)
	d.Events = append(d.Events, event)
}

func (c *CurrencyState) withdraw(command Withdraw, now time.Time) (Decision, error) {
	if c.store.quote(command.Key).sourceQuotes.of(command.SourceID) == nil {
		return Decision{}, &Error{
			Code:    CodeNotFound,
			Message: fmt.Sprintf("source %s offers no rate %s", command.SourceID, command.Key.ID(c.currency)),
		}
	}
	return Decision{Events: []Event{&Withdrawn{Currency: c.currency, SourceID: command.SourceID, Key: command.Key, At: now, By: command.By}}}, nil
}

func (c *CurrencyState) findQuarantined(id uint64) (*Quarantined, error) {
	if i := c.store.indexQuarantined(id); i >= 0 {
		return &c.store.quarantine[i], nil
	}
	return nil, &Error{Code: CodeNotFound, Message: fmt.Sprintf("the quarantine of %s has no number %d", c.currency, id)}
}

// release skips the plausibility rules, because an operator has checked the value. It still refuses sides that are
// unreadable, missing, zero, negative or crossed.
func (c *CurrencyState) release(command Release, now time.Time) (Decision, error) {
	quarantined, err := c.findQuarantined(command.QuarantineID)
	if err != nil {
		return Decision{}, err
	}
	refresh := Refresh{SourceID: quarantined.SourceID, ObservedAt: quarantined.ObservedAt, Observations: []Observation{quarantined.Observation}}
	v := newValidator(c, &refresh, now)
	candidate := &v.candidates[0]
	if reason, detail := candidate.defect(); reason != "" {
		return Decision{}, &Error{
			Code:    CodeInvalidParameters,
			Message: fmt.Sprintf("number %d of the quarantine can't be released: %s", quarantined.ID, detail),
			Cause:   fmt.Errorf("%s", reason),
		}
	}
	return Decision{Events: []Event{&Released{
		Origin: v.origin(), QuarantineID: quarantined.ID, Quote: v.acceptedQuote(candidate), At: now, By: command.By,
	}}, Receipt: Receipt{Accepted: 1, Changed: 1}}, nil
}
