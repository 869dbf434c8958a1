package accounts

import (
	"sync/atomic"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// ShardActor has a part of the accounts, each of which is an actor from the start of the node to its stop. The shard
// gathers the events of its accounts and writes them to the journal in batches (shard_write.go). Callers send
// admissions directly to the actor of an account. All other messages to an account go through its shard, in order.
type ShardActor struct {
	self    *mailbox.Ref
	actors  *mailbox.System
	kind    *mailbox.Kind // the kind of the account actors
	journal *mailbox.Ref
	node    engine.NodeID // ID of this node; 0 without a cluster
	index   uint64        // number of this shard
	shards  uint64        // number of all shards
	common  *accountCommon

	count  *atomic.Int64  // number of all accounts (Accounts.Count)
	leases *atomic.Uint64 // number of quota leases written by this process (Accounts.Leases)

	Accounts  map[uint64]*AccountActor
	remoteSeq uint64        // number of RemoteEvents messages (events of other nodes) received
	batch     batch         // events of the accounts that are not durable yet
	stopped   *engine.Error // why the node has stopped, or nil
	draining  *leaseReturns // not nil after drain
	closed    bool          // after drain or stopAccounts: messages to accounts are rejected
}

// drainRequest makes all accounts of the shard return their quota leases. The reply comes when the returns are durable.
type drainRequest = mailbox.Request[drainCommand, struct{}]

type drainCommand struct{}

// stopRequest makes the actors of all accounts stop. The reply has these actors, which may still be stopping.
type stopRequest = mailbox.Request[stopCommand, []*mailbox.Ref]

type stopCommand struct{}

// ListRequest asks for the IDs of all accounts of a shard.
type ListRequest = mailbox.Request[ListQuery, []uint64]

// ListQuery is the Query of ListRequest.
type ListQuery struct{}

// accountsCreated tells a shard about new accounts. The journal sends it when the events are durable.
type accountsCreated struct {
	mailbox.OneWay
	events []*account.Created
}

// Receive implements mailbox.Actor.
func (s *ShardActor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
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
	case *commitlog.WriteResult:
		s.writeDone(m.Err)
	case *accountsCreated:
		s.created(m.events)
	case *commitlog.RemoteEvents[account.Event]:
		s.remote(m)
	case *CheckReturns:
		s.checkReturns()
	case *commitlog.SnapshotRequest:
		s.addToSnapshot(m)
	case *ListRequest:
		m.Reply(s.list(), nil)
	case *drainRequest:
		s.drain(m)
	case *stopRequest:
		m.Reply(s.stopAccounts(), nil)
	case *mailbox.NodeFailed:
		s.halt(m)
	}
}

// FailsNode implements mailbox.Actor. A panic over a request is not fatal, because requests do not change the shard.
func (s *ShardActor) FailsNode(msg mailbox.Message) bool { return !msg.IsRequest() }

var errNoAccount = &engine.Error{Code: engine.CodeNotFound, Message: "there is no account with this number"}

// route forwards a message to the actor of an account.
func (s *ShardActor) route(id uint64, msg mailbox.Message) {
	switch acct := s.Accounts[id]; {
	case s.closed:
		msg.Reject(mailbox.ErrStopped)
	case acct == nil:
		msg.Reject(errNoAccount)
	default:
		acct.Ref.Send(msg)
	}
}

// Internal returns an error with CodeInternalError.
func Internal(cause error) *engine.Error {
	return &engine.Error{Code: engine.CodeInternalError, Message: "an internal error", Cause: cause}
}

// add starts the actor of an account.
func (s *ShardActor) add(id uint64, state *account.Account) *AccountActor {
	a := &AccountActor{accountCommon: s.common, ID: id, Account: state, stopped: s.stopped}
	s.actors.Init(&a.Ref, s.kind, a)
	s.Accounts[id] = a
	s.count.Add(1)
	return a
}

// created starts the actors of new accounts.
func (s *ShardActor) created(events []*account.Created) {
	for _, event := range events {
		state := account.New(event.Account)
		state.SetNode(s.node)
		state.Apply(event)
		s.add(event.Account, state)
	}
}

func (s *ShardActor) list() []uint64 {
	ids := make([]uint64, 0, len(s.Accounts))
	for id := range s.Accounts {
		ids = append(ids, id)
	}
	return ids
}

// addToSnapshot makes every account add its state to a snapshot.
func (s *ShardActor) addToSnapshot(m *commitlog.SnapshotRequest) {
	if s.stopped != nil {
		m.Reject(s.stopped)
		return
	}
	c, position := m.Snapshot, 0
	c.Accounts[m.Index] = make([][]byte, len(s.Accounts))
	c.Grants[m.Index] = s.common.grants.Load().OfShard(s.index, s.shards)
	c.Pending.Add(int64(len(s.Accounts)))
	for _, acct := range s.Accounts {
		acct.Ref.Deliver(&commitlog.SnapshotRequest{Snapshot: c, Index: m.Index, Position: position})
		position++
	}
	c.PartDone()
}

// halt makes the shard and its accounts reject all changes, because the node has stopped with an error.
func (s *ShardActor) halt(m *mailbox.NodeFailed) {
	s.RejectAll(m.Err)
	for _, acct := range s.Accounts {
		acct.Ref.Send(m)
	}
}

// RejectAll implements mailbox.Actor. It drops events that are not durable. The accounts' actors reject the requests
// that wait for these events.
func (s *ShardActor) RejectAll(err *engine.Error) {
	s.stopped, s.batch = err, batch{}
	s.endDrain()
}

// stopAccounts begins to stop the actors of all accounts, and returns them.
func (s *ShardActor) stopAccounts() []*mailbox.Ref {
	refs := make([]*mailbox.Ref, 0, len(s.Accounts))
	for _, acct := range s.Accounts {
		acct.Ref.BeginStop()
		refs = append(refs, &acct.Ref)
	}
	s.closed, s.Accounts = true, nil
	return refs
}
