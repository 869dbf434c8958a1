package accounts

import (
	"sync/atomic"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// ShardActor keeps a part of the accounts. An evicted account is encoded. A loaded account has an actor. The shard
// loads an account when a message for the account arrives, and evicts an idle account (mailbox.Ref.CloseIdle). It
// writes the events of its accounts to the journal. Callers may send admissions directly to the actor of a loaded
// account. All other messages to an account go through its shard, in order.
type ShardActor struct {
	self        *mailbox.Ref
	actors      *mailbox.System
	kind        *mailbox.Kind // the kind of the account actors
	journal     *mailbox.Ref
	node        engine.NodeID // ID of this node; 0 without a cluster
	common      *accountCommon
	loadedMax   int           // maximum of loadedCount
	loadedCount *atomic.Int64 // number of loaded accounts on this node (Accounts.Loaded)

	count  *atomic.Int64  // number of all accounts (Accounts.Count)
	leases *atomic.Uint64 // number of quota leases written by this process (Accounts.Leases)

	evicted    map[uint64]evictedAccount // accounts without an actor
	Loaded     map[uint64]*loadedAccount // accounts with an actor
	order      []*loadedAccount          // the accounts in Loaded; sweep and makeRoom go through this list
	sweepIndex int                       // sweep still has to check order[:sweepIndex]
	roomIndex  int                       // index in order that makeRoom checked last
	codec      codec

	keys      *keyindex.Index
	remoteSeq uint64           // number of RemoteEvents messages (events of other nodes) received
	toCheck   []*loadedAccount // loaded accounts to which checkReturns has still to send a checkReturn
	pending   []pendingEvent   // events that wait for the next write
	inFlight  []pendingEvent   // events that the journal is writing
	results   []pendingEvent   // events of a finished write; deliverSome tells their accounts the result
	delivered int              // number of results that deliverSome has delivered
	resultErr *engine.Error    // error of the finished write, or nil
	toJournal commitlog.Write  // the request to the journal to write inFlight
	spare     []pendingEvent   // memory for pending
	stopped   *engine.Error    // why the node has stopped, or nil

	closed         bool // after drain or stopAccounts: messages to accounts are rejected
	draining       *drainRequest
	returnsAwaited int // number of accounts that have not returned their leases yet
}

// loadedAccount is an account with its mailbox and its actor, in one allocation.
type loadedAccount struct {
	Ref        mailbox.Ref
	actor      AccountActor
	account    account.Account
	index      int    // index of the account in ShardActor.order
	idleSweeps int    // number of sweeps since the last request
	remoteSeq  uint64 // number of RemoteEvents messages sent to the actor
}

// drainRequest makes all accounts of the shard return their quota leases (reserved parts of quotas). The reply comes
// when the returns are durable.
type drainRequest = mailbox.Request[drainCommand, struct{}]

type drainCommand struct{}

// stopRequest makes the actors of all loaded accounts stop. The reply has these actors, which may still be stopping.
type stopRequest = mailbox.Request[stopCommand, []*mailbox.Ref]

type stopCommand struct{}

// ListRequest asks for all accounts of a shard.
type ListRequest = mailbox.Request[ListQuery, *commitlog.StateSnapshot]

// ListQuery is the Query of ListRequest.
type ListQuery struct{}

// accountsCreated tells a shard about new accounts. The journal sends it when the events are durable.
type accountsCreated struct {
	mailbox.OneWay
	events []*account.Created
}

// Sweep tells a shard to evict idle accounts.
type Sweep struct {
	mailbox.OneWay
	more bool // false starts a sweep; true continues it, in a message from the shard to itself
}

// Receive implements mailbox.Actor.
func (s *ShardActor) Receive(msg mailbox.Message) {
	s.deliverBefore(msg)
	switch m := msg.(type) {
	case *admissionRequest:
		s.admit(m)
	case *Refund:
		s.route(m.Query.Account, m)
	case *usageRequest:
		s.route(m.Query.account, m)
	case *accountRequest:
		s.route(m.Query.account, m)
	case *changeRequest:
		s.route(m.Query.account, m)
	case *OutboxFilled:
		s.collect()
	case *commitlog.Committed:
		s.committed(m.Err)
	case *deliverMore:
		s.deliverSome(resultsPerMessage)
	case *accountsCreated:
		s.created(m.events)
	case *commitlog.RemoteEvents[account.Event]:
		s.remote(m)
	case *Sweep:
		s.sweep(m.more)
	case *CheckReturns:
		s.checkReturns(m.more)
	case *commitlog.SnapshotRequest:
		s.addToSnapshot(m)
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

// Fatal implements mailbox.Actor. A panic over a request is not fatal, because requests do not change the shard.
func (s *ShardActor) Fatal(msg mailbox.Message) bool { return !msg.IsRequest() }

// route forwards a message to the actor of an account, and loads the account if necessary. It returns the account, or
// nil if it rejected the message.
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

// admit forwards an admission to the actor of the account. It also adds the actor to the index of keys, so that Admit
// sends the next admission directly to the actor.
func (s *ShardActor) admit(m *admissionRequest) {
	id, key := m.Query.account, m.Query.key // read before route, because a caller reuses m after the reply
	if acct := s.route(id, m); acct != nil {
		s.keys.SetActor(key, id, &acct.Ref)
	}
}

var errNoAccount = &engine.Error{Code: engine.CodeNotFound, Message: "there is no account with this number"}

// load decodes an evicted account and starts its actor.
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

// Internal returns an error with CodeInternalError.
func Internal(cause error) *engine.Error {
	return &engine.Error{Code: engine.CodeInternalError, Message: "an internal error", Cause: cause}
}

// SweepsIdle is the number of sweeps without a request after which an account is evicted.
const SweepsIdle = 4

const (
	accountsPerMessage = 256 // number of accounts that one Sweep or CheckReturns message checks
	makeRoomChecks     = 8   // number of accounts that makeRoom checks
)

// sweep evicts idle accounts. It checks the list order from its end, because evict fills a gap in the list with the
// account at the end, which sweep has already checked. It skips accounts that were loaded after the sweep started.
func (s *ShardActor) sweep(more bool) {
	if !more {
		s.sweepIndex = len(s.order)
	}
	now := s.common.clock.Now()
	s.sweepIndex = min(s.sweepIndex, len(s.order))
	for range min(accountsPerMessage, s.sweepIndex) {
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

// makeRoom evicts one idle account. It returns false if none of the next makeRoomChecks accounts in the list order is
// idle.
func (s *ShardActor) makeRoom() bool {
	now := s.common.clock.Now()
	for range min(makeRoomChecks, len(s.order)) {
		s.roomIndex = (s.roomIndex + 1) % len(s.order)
		acct := s.order[s.roomIndex]
		if s.evict(acct, func() bool { return acct.actor.idle(now) }) {
			return true
		}
	}
	return false
}

// evict evicts an account if its actor has no messages and idle returns true. It calls idle while the actor cannot run.
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

func (s *ShardActor) created(events []*account.Created) {
	for _, event := range events {
		account := account.New(event.Account)
		account.Apply(event)
		s.evicted[event.Account] = EncodeDurable(account)
		s.count.Add(1)
	}
}

// halt makes the shard and its accounts reject all changes, because the node has stopped with an error.
func (s *ShardActor) halt(err *engine.Error) {
	s.Abort(err)
	for _, acct := range s.Loaded {
		acct.Ref.Send(&mailbox.Halt{Err: err})
	}
}

// Abort implements mailbox.Actor. It drops events that are not durable. The actors of the accounts reject the requests
// that wait for these events.
func (s *ShardActor) Abort(err *engine.Error) {
	s.stopped = err
	s.pending, s.inFlight = nil, nil
	s.drained()
}

// stopAccounts begins to stop the actors of all loaded accounts, and returns them.
func (s *ShardActor) stopAccounts() []*mailbox.Ref {
	refs := make([]*mailbox.Ref, 0, len(s.Loaded))
	for _, acct := range s.Loaded {
		acct.Ref.BeginStop()
		refs = append(refs, &acct.Ref)
	}
	s.closed, s.Loaded, s.order = true, nil, nil
	return refs
}
