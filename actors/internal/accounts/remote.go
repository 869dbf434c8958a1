package accounts

import (
	"fmt"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// remote passes a record of another node on to its accounts.
func (s *ShardActor) remote(m *commitlog.RemoteEvents[account.Event]) {
	defer m.Window.Release()
	if s.stopped != nil || s.Loaded == nil {
		return // the node has stopped, or its accounts have
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

// remoteAccount applies events of another node to one account.
func (s *ShardActor) remoteAccount(id uint64, events []account.Event, from *commitlog.WindowEntry) {
	s.indexKeys(events)
	if created, is := events[0].(*account.Created); is {
		s.created([]*account.Created{created})
		events = events[1:]
	}
	if len(events) == 0 {
		return
	}
	if one := s.Loaded[id]; one != nil {
		one.remoteSeq++
		one.Ref.Send(&commitlog.RemoteEvents[account.Event]{Events: events, Window: from.Retain()})
		return
	}
	s.remoteEvicted(id, events)
}

// indexKeys adds new keys to the index.
func (s *ShardActor) indexKeys(events []account.Event) {
	for _, event := range events {
		if made, is := event.(*account.KeyCreated); is && !s.keys.Claim(made.Key.Digest, made.Account) {
			panic(fmt.Errorf("take in a key of account %d: another account has one alike", made.Account))
		}
	}
}

// remoteEvicted applies events to an account that stays evicted.
func (s *ShardActor) remoteEvicted(id uint64, events []account.Event) {
	state, known := s.evicted[id]
	if !known {
		panic(fmt.Errorf("take in an event of account %d, which was never created", id))
	}
	now := s.common.clock.Now()
	for _, event := range events {
		var err error
		if state, err = state.applyRemote(event, now); err != nil {
			panic(fmt.Errorf("take in an event of account %d: %w", id, err))
		}
	}
	s.evicted[id] = state
}

// remote applies events of another node. The journal answers writes that were decided before them with a conflict.
func (a *AccountActor) remote(m *commitlog.RemoteEvents[account.Event]) {
	defer m.Window.Release()
	a.remoteSeq++
	now := a.clock.Now()
	for _, event := range m.Events {
		a.Account.ApplyRemote(event, now)
	}
}

// CheckReturns asks accounts to return leases that they no longer need, so that other nodes can use them.
type CheckReturns struct {
	mailbox.OneWay
	more bool // continues
}

// checkReturn asks one account.
type checkReturn struct{ mailbox.OneWay }

// checkReturns asks the loaded accounts. Evicted ones have returned their leases before.
func (s *ShardActor) checkReturns(more bool) {
	if !more {
		s.toCheck = s.toCheck[:0]
		for _, one := range s.Loaded {
			s.toCheck = append(s.toCheck, one)
		}
	}
	some := s.toCheck[max(0, len(s.toCheck)-sweepTurnMax):]
	for _, one := range some {
		if s.Loaded[one.actor.ID] == one {
			one.Ref.Send(&checkReturn{})
		}
	}
	clear(some)
	if s.toCheck = s.toCheck[:len(s.toCheck)-len(some)]; len(s.toCheck) > 0 {
		s.self.Send(&CheckReturns{more: true})
	}
}

// checkReturn returns the lease if the account is idle or is used on other nodes.
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
