package actors

import (
	"slices"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// learning is what a currency has heard of other nodes' records and not applied yet. They wait until the book is back; a batch that was
// decided before them is decided again.
type learning struct {
	heard   uint64 // messages
	lessons []*lesson
	under   []*lesson // being applied
}

// lesson is a message about another node's record, and the shares of cuts behind it and before the next one.
type lesson struct {
	*commitlog.ForeignEvents[engine.Event]
	shares []*commitlog.Share
}

// foreign takes in what another node has written.
func (c *currencyActor) foreign(m *commitlog.ForeignEvents[engine.Event]) {
	w := &c.writes
	if w.stopped != nil {
		m.Credit.Release()
		return
	}
	w.heard++
	w.lessons = append(w.lessons, &lesson{ForeignEvents: m}) // bounded by the follower's places
	c.next()
}

// learn has what was heard applied, up to the first cut. False: there is nothing.
func (c *currencyActor) learn() bool {
	w := &c.writes
	if len(w.lessons) == 0 {
		return false
	}
	end := 1 + slices.IndexFunc(w.lessons, func(l *lesson) bool { return len(l.shares) > 0 })
	if end == 0 {
		end = len(w.lessons)
	}
	w.under, w.lessons = w.lessons[:end:end], w.lessons[end:]
	w.shares = w.under[end-1].shares
	w.applying = true
	var events []engine.Event
	for _, one := range w.under {
		events = append(events, one.Events...)
	}
	before := c.view
	c.job(func(func()) mailbox.Message {
		outcome := c.apply(events, before)
		outcome.foreign = true
		return outcome
	})
	return true
}

// learned gives back what was applied.
func (l *learning) learned() {
	for _, one := range l.under {
		one.Credit.Release()
	}
	l.under = nil
}

// unlearn gives up what was heard.
func (l *learning) unlearn(why *engine.Error) {
	l.learned()
	for _, one := range l.lessons {
		one.Credit.Release()
		for _, s := range one.shares {
			s.Reject(why)
		}
	}
	l.lessons = nil
}

// again puts the batch that was decided on a state that is no more in front of the others. Nobody hears of it.
func (c *currencyActor) again() {
	w := &c.writes
	if w.alone > 0 {
		w.alone += len(w.flight.commands)
	}
	w.waiting = slices.Concat(w.flight.commands, w.waiting)
	w.flight = nil
	c.next()
}
