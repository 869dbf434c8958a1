package engine

import (
	"fmt"
	"time"
)

// Decision is what a command would change. Nothing of it is true before its events are durable and applied.
type Decision struct {
	Events  []Event
	Receipt Receipt        // positions are those of the command's refreshes
	Counts  []RefreshCount // of an Observe: the receipt's numbers by refresh, for whoever decides several commands as one
}

// RefreshCount is what became of the observations of one refresh; the rest of them was refused.
type RefreshCount struct{ Accepted, Changed, Repeated int }

// Decide holds a command against the book and the rules and changes nothing. The error is an *Error: what the command names does
// not exist. Observations never fail: what is wrong with them is in the receipt.
func (b *CurrencyState) Decide(command Command, now time.Time) (Decision, error) {
	now = plainUTC(now)
	switch c := command.(type) {
	case Observe:
		return b.observe(c.Refreshes, now), nil
	case Withdraw:
		return b.withdraw(c, now)
	case Release:
		return b.release(c, now)
	case Reject:
		held, err := b.findQuarantined(c.QuarantineID)
		if err != nil {
			return Decision{}, err
		}
		return Decision{Events: []Event{&Rejected{b.currency, held.ID, now, c.By}}}, nil
	}
	panic(fmt.Sprintf("engine: no rule decides a command of type %T", command))
}

// observe decides each refresh in sight of the ones before it.
func (b *CurrencyState) observe(refreshes []Refresh, now time.Time) Decision {
	draft := b.store.draft()
	var decision Decision
	for i := range refreshes {
		if draft.slotAnswered(&refreshes[i]) { // X16
			decision.count(RefreshCount{Repeated: len(refreshes[i].Observations)})
			continue
		}
		judge := newValidator(b, draft, &refreshes[i], now)
		event := judge.validate()
		decision.count(judge.report(&decision.Receipt, i))
		if len(event.Quotes)+len(event.Quarantined) > 0 || !event.Slot.IsZero() {
			if i+1 < len(refreshes) { // the last one is in nobody's sight
				draft.apply(event)
			}
			decision.Events = append(decision.Events, event)
		}
	}
	return decision
}

// count adds the numbers of the next refresh.
func (d *Decision) count(c RefreshCount) {
	d.Counts = append(d.Counts, c)
	d.Receipt.Accepted += c.Accepted
	d.Receipt.Changed += c.Changed
	d.Receipt.Repeated += c.Repeated
}

func (b *CurrencyState) withdraw(c Withdraw, now time.Time) (Decision, error) {
	if b.store.quote(c.Key).sourceQuote(c.SourceID) == nil {
		return Decision{}, &Error{
			Code:    CodeNotFound,
			Message: fmt.Sprintf("source %s offers no rate %s", c.SourceID, c.Key.ID(b.currency)),
		}
	}
	return Decision{Events: []Event{&Withdrawn{b.currency, c.SourceID, c.Key, now, c.By}}}, nil
}

func (b *CurrencyState) findQuarantined(heldID uint64) (*Quarantined, error) {
	for i := range b.store.quarantine {
		if b.store.quarantine[i].ID == heldID {
			return &b.store.quarantine[i], nil
		}
	}
	return nil, &Error{
		Code:    CodeNotFound,
		Message: fmt.Sprintf("the quarantine of %s has no number %d", b.currency, heldID),
	}
}

// release publishes what was held, also against the bands and limits: the operator has looked at it. What is no rate at all, an
// unreadable or zero side or crossed sides, stays out.
func (b *CurrencyState) release(c Release, now time.Time) (Decision, error) {
	held, err := b.findQuarantined(c.QuarantineID)
	if err != nil {
		return Decision{}, err
	}
	refresh := Refresh{SourceID: held.SourceID, ObservedAt: held.ObservedAt, Observations: []Observation{held.Observation}}
	judge := newValidator(b, b.store, &refresh, now)
	one := &judge.candidates[0]
	if reason, detail := one.defect(); reason != "" {
		return Decision{}, &Error{
			Code:    CodeInvalidParameters,
			Message: fmt.Sprintf("number %d of the quarantine can't be released: %s", held.ID, detail),
			Cause:   fmt.Errorf("%s", reason),
		}
	}
	quoted := judge.acceptedQuote(one)
	return Decision{Events: []Event{&Released{
		Currency: b.currency, QuarantineID: held.ID, SourceID: held.SourceID, ObservedAt: held.ObservedAt,
		Priority: judge.source.Priority, Manual: judge.source.Manual, UpstreamSource: judge.source.UpstreamSource,
		Quote: quoted, At: now, By: c.By,
	}}, Receipt: Receipt{Accepted: 1, Changed: 1}}, nil
}
