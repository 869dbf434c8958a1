package accounts

import (
	"fmt"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// remote applies events of another node: it updates accounts without an actor (evicted), and forwards events of
// accounts with an actor (loaded) to their actors.
func (s *ShardActor) remote(m *commitlog.RemoteEvents[account.Event]) {
	defer m.Window.Release()
	if s.stopped != nil || s.Loaded == nil {
		return // the node or the accounts of the shard have stopped
	}
	s.remoteSeq++
	byAccount := map[uint64][]account.Event{}
	for _, event := range m.Events {
		id := event.AccountID()
		byAccount[id] = append(byAccount[id], event)
	}
	for _, event := range m.Events {
		id := event.AccountID()
		if events := byAccount[id]; events != nil {
			delete(byAccount, id)
			s.remoteAccount(id, events, m.Window)
		}
	}
}

func (s *ShardActor) remoteAccount(id uint64, events []account.Event, window *commitlog.WindowEntry) {
	s.indexKeys(events)
	if created, ok := events[0].(*account.Created); ok {
		s.created([]*account.Created{created})
		events = events[1:]
	}
	if len(events) == 0 {
		return
	}
	if acct := s.Loaded[id]; acct != nil {
		acct.remoteSeq++
		acct.Ref.Send(&commitlog.RemoteEvents[account.Event]{Events: events, Window: window.Retain()})
		return
	}
	s.remoteEvicted(id, events)
}

// indexKeys adds keys that another node created to the index of keys.
func (s *ShardActor) indexKeys(events []account.Event) {
	for _, event := range events {
		if created, ok := event.(*account.KeyCreated); ok && !s.keys.Claim(created.Key.Digest, created.Account) {
			panic(fmt.Errorf("apply the new key of account %d: another account has a key with the same fingerprint", created.Account))
		}
	}
}

// remoteEvicted applies events to an evicted account. It does not start an actor for the account.
func (s *ShardActor) remoteEvicted(id uint64, events []account.Event) {
	state, known := s.evicted[id]
	if !known {
		panic(fmt.Errorf("apply an event of account %d, which was never created", id))
	}
	now := s.common.clock.Now()
	for _, event := range events {
		var err error
		if state, err = state.applyRemote(event, now); err != nil {
			panic(fmt.Errorf("apply an event of account %d: %w", id, err))
		}
	}
	s.evicted[id] = state
}

// remote applies events of another node. An event that this node has decided but not yet written then conflicts with
// them: its write fails with ErrConflict, unless the event is unconditional (pendingEvent.unconditional).
func (a *AccountActor) remote(m *commitlog.RemoteEvents[account.Event]) {
	defer m.Window.Release()
	a.remoteSeq++
	now := a.clock.Now()
	for _, event := range m.Events {
		a.Account.ApplyRemote(event, now)
	}
}

// CheckReturns tells a shard (actor that keeps a part of the accounts) to send checkReturn to all its loaded accounts.
type CheckReturns struct {
	mailbox.OneWay
	more bool // false starts a check; true continues it with the rest of toCheck, in a message from the shard to itself
}

// checkReturn tells an account to return its quota lease, which is a reserved part of its quota, if the account does
// not need the lease. Other nodes can then use that part.
type checkReturn struct{ mailbox.OneWay }

// checkReturns sends checkReturn to the next loaded accounts. Evicted accounts need none, because they returned their
// leases before they were evicted.
func (s *ShardActor) checkReturns(more bool) {
	if !more {
		s.toCheck = s.toCheck[:0]
		for _, acct := range s.Loaded {
			s.toCheck = append(s.toCheck, acct)
		}
	}
	batch := s.toCheck[max(0, len(s.toCheck)-accountsPerMessage):]
	for _, acct := range batch {
		if s.Loaded[acct.actor.ID] == acct {
			acct.Ref.Send(&checkReturn{})
		}
	}
	clear(batch)
	if s.toCheck = s.toCheck[:len(s.toCheck)-len(batch)]; len(s.toCheck) > 0 {
		s.self.Send(&CheckReturns{more: true})
	}
}

func (a *AccountActor) checkReturn() {
	if a.stopped != nil || a.stopping {
		return
	}
	event := a.Account.NextReturn(a.clock.Now())
	if event == nil {
		return
	}
	record, err := record.Encode(event)
	if err != nil {
		a.Account.AbortReturn(event)
		return
	}
	a.outbox.post(pendingEvent{account: a.ID, event: event, record: record, unconditional: true}, false)
}
