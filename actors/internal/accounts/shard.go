package accounts

import (
	"sync/atomic"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// ShardActor owns a share of the accounts: the evicted ones, as few bytes each, and the actors of the loaded ones. It
// loads an account when a message comes for it, evicts it when it is idle (mailbox.Ref.Retire), and sends the journal
// what its accounts decide. Admissions go straight to the actor of a loaded account; all other messages to an account
// come through its shard, in order.
type ShardActor struct {
	self        *mailbox.Ref
	actors      *mailbox.System
	kind        *mailbox.Kind // of accounts
	journal     *mailbox.Ref
	node        engine.NodeID // 0 without a cluster
	common      *accountCommon
	loadedMax   int           // of all shards together
	loadedCount *atomic.Int64 // of all shards together

	count  *atomic.Int64 // accounts in all shards together
	leases *atomic.Uint64

	evicted map[uint64]evictedAccount // accounts without an actor
	Loaded  map[uint64]*loadedAccount // accounts with one
	order   []*loadedAccount          // the same, for the sweeps
	sweepAt int                       // index in order of the sweep
	roomAt  int                       // index in order of makeRoom
	codec   codec

	keys      *keyindex.Index
	remoteSeq uint64           // messages of other nodes' records so far
	toCheck   []*loadedAccount // for checkReturns
	pending   []pendingEvent   // to be written
	inFlight  []pendingEvent   // being written
	results   []pendingEvent   // written or not, see resultErr, and not delivered yet
	resultErr *engine.Error
	stopped   *engine.Error

	closed         bool // all messages for accounts are rejected
	draining       *drainRequest
	returnsAwaited int // accounts that have not returned their leases
}

// loadedAccount is an account with an actor: its mailbox, the actor and its state in one piece of memory.
type loadedAccount struct {
	Ref       mailbox.Ref
	actor     AccountActor
	account   account.Account
	at        int    // index in ShardActor.order
	quiet     int    // sweeps since the last question
	remoteSeq uint64 // messages of other nodes' records sent to it
}

// drainRequest is answered when the leases of all accounts are returned.
type drainRequest = mailbox.Question[drainQuery, struct{}]

type drainQuery struct{}

// stopRequest stops the actors of accounts. The answer is those actors, some of which may still be stopping.
type stopRequest = mailbox.Question[stopQuery, []*mailbox.Ref]

type stopQuery struct{}

// ListRequest asks for all accounts of a shard.
type ListRequest = mailbox.Question[ListQuery, *commitlog.StateSnapshot]

// ListQuery is the query of ListRequest.
type ListQuery struct{}

// accountsCreated adds accounts. The journal sends it between the commit that made them and later messages.
type accountsCreated struct {
	mailbox.OneWay
	events []*account.Created
}

// Sweep evicts idle accounts.
type Sweep struct {
	mailbox.OneWay
	more bool // continues
}

// Receive implements mailbox.Actor.
func (s *ShardActor) Receive(l mailbox.Message) {
	s.deliverBefore(l)
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
		s.deliverSome(resultsTurnMax)
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

// Fatal implements mailbox.Actor: questions change nothing in the shard.
func (s *ShardActor) Fatal(l mailbox.Message) bool { return !l.Asked() }

// route passes a message on to an account and returns the account, nil if the message was rejected.
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

// admit passes an admission on and notes the actor in the index of keys.
func (s *ShardActor) admit(m *admission) {
	id, key := m.Query.account, m.Query.key // once it is answered the question may be in use again
	if one := s.route(id, m); one != nil {
		s.keys.SetActor(key, id, &one.Ref)
	}
}

// errNoAccount is the answer to questions about an account that does not exist.
var errNoAccount = &engine.Error{Code: engine.CodeNotFound, Message: "there is no account with this number"}

// load makes the actor of an evicted account.
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

// Internal returns an internal error.
func Internal(cause error) *engine.Error {
	return &engine.Error{Code: engine.CodeInternalError, Message: "an internal error", Cause: cause}
}

// Limits of eviction.
const (
	SweepsIdle   = 4   // sweeps without a question until an account is evicted
	sweepTurnMax = 256 // accounts that one message checks
	roomTriesMax = 8   // accounts that makeRoom checks
)

// sweep checks all accounts and evicts the idle ones. It goes backwards: the account that takes the place of an evicted
// one has been checked, and new accounts are left to the next sweep.
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

// makeRoom evicts an account. It returns false if it does not find an idle one soon.
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

// evict evicts an account if its actor has nothing to do and idle returns true.
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

// created adds new accounts.
func (s *ShardActor) created(events []*account.Created) {
	for _, event := range events {
		account := account.New(event.Account)
		account.Apply(event)
		s.evicted[event.Account] = EncodeDurable(account)
		s.count.Add(1)
	}
}

// halt refuses all changes: the node has stopped.
func (s *ShardActor) halt(why *engine.Error) {
	s.Abort(why)
	for _, one := range s.Loaded {
		one.Ref.Send(&mailbox.Halt{Why: why})
	}
}

// Abort implements mailbox.Actor: it drops all writes. Questions to the accounts are rejected by halt or by the stop of
// their actors.
func (s *ShardActor) Abort(why *engine.Error) {
	s.stopped = why
	s.pending, s.inFlight = nil, nil
	s.drained()
}

// stopAccounts stops the actors of all loaded accounts.
func (s *ShardActor) stopAccounts() []*mailbox.Ref {
	ending := make([]*mailbox.Ref, 0, len(s.Loaded))
	for _, one := range s.Loaded {
		one.Ref.BeginStop()
		ending = append(ending, &one.Ref)
	}
	s.closed, s.Loaded, s.order = true, nil, nil
	return ending
}
