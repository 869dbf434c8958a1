package engine

import (
	"fmt"
	"time"
)

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
	now = plainUTC(now)
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
		c.observe(&decisions[i], commands[i].Refreshes, plainUTC(now))
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
	if c.store.quote(command.Key).sourceQuote(command.SourceID) == nil {
		return Decision{}, &Error{
			Code:    CodeNotFound,
			Message: fmt.Sprintf("source %s offers no rate %s", command.SourceID, command.Key.ID(c.currency)),
		}
	}
	return Decision{Events: []Event{&Withdrawn{Currency: c.currency, SourceID: command.SourceID, Key: command.Key, At: now, By: command.By}}}, nil
}

func (c *CurrencyState) findQuarantined(id uint64) (*Quarantined, error) {
	for i := range c.store.quarantine {
		if c.store.quarantine[i].ID == id {
			return &c.store.quarantine[i], nil
		}
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
		Currency: c.currency, QuarantineID: quarantined.ID, SourceID: quarantined.SourceID, ObservedAt: quarantined.ObservedAt,
		Priority: v.source.Priority, Manual: v.source.Manual, UpstreamSource: v.source.UpstreamSource,
		Quote: v.acceptedQuote(candidate), At: now, By: command.By,
	}}, Receipt: Receipt{Accepted: 1, Changed: 1}}, nil
}
