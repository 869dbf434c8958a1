package accounts

import (
	"sync/atomic"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// ShardActor owns a share of the accounts: all that are idle, as few bytes each, and the actors of the others. It gives an account its
// actor when a message comes for it, takes the state back when nothing was asked for a while (mailbox.Ref.Retire), and sends the
// journal what its accounts decide. Admissions go straight to the account's actor while there is one; all other messages to an account
// come through its shard, in order.
type ShardActor struct {
	self        *mailbox.Ref
	actors      *mailbox.System
	kind        *mailbox.Kind // of accounts
	journal     *mailbox.Ref
	node        engine.NodeID // 0: there are no others
	common      *accountCommon
	loadedMax   int           // in all shards together
	loadedCount *atomic.Int64 // of them

	count  *atomic.Int64 // accounts in all shards together
	leases *atomic.Uint64

	evicted map[uint64]evictedAccount // accounts without an actor
	Loaded  map[uint64]*loadedAccount // accounts with one
	order   []*loadedAccount          // the same, for the sweeps
	sweepAt int                       // of order, what the sweep looks at next
	roomAt  int                       // of order, where room was made last
	codec   codec

	keys      *keyindex.Index
	remoteSeq uint64           // messages about other nodes' records
	toCheck   []*loadedAccount // to be asked whether they return their lease
	pending   []pendingEvent   // to be written
	inFlight  []pendingEvent   // being written
	stopped   *engine.Error

	closed         bool // nothing is passed on any more
	draining       *drainRequest
	returnsAwaited int // accounts that have not given their leases back yet
}

// loadedAccount is an account with an actor: its mailbox, the actor and its state in one piece of memory.
type loadedAccount struct {
	Ref       mailbox.Ref
	actor     AccountActor
	account   account.Account
	at        int    // in the shard's order
	quiet     int    // sweeps since an account was last asked
	remoteSeq uint64 // messages about other nodes' records that it was sent
}

// drainRequest is asked by Close: answered when every account's lease is back in the journal.
type drainRequest = mailbox.Question[drainQuery, struct{}]

type drainQuery struct{}

// stopRequest is asked by Close when everything is kept: the accounts' actors end. The answer is those that may not have ended yet.
type stopRequest = mailbox.Question[stopQuery, []*mailbox.Ref]

type stopQuery struct{}

// ListRequest asks for all accounts of a shard.
type ListRequest = mailbox.Question[ListQuery, *commitlog.StateSnapshot]

// ListQuery asks for all accounts of a shard.
type ListQuery struct{}

// created brings new accounts. The journal sends it, between the commit that made them and whatever comes
// after that.
type accountsCreated struct {
	mailbox.OneWay
	events []*account.Created
}

// Sweep is the time to evict idle accounts.
type Sweep struct {
	mailbox.OneWay
	more bool // of a sweep that has begun
}

// Receive is one line for each message.
func (s *ShardActor) Receive(l mailbox.Message) {
	switch m := l.(type) {
	case *admission:
		s.admit(m)
	case *Refund:
		s.route(m.Query.Account, m)
	case *usage:
		s.route(m.Query.account, m)
	case *accountAsk:
		s.route(m.Query.account, m)
	case *change:
		s.route(m.Query.account, m)
	case *OutboxFilled:
		s.collect()
	case *commitlog.Committed:
		s.committed(m.Err)
	case *deliverMore:
		s.committed(m.err)
	case *accountsCreated:
		s.created(m.events)
	case *commitlog.RemoteEvents[account.Event]:
		s.remote(m)
	case *Sweep:
		s.sweep(m.more)
	case *CheckReturns:
		s.checkReturns(m.more)
	case *commitlog.SnapshotRequest:
		s.handOff(m)
	case *ListRequest:
		s.list(m)
	case *drainRequest:
		s.drain(m)
	case *stopRequest:
		m.Reply(s.stopAccounts(), nil)
	case *mailbox.Halt:
		s.halt(m.Why)
	}
}

// Fatal is mailbox.Actor: a question that is not passed on changes nothing.
func (s *ShardActor) Fatal(l mailbox.Message) bool { return !l.Asked() }

// route passes a message on to the actor of an account, and returns the account if there is one.
func (s *ShardActor) route(id uint64, l mailbox.Message) *loadedAccount {
	if s.closed {
		l.Reject(mailbox.ErrStopped)
		return nil
	}
	one := s.Loaded[id]
	if one == nil {
		var err *engine.Error
		if one, err = s.load(id); err != nil {
			l.Reject(err)
			return nil
		}
	}
	one.Ref.Send(l)
	return one
}

// admit passes an admission on, and lets the next ones of the key find the actor.
func (s *ShardActor) admit(m *admission) {
	id, key := m.Query.account, m.Query.key // before the question is answered, and used for something else
	if one := s.route(id, m); one != nil {
		s.keys.SetActor(key, id, &one.Ref)
	}
}

// errNoAccount is the answer to a question about an account that there is not.
var errNoAccount = &engine.Error{Code: engine.CodeNotFound, Message: "there is no account with this number"}

// load gives an idle account its actor.
func (s *ShardActor) load(id uint64) (*loadedAccount, *engine.Error) {
	state, known := s.evicted[id]
	switch {
	case !known:
		return nil, errNoAccount
	case s.loadedCount.Load() >= int64(s.loadedMax) && !s.makeRoom():
		return nil, mailbox.ErrOverloaded
	}
	one := &loadedAccount{at: len(s.order)}
	if err := s.codec.load(state, &one.account, s.node, s.common.clock.start()); err != nil {
		return nil, Internal(err)
	}
	one.actor = AccountActor{accountCommon: s.common, ID: id, Account: &one.account, stopped: s.stopped}
	s.actors.Init(&one.Ref, s.kind, &one.actor)
	s.Loaded[id], s.order = one, append(s.order, one)
	delete(s.evicted, id)
	s.loadedCount.Add(1)
	return one, nil
}

// Internal is the answer to a question whose work failed for a cause that is no caller's.
func Internal(cause error) *engine.Error {
	return &engine.Error{Code: engine.CodeInternalError, Message: "an internal error", Cause: cause}
}

// Pace of evicting.
const (
	SweepsIdle   = 4   // an account is idle when nothing was asked of it for so many sweeps
	sweepTurnMax = 256 // accounts that one message looks at, so that no other message waits long
	roomTriesMax = 8   // accounts that are looked at when there is no room for another one
)

// sweep looks at all accounts and evicts those of which nothing was asked for a while. It goes backwards: what takes the place of an
// evicted account has been looked at, and new accounts are looked at by the next sweep.
func (s *ShardActor) sweep(more bool) {
	if !more {
		s.sweepAt = len(s.order)
	}
	now := s.common.clock.Now()
	s.sweepAt = min(s.sweepAt, len(s.order))
	for range min(sweepTurnMax, s.sweepAt) {
		s.sweepAt--
		one := s.order[s.sweepAt]
		s.evict(one, func() bool {
			if one.actor.asked {
				one.quiet, one.actor.asked = 0, false
			}
			one.quiet++
			return one.quiet >= SweepsIdle && one.actor.idle(now)
		})
	}
	if s.sweepAt > 0 {
		s.self.Send(&Sweep{more: true})
	}
}

// makeRoom evicts an account that can be, if it finds one soon.
func (s *ShardActor) makeRoom() bool {
	now := s.common.clock.Now()
	for range min(roomTriesMax, len(s.order)) {
		s.roomAt = (s.roomAt + 1) % len(s.order)
		one := s.order[s.roomAt]
		if s.evict(one, func() bool { return one.actor.idle(now) }) {
			return true
		}
	}
	return false
}

// evict ends the actor of an account that has nothing to do, when idle agrees, and keeps what it knew.
func (s *ShardActor) evict(one *loadedAccount, idle func() bool) bool {
	if !one.Ref.Retire(idle) {
		return false
	}
	id := one.actor.ID
	s.evicted[id] = s.codec.evict(&one.account)
	one.account.EachKey(func(key account.Digest) { s.keys.SetActor(key, id, nil) })
	last := len(s.order) - 1
	s.order[one.at] = s.order[last]
	s.order[one.at].at = one.at
	s.order[last], s.order = nil, s.order[:last]
	delete(s.Loaded, id)
	s.loadedCount.Add(-1)
	return true
}

// created takes new accounts in.
func (s *ShardActor) created(events []*account.Created) {
	for _, event := range events {
		account := account.New(event.Account)
		account.Apply(event)
		s.evicted[event.Account] = EncodeDurable(account)
		s.count.Add(1)
	}
}

// halt gives up all changes: the node has stopped.
func (s *ShardActor) halt(why *engine.Error) {
	s.Abort(why)
	for _, one := range s.Loaded {
		one.Ref.Send(&mailbox.Halt{Why: why})
	}
}

// Abort ends writing. The accounts that wait are told by halt, or by their own end.
func (s *ShardActor) Abort(why *engine.Error) {
	s.stopped = why
	s.pending, s.inFlight = nil, nil
	s.drained()
}

// stopAccounts sends the actors of all live accounts their end.
func (s *ShardActor) stopAccounts() []*mailbox.Ref {
	ending := make([]*mailbox.Ref, 0, len(s.Loaded))
	for _, one := range s.Loaded {
		one.Ref.BeginStop()
		ending = append(ending, &one.Ref)
	}
	s.closed, s.Loaded, s.order = true, nil, nil
	return ending
}
