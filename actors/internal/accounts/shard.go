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

// Limits of one write of a shard. The journal combines the writes of several shards in one batch.
const (
	shardRecordsMax = 1024
	shardBytesMax   = 768 << 10
)

// This line does not compile unless the largest write fits into one batch.
const _ = uint(commitlog.BundlePayloadMax - shardBytesMax - shardRecordsMax*commitlog.RecordOverhead)

// shardReserve is a ShardActor's room for one-way messages (mailbox.Kind.Reserve). In the worst case every account of a
// shard sends an event at the same time.
const shardReserve = 1 << 22

// ShardActor owns a part of the accounts. It starts and stops their actors, and writes their events to the journal in
// batches. Callers send admissions directly to an account's actor. All other messages to an account go through its
// shard, in order.
type ShardActor struct {
	// Only grants changes after the start.
	parent *Accounts
	actors *mailbox.System
	log    *commitlog.Log
	self   *mailbox.Ref
	index  uint64 // number of this shard, from 0
	grants atomic.Pointer[account.DayGrants]

	Accounts map[uint64]*AccountActor
	batch    batch         // events that are not durable yet
	stopped  *engine.Error // not nil: why the node has stopped
	draining *leaseReturns // not nil after drain
	closed   bool          // after drain or stopAccounts: messages to accounts are rejected
}

// batch holds a shard's events until they are durable. At most one write is in flight; meanwhile events wait.
//
//	waiting  --write-->  inFlight  --writeDone-->  result to the accounts
//
// A write may also contain one grant record, which begins or ends the grant of a day.
type batch struct {
	waiting       []*eventWrite
	inFlight      []*eventWrite
	due           bool                // write the waiting events as soon as no write is in flight
	grant         *account.DayGranted // the grant record to write next, or nil
	grantInFlight *account.DayGranted
}

func (b *batch) writing() bool { return len(b.inFlight) > 0 || b.grantInFlight != nil }

func (b *batch) empty() bool { return !b.writing() && len(b.waiting) == 0 && b.grant == nil }

// Requests to a ShardActor.
type (
	// drainRequest makes all accounts of the shard return their quota leases. The reply comes when all returns are
	// durable.
	drainRequest = mailbox.Request[drainCommand, struct{}]
	drainCommand struct{}
	// stopRequest stops the actors of all accounts. The reply lists these actors, which may still be stopping.
	stopRequest = mailbox.Request[stopCommand, []*mailbox.Ref]
	stopCommand struct{}
	// ListRequest asks for the IDs of all accounts in a shard.
	ListRequest = mailbox.Request[ListQuery, []uint64]
	// ListQuery is the Query of ListRequest.
	ListQuery struct{}
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
		s.route(m.Query.account, m)
	case *changeRequest:
		s.route(m.Query.account, m)
	case *Flush:
		s.flush()
	case *commitlog.WriteResult:
		s.writeDone(m.Err)
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
	case *stopRequest:
		m.Reply(s.stopAccounts(), nil)
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
	case s.closed:
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

// gather adds an event to the waiting events. It writes an urgent event at once, others after FlushDelay.
func (s *ShardActor) gather(w *eventWrite) {
	if s.stopped != nil {
		s.reply(w, s.stopped)
		return
	}
	s.batch.waiting = append(s.batch.waiting, w)
	s.grantDay(w)
	if w.urgent {
		s.flush()
	} else {
		s.parent.timer.schedule()
	}
}

func (s *ShardActor) reply(w *eventWrite, err *engine.Error) {
	w.err = err
	w.account.Ref.Deliver(w)
}

// flush writes the waiting events now or, if a write is in flight, after that write.
func (s *ShardActor) flush() {
	s.batch.due = true
	s.write()
}

// write sends waiting events to the journal if they are due and no write is in flight, up to the limits of one write.
// On a node of a cluster that does not lead it sends them to the leader.
func (s *ShardActor) write() {
	b := &s.batch
	if b.writing() || !b.due {
		return
	}
	term, decides := s.log.Decides()
	s.rejectOutdated(term)
	if !decides {
		s.ask()
		return
	}
	records, bytes := s.encodeGrant()
	count := 0
	for _, w := range b.waiting {
		if len(records) == shardRecordsMax || count > 0 && bytes+len(w.record) > shardBytesMax {
			break
		}
		records, bytes, count = append(records, w.record), bytes+len(w.record), count+1
	}
	b.inFlight, b.waiting = b.waiting[:count:count], b.waiting[count:]
	b.due = len(b.waiting) > 0
	if len(records) > 0 {
		s.log.Ref.Send(&commitlog.Write{From: s.self, Records: records, Term: term})
	}
}

// grantDay makes a grant when the shard's first lease of a day arrives, so that the other accounts' first leases of the
// day need no record. A cluster has no grants. With a lease size of 1 there are none either, so the log contains each
// request.
func (s *ShardActor) grantDay(w *eventWrite) {
	if s.parent.Node != 0 || s.draining != nil || s.parent.config.QuotaPolicy.LeaseSize <= 1 || s.batch.grant != nil || s.batch.grantInFlight != nil {
		return
	}
	if lease, leased := w.event.(*account.Leased); leased && !s.grants.Load().Covers(w.account.ID, lease.Day) {
		s.batch.grant = s.newGrant(lease.Day)
	}
}

func (s *ShardActor) newGrant(day engine.Date) *account.DayGranted {
	return &account.DayGranted{
		Shard: s.index, Shards: uint64(len(s.parent.Shards)), Day: day, Size: s.parent.config.QuotaPolicy.LeaseSize, Monotonic: s.parent.clock.Now().Monotonic,
	}
}

// takeGrantBack ends this process's newest grant. Call it after all accounts have returned their unspent parts.
func (s *ShardActor) takeGrantBack() {
	if day := s.grants.Load().Newest(); day != 0 && !s.draining.failed {
		s.batch.grant = s.newGrant(day)
		s.batch.grant.TakenBack, s.batch.grant.Size = true, 0
		s.flush()
	}
}

// encodeGrant removes the waiting grant, if any, and returns its encoded record and size for a write.
func (s *ShardActor) encodeGrant() (records [][]byte, size int) {
	grant := s.batch.grant
	if s.batch.grant = nil; grant == nil {
		return nil, 0
	}
	encoded, err := record.Encode(grant)
	if err != nil {
		return nil, 0 // the shard goes on without a grant
	}
	s.batch.grantInFlight = grant
	return [][]byte{encoded}, len(encoded)
}

// rejectOutdated rejects waiting events that were decided in another term: before this node became the leader, or
// before it ceased to be.
func (s *ShardActor) rejectOutdated(term uint64) {
	if s.parent.Node == 0 {
		return
	}
	s.batch.waiting = slices.DeleteFunc(s.batch.waiting, func(w *eventWrite) bool {
		outdated := w.term != term
		if outdated {
			s.reply(w, commitlog.ErrNotLeader)
		}
		return outdated
	})
}

// writeDone reports the result of a write to the accounts.
func (s *ShardActor) writeDone(err *engine.Error) {
	b := &s.batch
	done, grant := b.inFlight, b.grantInFlight
	b.inFlight, b.grantInFlight = nil, nil
	if grant != nil && err == nil {
		s.grants.Store(s.grants.Load().Apply(*grant, true))
	}
	if s.draining != nil && err != nil {
		s.draining.failed = true
	}
	for _, w := range done {
		if _, leased := w.event.(*account.Leased); leased && err == nil {
			s.parent.Leases.Add(1)
		}
		s.reply(w, err)
	}
	s.write()
	s.endDrain()
}

// remote forwards another node's events to the accounts' actors.
func (s *ShardActor) remote(m *commitlog.RemoteEvents[account.Event]) {
	defer m.Window.Release()
	if s.stopped != nil || s.Accounts == nil {
		return // the node or the accounts of the shard have stopped
	}
	byAccount := map[uint64][]account.Event{}
	for _, event := range m.Events {
		id := account.IDOf(event)
		byAccount[id] = append(byAccount[id], event)
	}
	for id, events := range byAccount {
		s.remoteAccount(id, events, m.Window)
	}
}

func (s *ShardActor) remoteAccount(id uint64, events []account.Event, window *commitlog.WindowEntry) {
	if created, ok := events[0].(*account.Created); ok {
		s.created(created)
		events = events[1:]
	}
	if len(events) == 0 {
		return
	}
	acct := s.Accounts[id]
	if acct == nil {
		panic(fmt.Errorf("apply an event of account %d, which was never created", id))
	}
	acct.Ref.Send(&commitlog.RemoteEvents[account.Event]{Events: events, Window: window.Retain()})
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
// wait for leases.
func (s *ShardActor) RejectAll(err *engine.Error) {
	for _, w := range slices.Concat(s.batch.inFlight, s.batch.waiting) {
		w.Reject(err)
	}
	s.stopped, s.batch = err, batch{}
	s.endDrain()
}

// drainAtOnce bounds the memory of a stop: so many accounts of a shard return their leases at a time.
const drainAtOnce = 512

// leaseReturns tracks the return of all quota leases of a shard at a stop.
type leaseReturns struct {
	request *drainRequest
	next    []*AccountActor // accounts that have not been asked yet
	awaited int             // accounts that have been asked and have not sent leaseReturned yet
	failed  bool            // an account may have used the day's grant without a record, so the grant must not be ended
	ended   bool            // takeGrantBack was called
}

// drain makes every account return its quota lease. From then on the shard rejects messages to accounts.
func (s *ShardActor) drain(m *drainRequest) {
	s.grants.Store(s.grants.Load().End())
	s.draining, s.closed = &leaseReturns{request: m, next: slices.Collect(maps.Values(s.Accounts))}, true
	s.endDrain()
}

// endDrain asks the next drainAtOnce accounts for their leases when those before have returned theirs. It replies to
// the drainRequest when all leases are returned or the node has stopped.
func (s *ShardActor) endDrain() {
	d := s.draining
	if d == nil || d.request == nil || s.stopped == nil && (d.awaited > 0 || !s.batch.empty()) {
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
		s.takeGrantBack()
		s.endDrain()
		return
	}
	d.request.Reply(struct{}{}, nil)
	d.request = nil
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

// ask sends waiting events of leases to the leader, in one call.
func (s *ShardActor) ask() {
	b := &s.batch
	count, bytes := 0, 0
	var asks [][]byte
	for _, w := range b.waiting {
		if count == shardRecordsMax || count > 0 && bytes+len(w.record) > shardBytesMax {
			break
		}
		asks, bytes, count = append(asks, w.record), bytes+len(w.record), count+1
	}
	b.inFlight, b.waiting = b.waiting[:count:count], b.waiting[count:]
	b.due = len(b.waiting) > 0
	if count == 0 {
		return
	}
	s.parent.asking.Add(1)
	s.parent.calls.Go(func() {
		results := s.parent.config.AskLeader(asks)
		s.parent.asking.Add(-1)
		s.self.Send(&asked{results: results})
	})
}

// askDone passes the results to the accounts. An event that the leader has written comes with the log.
func (s *ShardActor) askDone(m *asked) {
	done := s.batch.inFlight
	s.batch.inFlight = nil
	for i, w := range done {
		switch err := m.results[i]; {
		case err != nil:
			if s.draining != nil {
				s.draining.failed = true
			}
			s.reply(w, AsEngineError(err))
		default:
			s.parent.Leases.Add(1)
		}
	}
	s.write()
	s.endDrain()
}
