package accounts

import (
	"sync/atomic"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// ShardActor owns a share of the accounts: the encoded state of evicted accounts, and the actors of loaded accounts. It
// loads an account when a message for it comes, evicts it when it is idle (Ref.CloseIdle), and sends the journal
// the events of its accounts. Admissions go straight to the actor of a loaded account. All other messages to an account
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

	evicted    map[uint64]evictedAccount // accounts without an actor
	Loaded     map[uint64]*loadedAccount // accounts with an actor
	order      []*loadedAccount          // the same accounts, for the sweeps
	sweepIndex int                       // next index in order that sweep checks, plus 1
	roomIndex  int                       // index in order that makeRoom checked last
	codec      codec

	keys      *keyindex.Index
	remoteSeq uint64           // messages with records of other nodes so far
	toCheck   []*loadedAccount // accounts that checkReturns has still to ask
	pending   []pendingEvent   // events to be written
	inFlight  []pendingEvent   // events being written
	results   []pendingEvent   // events whose result the accounts have not been sent yet
	resultErr *engine.Error    // of results; nil if they are durable
	stopped   *engine.Error

	closed         bool // all messages for accounts are rejected
	draining       *drainRequest
	returnsAwaited int // accounts that have not returned their leases
}

// loadedAccount is an account with an actor: mailbox, actor and state in one allocation.
type loadedAccount struct {
	Ref        mailbox.Ref
	actor      AccountActor
	account    account.Account
	index      int    // in ShardActor.order
	idleSweeps int    // sweeps since the last request
	remoteSeq  uint64 // messages with records of other nodes that were sent to it
}

// drainRequest is answered when the leases of all accounts are returned.
type drainRequest = mailbox.Request[drainCommand, struct{}]

type drainCommand struct{}

// stopRequest stops the actors of the loaded accounts and is answered with them. Some may still be stopping.
type stopRequest = mailbox.Request[stopCommand, []*mailbox.Ref]

type stopCommand struct{}

// ListRequest asks for all accounts of a shard.
type ListRequest = mailbox.Request[ListQuery, *commitlog.StateSnapshot]

// ListQuery is the query of ListRequest.
type ListQuery struct{}

// accountsCreated adds accounts. The journal sends it after the commit that created them and before later messages.
type accountsCreated struct {
	mailbox.OneWay
	events []*account.Created
}

// Sweep evicts idle accounts.
type Sweep struct {
	mailbox.OneWay
	more bool // continues a sweep
}

// Receive implements mailbox.Actor.
func (s *ShardActor) Receive(msg mailbox.Message) {
	s.deliverBefore(msg)
	switch m := msg.(type) {
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
		s.halt(m.Err)
	}
}

// Fatal implements mailbox.Actor. Requests change nothing in the shard.
func (s *ShardActor) Fatal(msg mailbox.Message) bool { return !msg.IsRequest() }

// route passes a message on to an account and returns the account, nil if the message was rejected.
func (s *ShardActor) route(id uint64, msg mailbox.Message) *loadedAccount {
	if s.closed {
		msg.Reject(mailbox.ErrStopped)
		return nil
	}
	acct := s.Loaded[id]
	if acct == nil {
		var err *engine.Error
		if acct, err = s.load(id); err != nil {
			msg.Reject(err)
			return nil
		}
	}
	acct.Ref.Send(msg)
	return acct
}

// admit passes an admission on and notes the actor in the index of keys.
func (s *ShardActor) admit(m *admission) {
	id, key := m.Query.account, m.Query.key // read first: an answered request may be used again
	if acct := s.route(id, m); acct != nil {
		s.keys.SetActor(key, id, &acct.Ref)
	}
}

// errNoAccount is the answer to requests about an account that does not exist.
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
	acct := &loadedAccount{index: len(s.order)}
	if err := s.codec.load(state, &acct.account, s.node, s.common.clock.start()); err != nil {
		return nil, Internal(err)
	}
	acct.actor = AccountActor{accountCommon: s.common, ID: id, Account: &acct.account, stopped: s.stopped}
	s.actors.Init(&acct.Ref, s.kind, &acct.actor)
	s.Loaded[id], s.order = acct, append(s.order, acct)
	delete(s.evicted, id)
	s.loadedCount.Add(1)
	return acct, nil
}

// Internal returns an internal error.
func Internal(cause error) *engine.Error {
	return &engine.Error{Code: engine.CodeInternalError, Message: "an internal error", Cause: cause}
}

// Limits of eviction.
const (
	SweepsIdle   = 4   // sweeps without a request after which an account is evicted
	sweepTurnMax = 256 // accounts that one message checks
	roomTriesMax = 8   // accounts that makeRoom checks
)

// sweep checks all accounts and evicts idle ones. It goes backwards, because evict moves the last account, which has
// been checked, into the free place. New accounts are left to the next sweep.
func (s *ShardActor) sweep(more bool) {
	if !more {
		s.sweepIndex = len(s.order)
	}
	now := s.common.clock.Now()
	s.sweepIndex = min(s.sweepIndex, len(s.order))
	for range min(sweepTurnMax, s.sweepIndex) {
		s.sweepIndex--
		acct := s.order[s.sweepIndex]
		s.evict(acct, func() bool {
			if acct.actor.asked {
				acct.idleSweeps, acct.actor.asked = 0, false
			}
			acct.idleSweeps++
			return acct.idleSweeps >= SweepsIdle && acct.actor.idle(now)
		})
	}
	if s.sweepIndex > 0 {
		s.self.Send(&Sweep{more: true})
	}
}

// makeRoom evicts an idle account. It returns false if none of the next roomTriesMax accounts is idle.
func (s *ShardActor) makeRoom() bool {
	now := s.common.clock.Now()
	for range min(roomTriesMax, len(s.order)) {
		s.roomIndex = (s.roomIndex + 1) % len(s.order)
		acct := s.order[s.roomIndex]
		if s.evict(acct, func() bool { return acct.actor.idle(now) }) {
			return true
		}
	}
	return false
}

// evict evicts an account if no message waits for its actor and idle returns true.
func (s *ShardActor) evict(acct *loadedAccount, idle func() bool) bool {
	if !acct.Ref.CloseIdle(idle) {
		return false
	}
	id := acct.actor.ID
	s.evicted[id] = s.codec.evict(&acct.account)
	acct.account.EachKey(func(key account.Digest) { s.keys.SetActor(key, id, nil) })
	last := len(s.order) - 1
	s.order[acct.index] = s.order[last]
	s.order[acct.index].index = acct.index
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
func (s *ShardActor) halt(err *engine.Error) {
	s.Abort(err)
	for _, acct := range s.Loaded {
		acct.Ref.Send(&mailbox.Halt{Err: err})
	}
}

// Abort implements mailbox.Actor: it drops all writes. The actors of the accounts reject their own requests.
func (s *ShardActor) Abort(err *engine.Error) {
	s.stopped = err
	s.pending, s.inFlight = nil, nil
	s.drained()
}

// stopAccounts stops the actors of all loaded accounts.
func (s *ShardActor) stopAccounts() []*mailbox.Ref {
	refs := make([]*mailbox.Ref, 0, len(s.Loaded))
	for _, acct := range s.Loaded {
		acct.Ref.BeginStop()
		refs = append(refs, &acct.Ref)
	}
	s.closed, s.Loaded, s.order = true, nil, nil
	return refs
}
