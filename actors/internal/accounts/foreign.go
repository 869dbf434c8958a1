package accounts

import (
	"fmt"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// foreign takes in what another node has written about accounts of the shard.
func (s *ShardActor) foreign(m *commitlog.ForeignEvents[account.Event]) {
	defer m.Credit.Release()
	if s.stopped != nil || s.Live == nil {
		return // the node has stopped, or its accounts were dismissed
	}
	s.heard++
	byAccount := map[uint64][]account.Event{}
	for _, event := range m.Events {
		id := event.AccountID()
		byAccount[id] = append(byAccount[id], event)
	}
	for _, event := range m.Events {
		id := event.AccountID()
		if events := byAccount[id]; events != nil {
			delete(byAccount, id)
			s.instruct(id, events, m.Credit)
		}
	}
}

// instruct tells one account.
func (s *ShardActor) instruct(id uint64, events []account.Event, from *commitlog.Credit) {
	s.index(events)
	if created, is := events[0].(*account.Created); is {
		s.born([]*account.Created{created})
		events = events[1:]
	}
	if len(events) == 0 {
		return
	}
	if one := s.Live[id]; one != nil {
		one.heard++
		one.Ref.Send(&commitlog.ForeignEvents[account.Event]{Events: events, Credit: from.Take()})
		return
	}
	s.teach(id, events)
}

// index lets everybody find new keys.
func (s *ShardActor) index(events []account.Event) {
	for _, event := range events {
		if made, is := event.(*account.KeyCreated); is && !s.keys.Claim(made.Key.Digest, made.Account) {
			panic(fmt.Errorf("take in a key of account %d: another account has one alike", made.Account))
		}
	}
}

// teach tells an account without an actor, which sleeps on.
func (s *ShardActor) teach(id uint64, events []account.Event) {
	state, known := s.idle[id]
	if !known {
		panic(fmt.Errorf("take in an event of account %d, which was never created", id))
	}
	now := s.clock.Now()
	for _, event := range events {
		var err error
		if state, err = state.learn(event, now); err != nil {
			panic(fmt.Errorf("take in an event of account %d: %w", id, err))
		}
	}
	s.idle[id] = state
}

// foreign takes in what another node has written about the account. What was decided before it comes back as a conflict.
func (a *AccountActor) foreign(m *commitlog.ForeignEvents[account.Event]) {
	defer m.Credit.Release()
	a.heard++
	now := a.clock.Now()
	for _, event := range m.Events {
		a.Account.Learn(event, now)
	}
}

// Round is the time to ask whether accounts rest from what this node has leased for them; only in a cluster, where others need it.
type Round struct {
	mailbox.OneWay
	rest bool // of a round that has begun
}

// rest asks an account.
type rest struct{ mailbox.OneWay }

// round asks the accounts that have an actor. Those that had been put aside have given their lease back before.
func (s *ShardActor) round(more bool) {
	if !more {
		s.resting = s.resting[:0]
		for _, one := range s.Live {
			s.resting = append(s.resting, one)
		}
	}
	some := s.resting[max(0, len(s.resting)-sweepTurnMax):]
	for _, one := range some {
		if s.Live[one.id] == one {
			one.Ref.Send(&rest{})
		}
	}
	clear(some)
	if s.resting = s.resting[:len(s.resting)-len(some)]; len(s.resting) > 0 {
		s.self.Send(&Round{rest: true})
	}
}

// rest gives back what this node has leased when the account is asked for elsewhere, or not at all.
func (a *AccountActor) rest() {
	if a.stopped != nil || a.leaving {
		return
	}
	event := a.Account.NextReturn(a.clock.Now())
	if event == nil {
		return
	}
	record, err := record.Encode(event)
	if err != nil {
		a.Account.ReturnLost(event)
		return
	}
	a.outbox.post(wish{account: a.ID, event: event, record: record, firm: true}, false)
}
