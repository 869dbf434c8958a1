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
	self    *mailbox.Ref
	actors  *mailbox.System
	kind    *mailbox.Kind // of accounts
	journal *mailbox.Ref
	name    string
	node    engine.NodeID // 0: there are no others
	quorum  commitlog.Quorum
	clock   *steadyClock
	terms   account.Terms
	limits  accountLimits
	liveMax int           // in all shards together
	living  *atomic.Int64 // of them

	population *atomic.Int64 // accounts in all shards together
	leases     *atomic.Uint64

	idle map[uint64]dormant // accounts without an actor
	Live map[uint64]*living // accounts with one

	newest, oldest *living // live accounts by their last message
	sweeps         uint64
	spawned        uint64

	keys    *keyindex.Index
	heard   uint64    // messages about other nodes' records
	resting []*living // will be asked whether they rest from their lease
	outbox  *outbox
	pending []wish // to be written
	flight  []wish // being written
	stopped *engine.Error

	closed  bool // nothing is passed on any more
	leaving *settling
	awaited int // accounts that have not given their leases back yet
}

// living is an account with an actor.
type living struct {
	id           uint64
	actor        *AccountActor
	Ref          *mailbox.Ref
	sweep        uint64 // the sweep after which somebody last asked
	heard        uint64 // messages about other nodes' records that it was sent
	newer, older *living
}

// settling is asked by Close: answered when every account's lease is back in the journal.
type settling = mailbox.Question[settleQuery, struct{}]

type settleQuery struct{}

// dismissal is asked by Close when everything is kept: the accounts' actors end. The answer is those that may not have ended yet.
type dismissal = mailbox.Question[dismissQuery, []*mailbox.Ref]

type dismissQuery struct{}

// Census asks for all accounts of a shard.
type Census = mailbox.Question[CensusQuery, *commitlog.Cut]

// CensusQuery asks for all accounts of a shard.
type CensusQuery struct{}

// born brings new accounts. The journal sends it, between the commit that made them and whatever comes
// after that.
type born struct {
	mailbox.OneWay
	events []*account.Created
}

// Sweep is the time to put idle accounts aside.
type Sweep struct {
	mailbox.OneWay
	rest bool // of a sweep that has begun
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
	case *Wished:
		s.collect()
	case *commitlog.Committed:
		s.committed(m)
	case *born:
		s.born(m.events)
	case *commitlog.ForeignEvents[account.Event]:
		s.foreign(m)
	case *Sweep:
		s.sweep(m.rest)
	case *Round:
		s.round(m.rest)
	case *commitlog.Share:
		s.surrender(m)
	case *Census:
		s.census(m)
	case *settling:
		s.settle(m)
	case *dismissal:
		m.Reply(s.dismiss(), nil)
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
	account := s.Live[id]
	if account == nil {
		var err *engine.Error
		if account, err = s.wake(id); err != nil {
			l.Reject(err)
			return
		}
	}
	s.touch(account)
	account.Ref.Send(l)
}

// errNoAccount is the answer to a question about an account that there is not.
var errNoAccount = &engine.Error{Code: engine.CodeNotFound, Message: "there is no account with this number"}

// wake gives an idle account its actor.
func (s *ShardActor) wake(id uint64) (*living, *engine.Error) {
	switch _, known := s.idle[id]; {
	case !known:
		return nil, errNoAccount
	case s.living.Load() >= int64(s.liveMax) && !s.makeRoom():
		return nil, mailbox.ErrOverloaded
	}
	one, err := s.spawn(id)
	if err != nil {
		return nil, Internal(err)
	}
	return one, nil
}

// spawn starts the actor of an idle account.
func (s *ShardActor) spawn(id uint64) (*living, error) {
	account, err := s.idle[id].wake(s.node, s.clock.start())
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
	one := &living{id: id, actor: actor, Ref: ref}
	s.Live[id] = one
	delete(s.idle, id)
	s.living.Add(1)
	s.link(one)
	return one, nil
}

// Internal is the answer to a question whose work failed for a cause that is no caller's.
func Internal(cause error) *engine.Error {
	return &engine.Error{Code: engine.CodeInternalError, Message: "an internal error", Cause: cause}
}

// touch makes an account the one that was asked last.
func (s *ShardActor) touch(one *living) {
	one.sweep = s.sweeps
	if s.newest != one {
		s.unlink(one)
		s.link(one)
	}
}

func (s *ShardActor) link(one *living) {
	one.older, one.newer = s.newest, nil
	if s.newest != nil {
		s.newest.newer = one
	} else {
		s.oldest = one
	}
	s.newest = one
}

func (s *ShardActor) unlink(one *living) {
	if one.newer != nil {
		one.newer.older = one.older
	} else {
		s.newest = one.older
	}
	if one.older != nil {
		one.older.newer = one.newer
	} else {
		s.oldest = one.newer
	}
}

// Pace of putting aside.
const (
	SweepsIdle   = 4   // an account is idle when nobody asked for so many sweeps
	sweepTurnMax = 256 // accounts that one message puts aside, so that nobody waits long
	roomTriesMax = 8   // accounts that are looked at when there is no room for another one
)

// sweep puts the accounts aside that nobody asks about.
func (s *ShardActor) sweep(rest bool) {
	if !rest {
		s.sweeps++
	}
	now := s.clock.Now()
	for range sweepTurnMax {
		one := s.oldest
		if one == nil || s.sweeps-one.sweep < SweepsIdle {
			return
		}
		if !s.putAside(one, now) {
			s.touch(one) // it is looked at again after as long
		}
	}
	s.self.Send(&Sweep{rest: true})
}

// makeRoom puts aside whichever of the accounts that were quiet longest can be.
func (s *ShardActor) makeRoom() bool {
	now := s.clock.Now()
	for range roomTriesMax {
		one := s.oldest
		if one == nil {
			return false
		}
		if s.putAside(one, now) {
			return true
		}
		sweep := one.sweep
		s.touch(one)
		one.sweep = sweep
	}
	return false
}

// putAside ends the actor of an account that has nothing to do and keeps what it knew. When the mailbox is
// quiet the actor has done all that was ever sent to it, and the account belongs to whoever looks: the
// mailbox's lock hands it over.
func (s *ShardActor) putAside(one *living, now account.Moment) bool {
	if !one.Ref.Idle() || !one.actor.idle(now) {
		return false
	}
	s.idle[one.id] = PutAside(one.actor.Account)
	delete(s.Live, one.id)
	s.living.Add(-1)
	s.unlink(one)
	one.Ref.BeginStop()
	return true
}

// born takes new accounts in.
func (s *ShardActor) born(events []*account.Created) {
	for _, event := range events {
		account := account.New(event.Account)
		account.Apply(event)
		s.idle[event.Account] = Freeze(account)
		s.population.Add(1)
	}
}

// halt gives up all changes: the node has stopped.
func (s *ShardActor) halt(why *engine.Error) {
	s.Abort(why)
	for _, one := range s.Live {
		one.Ref.Send(&mailbox.Halt{Why: why})
	}
}

// Abort ends writing. The accounts that wait are told by halt, or by their own end.
func (s *ShardActor) Abort(why *engine.Error) {
	s.stopped = why
	s.pending, s.flight = nil, nil
	s.settled()
}

// dismiss sends the actors of all live accounts their end.
func (s *ShardActor) dismiss() []*mailbox.Ref {
	ending := make([]*mailbox.Ref, 0, len(s.Live))
	for _, one := range s.Live {
		one.Ref.BeginStop()
		ending = append(ending, one.Ref)
	}
	s.closed, s.Live = true, nil
	return ending
}
