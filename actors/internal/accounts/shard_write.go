package accounts

import (
	"slices"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Limits of one write of a shard. The journal combines the writes of several shards in one batch.
const (
	shardRecordsMax = 1024
	shardBytesMax   = 768 << 10
)

// This line compiles only if the largest write fits into one batch.
const _ = uint(commitlog.BundlePayloadMax - shardBytesMax - shardRecordsMax*commitlog.RecordOverhead)

// pendingEvent is an event that is not durable yet.
type pendingEvent struct {
	account       *AccountActor
	event         account.Event
	record        []byte // the encoded event
	remoteSeq     uint32 // AccountActor.remoteSeq when the event was made
	unconditional bool   // events of other nodes cannot make the event invalid
}

// batch has the events of a shard that are not durable yet. At most one write is in flight; meanwhile events wait.
//
//	waiting  --write-->  inFlight  --writeDone-->  the accounts get the result
//
// A grant of a day, or its end, is written with them.
type batch struct {
	waiting       []pendingEvent
	inFlight      []pendingEvent
	grant         *account.DayGranted // waiting
	grantInFlight *account.DayGranted
}

func (b *batch) writing() bool { return len(b.inFlight) > 0 || b.grantInFlight != nil }

func (b *batch) empty() bool { return !b.writing() && len(b.waiting) == 0 && b.grant == nil }

// collect takes the events from the outbox and starts to write them.
func (s *ShardActor) collect() {
	events, returned, failed := s.common.outbox.take()
	if s.stopped == nil {
		s.batch.waiting = append(s.batch.waiting, events...)
		s.grantDay(events)
	} else {
		for _, p := range events {
			p.account.Ref.Deliver(p.account.eventWritten(p.event, s.stopped))
		}
	}
	if s.draining != nil {
		s.draining.awaited -= returned
		s.draining.failed = s.draining.failed || failed
	}
	s.write()
	s.endDrain()
}

// write sends waiting events to the journal, up to the limits of one write, unless a write is in flight.
func (s *ShardActor) write() {
	b := &s.batch
	if b.writing() {
		return
	}
	s.rejectConflicts()
	if b.empty() {
		return
	}
	records, bytes := s.encodeGrant()
	count := 0
	for _, p := range b.waiting {
		if len(records) == shardRecordsMax || count > 0 && bytes+len(p.record) > shardBytesMax {
			break
		}
		records, bytes, count = append(records, p.record), bytes+len(p.record), count+1
	}
	b.inFlight, b.waiting = b.waiting[:count:count], b.waiting[count:]
	s.journal.Send(&commitlog.Write{From: s.self, Records: records, RemoteSeq: s.remoteSeq})
}

// grantDay makes a grant for a day when the first account of the shard takes a lease of that day, so that the other
// accounts need no record for their first lease of the day. With a lease size of 1 each request is in the log.
func (s *ShardActor) grantDay(events []pendingEvent) {
	if s.node != 0 || s.draining != nil || s.common.quotaPolicy.LeaseSize <= 1 || s.batch.grant != nil || s.batch.grantInFlight != nil {
		return
	}
	for _, p := range events {
		if lease, leased := p.event.(*account.Leased); leased && !s.common.grants.Load().Covers(p.account.ID, lease.Day) {
			s.batch.grant = s.newGrant(lease.Day)
			return
		}
	}
}

func (s *ShardActor) newGrant(day engine.Date) *account.DayGranted {
	return &account.DayGranted{
		Shard: s.index, Shards: s.shards, Day: day, Size: s.common.quotaPolicy.LeaseSize, Monotonic: s.common.clock.Now().Monotonic,
	}
}

// takeGrantBack ends the newest grant of this process, when all accounts have returned what they had of it.
func (s *ShardActor) takeGrantBack() {
	if day := s.common.grants.Load().Newest(); day != 0 && !s.draining.failed {
		s.batch.grant = s.newGrant(day)
		s.batch.grant.TakenBack, s.batch.grant.Size = true, 0
		s.write()
	}
}

// encodeGrant begins to write the grant that waits. It returns its record, if there is one, and its size.
func (s *ShardActor) encodeGrant() (records [][]byte, size int) {
	grant := s.batch.grant
	if s.batch.grant = nil; grant == nil {
		return nil, 0
	}
	encoded, err := record.Encode(grant)
	if err != nil {
		return nil, 0 // there is no grant then
	}
	s.batch.grantInFlight = grant
	return [][]byte{encoded}, len(encoded)
}

// rejectConflicts removes waiting events that were made before the account received the newest event of another node.
// Their accounts get ErrConflict.
func (s *ShardActor) rejectConflicts() {
	if s.node == 0 {
		return
	}
	s.batch.waiting = slices.DeleteFunc(s.batch.waiting, func(p pendingEvent) bool {
		conflict := !p.unconditional && p.remoteSeq != p.account.remoteSent
		if conflict {
			p.account.Ref.Deliver(p.account.eventWritten(p.event, commitlog.ErrConflict))
		}
		return conflict
	})
}

// writeDone tells the accounts the result of a write. After a conflict with events of another node it writes the events
// again, without those that rejectConflicts removes.
func (s *ShardActor) writeDone(err *engine.Error) {
	done, grant := s.batch.inFlight, s.batch.grantInFlight
	s.batch.inFlight, s.batch.grantInFlight = nil, nil
	if grant != nil && err == nil {
		s.common.grants.Store(s.common.grants.Load().Apply(*grant, true))
	}
	if s.draining != nil && err != nil {
		s.draining.failed = true
	}
	if err == commitlog.ErrConflict {
		s.batch.waiting = slices.Concat(done, s.batch.waiting)
		done = nil
	}
	for _, p := range done {
		if _, leased := p.event.(*account.Leased); leased && err == nil {
			s.leases.Add(1)
		}
		p.account.Ref.Deliver(p.account.eventWritten(p.event, err))
	}
	s.write()
	s.endDrain()
}

// leaseReturns is the return of all quota leases of a shard when the node stops.
type leaseReturns struct {
	request *drainRequest
	awaited int  // accounts that have not called outbox.returned yet
	failed  bool // perhaps an account has used the grant of the day and not recorded it
	ended   bool // takeGrantBack was called
}

// drain makes every account return its quota lease, and rejects later messages to accounts.
func (s *ShardActor) drain(m *drainRequest) {
	s.common.grants.Store(s.common.grants.Load().End())
	s.draining, s.closed = &leaseReturns{request: m, awaited: len(s.Accounts)}, true
	if s.stopped == nil {
		for _, acct := range s.Accounts {
			acct.Ref.Deliver(&returnLease{})
		}
	}
	s.endDrain()
}

// endDrain replies to the drainRequest, if there is one, when all leases are returned or the node has stopped.
func (s *ShardActor) endDrain() {
	d := s.draining
	if d == nil || d.request == nil || s.stopped == nil && (d.awaited > 0 || !s.batch.empty()) {
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
