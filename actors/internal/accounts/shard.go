package accounts

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// asksMax bounds the size of one call to the leader. It is the number of events in the call.
const asksMax = 256

// EventsMax is the room for one-way messages (mailbox.Kind.Reserve) of a ShardActor and of the journal. In the worst
// case every account sends an event at the same time.
const EventsMax = 1 << 22

// ShardActor owns a part of the accounts. It starts and stops their actors, and sends their events to the journal,
// which gathers them in batches. On a node of a cluster that does not lead it sends them to the leader. Callers send
// admissions directly to an account's actor. All other messages to an account go through its shard, in order.
type ShardActor struct {
	// Only grants changes after the start.
	parent *Accounts
	actors *mailbox.System
	log    *commitlog.Log
	self   *mailbox.Ref
	index  uint64 // number of this shard, from 0
	grants atomic.Pointer[account.DayGrants]

	Accounts map[uint64]*AccountActor
	waiting  []*eventWrite                    // events that are not sent yet
	writes   map[*commitlog.Write]*eventWrite // events that the journal writes; nil for a grant
	grant    *account.DayGranted              // the grant record that the journal writes, or nil
	asks     []*eventWrite                    // events for the leader
	asked    int                              // the first asks are in the call to the leader that is in progress
	stopped  *engine.Error                    // not nil: why the node has stopped
	draining *leaseReturns                    // not nil after drain: messages to accounts are rejected
}

// Requests to a ShardActor.
type (
	// drainRequest makes all accounts of the shard return their quota leases. The reply comes when all returns are
	// durable.
	drainRequest = mailbox.Request[struct{}, struct{}]
	// ListRequest asks for the IDs of all accounts in a shard.
	ListRequest = mailbox.Request[struct{}, []uint64]
)

// accountCreated tells a shard about a new account. The journal sends it after the event is durable.
type accountCreated struct {
	mailbox.OneWay
	event *account.Created
}

// leaseReturned tells a shard that an account has no more events to write before the stop.
type leaseReturned struct {
	mailbox.OneWay
	failed bool // the account could not return its lease
}

// Receive implements mailbox.Actor.
func (s *ShardActor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *eventWrite:
		s.gather(m)
	case *Refund:
		s.route(m.Query.Account, m)
	case *accountRequest:
		s.route(m.Query, m)
	case *changeRequest:
		s.route(m.Query.account, m)
	case *Flush:
		s.flush()
	case *commitlog.WriteResult:
		s.writeDone(m)
	case *asked:
		s.askDone(m)
	case *accountCreated:
		s.created(m.event)
	case *commitlog.RemoteEvents[account.Event]:
		s.remote(m)
	case *CheckReturns:
		for _, acct := range s.Accounts {
			acct.Ref.Send(&checkReturn{})
		}
	case *commitlog.SnapshotRequest:
		s.addToSnapshot(m)
	case *ListRequest:
		m.Reply(slices.Collect(maps.Keys(s.Accounts)), nil)
	case *drainRequest:
		s.drain(m)
	case *leaseReturned:
		s.draining.awaited--
		s.draining.failed = s.draining.failed || m.failed
		s.endDrain()
	case *mailbox.NodeFailed:
		s.RejectAll(m.Err)
		for _, acct := range s.Accounts {
			acct.Ref.Send(m)
		}
	}
}

// FailsNode implements mailbox.Actor. A panic in a request is not fatal, because requests do not change the shard.
func (s *ShardActor) FailsNode(msg mailbox.Message) bool { return !msg.IsRequest() }

var errNoAccount = &engine.Error{Code: engine.CodeNotFound, Message: "there is no account with this number"}

// route forwards a message to the actor of an account.
func (s *ShardActor) route(id uint64, msg mailbox.Message) {
	switch acct := s.Accounts[id]; {
	case s.draining != nil:
		msg.Reject(mailbox.ErrStopped)
	case acct == nil:
		msg.Reject(errNoAccount)
	default:
		acct.Ref.Send(msg)
	}
}

// policy returns the quota policy, including the shard's grants.
func (s *ShardActor) policy() account.QuotaPolicy {
	policy := s.parent.config.QuotaPolicy
	policy.Grants = s.grants.Load()
	return policy
}

func (s *ShardActor) add(id uint64, state *account.Account) *AccountActor {
	a := &AccountActor{shard: s, ID: id, Account: state, stopped: s.stopped}
	s.actors.Init(&a.Ref, &s.parent.Kinds.Account, a)
	s.Accounts[id] = a
	s.parent.Count.Add(1)
	return a
}

// created starts the actor of a new account. Two first logins of an address at the same time both write the event; the
// second changes nothing.
func (s *ShardActor) created(event *account.Created) {
	if s.Accounts[event.Account] != nil {
		return
	}
	state := account.New(event.Account)
	state.SetNode(s.parent.Node)
	state.Apply(event, s.parent.clock.Now())
	s.add(event.Account, state)
}

// gather sends an urgent event at once, others after FlushDelay.
func (s *ShardActor) gather(w *eventWrite) {
	if s.stopped != nil {
		s.reply(w, s.stopped)
		return
	}
	s.waiting = append(s.waiting, w)
	if w.urgent {
		s.flush()
	} else {
		s.parent.timer.schedule()
	}
}

// reply reports the result of an event to its account.
func (s *ShardActor) reply(w *eventWrite, err *engine.Error) {
	if err != nil && s.draining != nil {
		s.draining.failed = true
	}
	w.err = err
	w.account.Ref.Deliver(w)
}

// flush sends the waiting events to the journal or to the leader.
func (s *ShardActor) flush() {
	waiting := s.waiting
	s.waiting = nil
	for _, w := range waiting {
		if !w.decided {
			s.asks = append(s.asks, w)
			continue
		}
		if lease, leased := w.event.(*account.Leased); leased {
			s.grantDay(lease)
		}
		s.write(w.record, w.term, w)
	}
	s.ask()
}

// write sends a record to the journal. w is nil for a grant.
func (s *ShardActor) write(encoded []byte, term uint64, w *eventWrite) {
	m := &commitlog.Write{From: s.self, Records: [][]byte{encoded}, Term: term}
	s.writes[m] = w
	s.log.Ref.Send(m)
}

// grantDay writes a grant before the shard's first lease of a day, so that the other accounts' first leases of the day
// need no record. A cluster has no grants. With a lease size of 1 there are none either, so the log contains each
// request.
func (s *ShardActor) grantDay(lease *account.Leased) {
	size := s.parent.config.QuotaPolicy.LeaseSize
	if s.parent.Node == 0 && s.draining == nil && size > 1 && s.grant == nil && !s.grants.Load().Covers(lease.Account, lease.Day) {
		s.writeGrant(&account.DayGranted{Day: lease.Day, Size: size})
	}
}

// writeGrant begins or ends the grant of a day.
func (s *ShardActor) writeGrant(grant *account.DayGranted) {
	grant.Shard, grant.Shards, grant.Monotonic = s.index, uint64(len(s.parent.Shards)), s.parent.clock.Now().Monotonic
	if encoded, err := record.Encode(grant); err == nil { // otherwise the shard goes on without a grant
		s.grant = grant
		s.write(encoded, 0, nil)
	}
}

// writeDone reports the result of a write to the account. It begins or ends a grant.
func (s *ShardActor) writeDone(m *commitlog.WriteResult) {
	w, writing := s.writes[m.Write]
	if !writing {
		return // the node has stopped
	}
	delete(s.writes, m.Write)
	if w != nil {
		if _, leased := w.event.(*account.Leased); leased && m.Err == nil {
			s.parent.Leases.Add(1)
		}
		s.reply(w, m.Err)
	} else {
		if m.Err == nil {
			s.grants.Store(s.grants.Load().Apply(*s.grant, true))
		}
		s.grant = nil
	}
	s.endDrain()
}

// remote forwards another node's events to the accounts' actors.
func (s *ShardActor) remote(m *commitlog.RemoteEvents[account.Event]) {
	defer m.Window.Release()
	if s.stopped != nil {
		return
	}
	for _, event := range m.Events {
		if created, ok := event.(*account.Created); ok {
			s.created(created)
			continue
		}
		acct := s.Accounts[account.IDOf(event)]
		if acct == nil {
			panic(fmt.Errorf("apply an event of account %d, which was never created", account.IDOf(event)))
		}
		acct.Ref.Send(&commitlog.RemoteEvents[account.Event]{Events: []account.Event{event}, Window: m.Window.Retain()})
	}
}

// addToSnapshot makes every account add its state to a snapshot.
func (s *ShardActor) addToSnapshot(m *commitlog.SnapshotRequest) {
	if s.stopped != nil {
		m.Reject(s.stopped)
		return
	}
	c, position := m.Snapshot, 0
	c.Accounts[m.Index] = make([][]byte, len(s.Accounts))
	c.Grants[m.Index] = s.grants.Load().OfShard(s.index, uint64(len(s.parent.Shards)))
	c.Pending.Add(int64(len(s.Accounts)))
	for _, acct := range s.Accounts {
		acct.Ref.Deliver(&commitlog.SnapshotRequest{Snapshot: c, Index: m.Index, Position: position})
		position++
	}
	c.PartDone()
}

// RejectAll implements mailbox.Actor. It drops events that are not durable. The accounts' actors reject requests that
// wait for leases. When the shard stops, it first stops these actors.
func (s *ShardActor) RejectAll(err *engine.Error) {
	for _, w := range slices.Concat(slices.Collect(maps.Values(s.writes)), s.waiting, s.asks) {
		if w != nil {
			w.Reject(err)
		}
	}
	s.stopped, s.writes, s.waiting, s.asks = err, nil, nil, nil
	s.endDrain()
	if err == mailbox.ErrStopped {
		for _, acct := range s.Accounts {
			acct.Ref.BeginStop()
		}
		for _, acct := range s.Accounts {
			acct.Ref.Wait()
		}
	}
}

// drainAtOnce bounds the memory of a stop: so many accounts of a shard return their leases at a time.
const drainAtOnce = 512

// leaseReturns tracks the return of all quota leases of a shard at a stop.
type leaseReturns struct {
	request *drainRequest
	next    []*AccountActor // accounts that have not been asked yet
	awaited int             // accounts that have been asked and have not sent leaseReturned yet
	failed  bool            // an account may have used the day's grant without a record, so the grant must not be ended
	ended   bool            // the grant was ended, if necessary
}

// drain makes every account return its quota lease. From then on the shard rejects messages to accounts.
func (s *ShardActor) drain(m *drainRequest) {
	s.grants.Store(s.grants.Load().End())
	s.draining = &leaseReturns{request: m, next: slices.Collect(maps.Values(s.Accounts))}
	s.endDrain()
}

// endDrain asks the next drainAtOnce accounts for their leases when those before have returned theirs. It replies to
// the drainRequest when all leases are returned or the node has stopped.
func (s *ShardActor) endDrain() {
	d := s.draining
	if d == nil || d.request == nil || s.stopped == nil && (d.awaited > 0 || len(s.writes)+len(s.waiting)+len(s.asks) > 0) {
		return
	}
	if s.stopped == nil && len(d.next) > 0 && !d.failed { // after a failure the others would wait as long, in vain
		asked := d.next[:min(drainAtOnce, len(d.next))]
		d.next, d.awaited = d.next[len(asked):], len(asked)
		for _, acct := range asked {
			acct.Ref.Deliver(&returnLease{})
		}
		return
	}
	if s.stopped == nil && !d.ended {
		d.ended = true
		if day := s.grants.Load().Newest(); day != 0 && !d.failed {
			s.writeGrant(&account.DayGranted{Day: day, TakenBack: true})
		}
		s.endDrain()
		return
	}
	d.request.Reply(struct{}{}, nil)
	d.request = nil
}

// Grant decides other nodes' asks for leases and returns (encoded account.Leased and account.Returned), on the leader.
// It returns a result for each: nil if what is granted is durable, ErrNotLeader if nothing was written, so that the
// node may ask again.
func (t *Accounts) Grant(asks [][]byte) []error {
	results := make([]error, len(asks))
	requests := make([]*changeRequest, len(asks))
	decoder := new(record.Decoder)
	for i := range asks {
		event, err := decoder.Event(asks[i])
		ask, ok := event.(account.Event)
		if err != nil || !ok || !ofLease(ask) {
			results[i] = Internal(fmt.Errorf("another node asks for %T, %w", event, err))
			continue
		}
		requests[i] = mailbox.NewRequest[changeQuery, struct{}](changeQuery{account.IDOf(ask), func(a *AccountActor, now account.ClockReading) (account.Event, error) {
			if !a.leasing() {
				if event := a.Account.Grant(ask, now, a.shard.policy()); event != nil {
					return event, nil
				}
			}
			return nil, commitlog.ErrNotLeader
		}})
		t.shardOf(account.IDOf(ask)).Send(requests[i])
	}
	for i, m := range requests {
		if m != nil {
			_, results[i] = m.Wait(t.config.WriteTimeout)
		}
		switch {
		case errors.Is(results[i], mailbox.ErrExpired):
			results[i] = commitlog.ErrOutcomeUnknown
		case errors.Is(results[i], mailbox.ErrStopped):
			results[i] = commitlog.ErrNotLeader
		}
	}
	return results
}

// asked is the result of a shard's call to the leader, for each event.
type asked struct {
	mailbox.OneWay
	results []error
}

// ask sends events of leases to the leader, unless a call is in progress.
func (s *ShardActor) ask() {
	if s.asked > 0 || len(s.asks) == 0 {
		return
	}
	s.asked = min(len(s.asks), asksMax)
	var records [][]byte
	for _, w := range s.asks[:s.asked] {
		records = append(records, w.record)
	}
	s.parent.asking.Add(1)
	s.parent.calls.Go(func() {
		results := s.parent.config.AskLeader(records)
		s.parent.asking.Add(-1)
		s.self.Send(&asked{results: results})
	})
}

// askDone passes the results to the accounts. An event that the leader has written comes with the log.
func (s *ShardActor) askDone(m *asked) {
	done := s.asks[:min(s.asked, len(s.asks))] // none if the node has stopped
	s.asks, s.asked = s.asks[len(done):], 0
	for i, w := range done {
		if err := m.results[i]; err != nil {
			s.reply(w, AsEngineError(err))
		} else {
			s.parent.Leases.Add(1)
		}
	}
	s.ask()
	s.endDrain()
}
