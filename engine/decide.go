package engine

import (
	"fmt"
	"time"
)

// Decision is what a command would change. Nothing of it is true before its events are durable and applied.
type Decision struct {
	Events  []Event
	Receipt Receipt // positions are those of the command's refreshes
	Counts  []Count // of an Observe: the receipt's numbers by refresh, for whoever decides several commands as one
}

// Count is what became of the observations of one refresh; the rest of them was refused.
type Count struct{ Accepted, Changed, Repeated int }

// Decide holds a command against the book and the rules and changes nothing. The error is an *Error: what the command names does
// not exist. Observations never fail: what is wrong with them is in the receipt.
func (b *Book) Decide(command Command, now time.Time) (Decision, error) {
	now = universal(now)
	switch c := command.(type) {
	case Observe:
		return b.observe(c.Refreshes, now), nil
	case Withdraw:
		return b.withdraw(c, now)
	case Release:
		return b.release(c, now)
	case Reject:
		held, err := b.find(c.HeldID)
		if err != nil {
			return Decision{}, err
		}
		return Decision{Events: []Event{&Rejected{b.currency, held.ID, now, c.By}}}, nil
	}
	panic(fmt.Sprintf("engine: no rule decides a command of type %T", command))
}

// observe decides each refresh in sight of the ones before it.
func (b *Book) observe(refreshes []Refresh, now time.Time) Decision {
	draft := b.state.draft()
	var decision Decision
	for i := range refreshes {
		if draft.heard(&refreshes[i]) { // X16
			decision.count(Count{Repeated: len(refreshes[i].Observations)})
			continue
		}
		judge := newJudge(b, draft, &refreshes[i], now)
		event := judge.verdict()
		decision.count(judge.report(&decision.Receipt, i))
		if len(event.Quotes)+len(event.Held) > 0 || !event.Slot.IsZero() {
			if i+1 < len(refreshes) { // the last one is in nobody's sight
				draft.apply(event)
			}
			decision.Events = append(decision.Events, event)
		}
	}
	return decision
}

// count adds the numbers of the next refresh.
func (d *Decision) count(c Count) {
	d.Counts = append(d.Counts, c)
	d.Receipt.Accepted += c.Accepted
	d.Receipt.Changed += c.Changed
	d.Receipt.Repeated += c.Repeated
}

func (b *Book) withdraw(c Withdraw, now time.Time) (Decision, error) {
	if b.state.quote(c.Key).offer(c.SourceID) == nil {
		return Decision{}, &Error{
			Code:    CodeNotFound,
			Message: fmt.Sprintf("source %s offers no rate %s", c.SourceID, c.Key.ID(b.currency)),
		}
	}
	return Decision{Events: []Event{&Withdrawn{b.currency, c.SourceID, c.Key, now, c.By}}}, nil
}

func (b *Book) find(heldID uint64) (*Held, error) {
	for i := range b.state.held {
		if b.state.held[i].ID == heldID {
			return &b.state.held[i], nil
		}
	}
	return nil, &Error{
		Code:    CodeNotFound,
		Message: fmt.Sprintf("the quarantine of %s has no number %d", b.currency, heldID),
	}
}

// release publishes what was held, also against the bands and limits: the operator has looked at it. What is no rate at all, an
// unreadable or zero side or crossed sides, stays out.
func (b *Book) release(c Release, now time.Time) (Decision, error) {
	held, err := b.find(c.HeldID)
	if err != nil {
		return Decision{}, err
	}
	refresh := Refresh{SourceID: held.SourceID, ObservedAt: held.ObservedAt, Observations: []Observation{held.Observation}}
	judge := newJudge(b, b.state, &refresh, now)
	one := &judge.candidates[0]
	if reason, detail := one.defect(); reason != "" {
		return Decision{}, &Error{
			Code:    CodeInvalidParameters,
			Message: fmt.Sprintf("number %d of the quarantine can't be released: %s", held.ID, detail),
			Cause:   fmt.Errorf("%s", reason),
		}
	}
	quoted := judge.quoted(one)
	return Decision{Events: []Event{&Released{
		Currency: b.currency, HeldID: held.ID, SourceID: held.SourceID, ObservedAt: held.ObservedAt,
		Priority: judge.source.Priority, Manual: judge.source.Manual, UpstreamSource: judge.source.UpstreamSource,
		Quote: quoted, At: now, By: c.By,
	}}, Receipt: Receipt{Accepted: 1, Changed: 1}}, nil
}
