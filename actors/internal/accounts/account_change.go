package accounts

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// change queues a change. An account makes its changes one after the other.
func (a *AccountActor) change(m *changeRequest) {
	switch {
	case a.stopping:
		m.Reject(mailbox.ErrStopped)
		return
	case a.stopped != nil:
		m.Reject(a.stopped)
		return
	}
	if a.Changes == nil {
		a.Changes = &accountChanges{}
	}
	if len(a.Changes.waiting) >= a.changesMax {
		m.Reject(mailbox.ErrOverloaded)
		return
	}
	a.Changes.waiting = append(a.Changes.waiting, m)
	a.next()
}

// next takes changes from the queue until one of them makes an event. It posts this event to the outbox, which is the
// list of events that are written next.
func (a *AccountActor) next() {
	for a.Changes != nil && !a.busy() && len(a.Changes.waiting) > 0 {
		m := a.Changes.waiting[0]
		a.Changes.waiting = a.Changes.waiting[1:]
		if m.Abandoned() {
			m.Reject(mailbox.ErrExpired)
			continue
		}
		event, record, err := a.decide(m.Query)
		if err != nil || event == nil {
			m.Reply(struct{}{}, err)
			continue
		}
		a.Changes.inFlight = m
		a.outbox.post(pendingEvent{account: a, event: event, record: record, remoteSeq: a.remoteSeq}, true)
	}
}

// decide returns the event that a change makes, and its encoded form. If the change panics, only this change fails.
func (a *AccountActor) decide(q changeQuery) (event account.Event, encoded []byte, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			event, err = nil, &engine.Error{
				Code: engine.CodeInternalError, Message: "an internal error",
				Cause: fmt.Errorf("panic while deciding: %v\n%s", reason, debug.Stack()),
			}
		}
	}()
	event, err = q.decide(a.Account, a.clock.Now())
	if err != nil || event == nil {
		return nil, nil, err
	}
	if encoded, err = record.Encode(event); err != nil {
		a.undo(event)
		return nil, nil, err
	}
	return event, encoded, nil
}

// undo reverts what decide changed in the account for an event that will not become durable.
func (a *AccountActor) undo(event account.Event) {
	if _, ok := event.(*account.KeyCreated); ok {
		a.Account.AbortKey()
	}
}

// written handles the result of writing an event. It applies a durable event and replies to the caller of the change.
// After a conflict with an event of another node it makes the change again.
func (a *AccountActor) written(m *eventWritten) {
	switch e := m.event.(type) {
	case *account.Leased:
		a.leased(m)
		return
	case *account.Returned:
		if m.err == nil {
			a.Account.Apply(e)
		} else {
			a.Account.AbortReturn(e)
		}
		return
	}
	if m.err == nil {
		a.Account.Apply(m.event)
		a.indexKey(m.event)
	} else {
		a.undo(m.event)
	}
	if a.busy() {
		done := a.Changes.inFlight
		if a.Changes.inFlight = nil; m.err == commitlog.ErrConflict {
			a.Changes.waiting = slices.Insert(a.Changes.waiting, 0, done)
		} else {
			done.Reply(struct{}{}, asError(m.err))
		}
	}
	a.next()
	a.returnLeaseOnStop()
}

// indexKey makes the key of an event known to Accounts.Admit. Another account cannot have the fingerprint of the key:
// the node that made the key has reserved it.
func (a *AccountActor) indexKey(event account.Event) {
	if created, ok := event.(*account.KeyCreated); ok && !a.keys.SetActor(created.Key.Digest, a.ID, &a.Ref) {
		panic(fmt.Errorf("apply the new key of account %d: another account has a key with the same fingerprint", a.ID))
	}
}

// asError converts a nil pointer to a nil interface.
func asError(err *engine.Error) error {
	if err == nil {
		return nil
	}
	return err
}
