package accounts

import (
	"strconv"
	"sync/atomic"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// ShardActor owns a share of the accounts: all that are idle, as few bytes each, and the way to the actors
// of those that are not. Every message to an account comes through it, in order, questions and outcomes
// alike. So it knows better than anybody when an account's actor has nothing to do: nobody else can wake
// it, and no message is lost when it is put aside.
type ShardActor struct {
	self        *mailbox.Ref
	actors      *mailbox.System
	kind        *mailbox.Kind // of accounts
	journal     *mailbox.Ref
	name        string
	node        engine.NodeID // 0: there are no others
	quorum      commitlog.Quorum
	clock       *steadyClock
	terms       account.QuotaPolicy
	limits      accountLimits
	loadedMax   int           // in all shards together
	loadedCount *atomic.Int64 // of them

	count  *atomic.Int64 // accounts in all shards together
	leases *atomic.Uint64

	evicted map[uint64]evictedAccount // accounts without an actor
	Loaded  map[uint64]*loadedAccount // accounts with one

	mostRecent, leastRecent *loadedAccount // live accounts by their last message
	sweeps                  uint64
	spawned                 uint64

	keys      *keyindex.Index
	remoteSeq uint64           // messages about other nodes' records
	toCheck   []*loadedAccount // will be asked whether they rest from their lease
	outbox    *outbox
	pending   []pendingEvent // to be written
	inFlight  []pendingEvent // being written
	stopped   *engine.Error

	closed         bool // nothing is passed on any more
	draining       *drainRequest
	returnsAwaited int // accounts that have not given their leases back yet
}

// loadedCount is an account with an actor.
type loadedAccount struct {
	id           uint64
	actor        *AccountActor
	Ref          *mailbox.Ref
	askedSweep   uint64 // the sweep after which somebody last asked
	remoteSeq    uint64 // messages about other nodes' records that it was sent
	newer, older *loadedAccount
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

// Sweep is the time to put idle accounts aside.
type Sweep struct {
	mailbox.OneWay
	more bool // of a sweep that has begun
}

// Receive is one line for each message.
func (s *ShardActor) Receive(l mailbox.Message) {
	switch m := l.(type) {
	case *admission:
		s.route(m.Query.account, m)
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
		s.committed(m)
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

// route passes a message on to the actor of an account.
func (s *ShardActor) route(id uint64, l mailbox.Message) {
	if s.closed {
		l.Reject(mailbox.ErrStopped)
		return
	}
	account := s.Loaded[id]
	if account == nil {
		var err *engine.Error
		if account, err = s.load(id); err != nil {
			l.Reject(err)
			return
		}
	}
	s.touch(account)
	account.Ref.Send(l)
}

// errNoAccount is the answer to a question about an account that there is not.
var errNoAccount = &engine.Error{Code: engine.CodeNotFound, Message: "there is no account with this number"}

// load gives an idle account its actor.
func (s *ShardActor) load(id uint64) (*loadedAccount, *engine.Error) {
	switch _, known := s.evicted[id]; {
	case !known:
		return nil, errNoAccount
	case s.loadedCount.Load() >= int64(s.loadedMax) && !s.makeRoom():
		return nil, mailbox.ErrOverloaded
	}
	one, err := s.spawn(id)
	if err != nil {
		return nil, Internal(err)
	}
	return one, nil
}

// spawn starts the actor of an idle account.
func (s *ShardActor) spawn(id uint64) (*loadedAccount, error) {
	account, err := s.evicted[id].load(s.node, s.clock.start())
	if err != nil {
		return nil, err
	}
	actor := &AccountActor{
		ID: id, Account: account, terms: s.terms, clock: s.clock, quorum: s.quorum, outbox: s.outbox, limits: s.limits, stopped: s.stopped,
	}
	s.spawned++
	ref, err := s.actors.Spawn(s.name+"-"+strconv.FormatUint(s.spawned, 36), s.kind, actor)
	if err != nil {
		return nil, err
	}
	one := &loadedAccount{id: id, actor: actor, Ref: ref}
	s.Loaded[id] = one
	delete(s.evicted, id)
	s.loadedCount.Add(1)
	s.link(one)
	return one, nil
}

// Internal is the answer to a question whose work failed for a cause that is no caller's.
func Internal(cause error) *engine.Error {
	return &engine.Error{Code: engine.CodeInternalError, Message: "an internal error", Cause: cause}
}

// touch makes an account the one that was asked last.
func (s *ShardActor) touch(one *loadedAccount) {
	one.askedSweep = s.sweeps
	if s.mostRecent != one {
		s.unlink(one)
		s.link(one)
	}
}

func (s *ShardActor) link(one *loadedAccount) {
	one.older, one.newer = s.mostRecent, nil
	if s.mostRecent != nil {
		s.mostRecent.newer = one
	} else {
		s.leastRecent = one
	}
	s.mostRecent = one
}

func (s *ShardActor) unlink(one *loadedAccount) {
	if one.newer != nil {
		one.newer.older = one.older
	} else {
		s.mostRecent = one.older
	}
	if one.older != nil {
		one.older.newer = one.newer
	} else {
		s.leastRecent = one.newer
	}
}

// Pace of putting aside.
const (
	SweepsIdle   = 4   // an account is idle when nobody asked for so many sweeps
	sweepTurnMax = 256 // accounts that one message puts aside, so that nobody waits long
	roomTriesMax = 8   // accounts that are looked at when there is no room for another one
)

// askedSweep puts the accounts aside that nobody asks about.
func (s *ShardActor) sweep(rest bool) {
	if !rest {
		s.sweeps++
	}
	now := s.clock.Now()
	for range sweepTurnMax {
		one := s.leastRecent
		if one == nil || s.sweeps-one.askedSweep < SweepsIdle {
			return
		}
		if !s.evict(one, now) {
			s.touch(one) // it is looked at again after as long
		}
	}
	s.self.Send(&Sweep{more: true})
}

// makeRoom puts aside whichever of the accounts that were quiet longest can be.
func (s *ShardActor) makeRoom() bool {
	now := s.clock.Now()
	for range roomTriesMax {
		one := s.leastRecent
		if one == nil {
			return false
		}
		if s.evict(one, now) {
			return true
		}
		sweep := one.askedSweep
		s.touch(one)
		one.askedSweep = sweep
	}
	return false
}

// evict ends the actor of an account that has nothing to do and keeps what it knew. When the mailbox is
// quiet the actor has done all that was ever sent to it, and the account belongs to whoever looks: the
// mailbox's lock hands it over.
func (s *ShardActor) evict(one *loadedAccount, now account.ClockReading) bool {
	if !one.Ref.Idle() || !one.actor.idle(now) {
		return false
	}
	s.evicted[one.id] = EncodeEvicted(one.actor.Account)
	delete(s.Loaded, one.id)
	s.loadedCount.Add(-1)
	s.unlink(one)
	one.Ref.BeginStop()
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
		ending = append(ending, one.Ref)
	}
	s.closed, s.Loaded = true, nil
	return ending
}
