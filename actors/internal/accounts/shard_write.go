package accounts

import (
	"slices"

	"github.com/tasard/tasard/actors/internal/commitlog"
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
type batch struct {
	waiting  []pendingEvent
	inFlight []pendingEvent
}

// collect takes the events from the outbox and starts to write them.
func (s *ShardActor) collect() {
	events, returned := s.common.outbox.take()
	if s.stopped == nil {
		s.batch.waiting = append(s.batch.waiting, events...)
	} else {
		for _, p := range events {
			p.account.Ref.Deliver(p.account.eventWritten(p.event, s.stopped))
		}
	}
	if s.draining != nil {
		s.draining.awaited -= returned
	}
	s.write()
	s.endDrain()
}

// write sends waiting events to the journal, up to the limits of one write, unless a write is in flight.
func (s *ShardActor) write() {
	b := &s.batch
	if len(b.inFlight) > 0 {
		return
	}
	s.rejectConflicts()
	if len(b.waiting) == 0 {
		return
	}
	var records [][]byte
	bytes := 0
	for _, p := range b.waiting {
		if len(records) == shardRecordsMax || len(records) > 0 && bytes+len(p.record) > shardBytesMax {
			break
		}
		records, bytes = append(records, p.record), bytes+len(p.record)
	}
	b.inFlight, b.waiting = b.waiting[:len(records):len(records)], b.waiting[len(records):]
	s.journal.Send(&commitlog.Write{From: s.self, Records: records, RemoteSeq: s.remoteSeq})
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
	done := s.batch.inFlight
	s.batch.inFlight = nil
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
	awaited int // accounts that have not called outbox.returned yet
}

// drain makes every account return its quota lease, and rejects later messages to accounts.
func (s *ShardActor) drain(m *drainRequest) {
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
	if d == nil || d.request == nil || s.stopped == nil && (d.awaited > 0 || len(s.batch.inFlight)+len(s.batch.waiting) > 0) {
		return
	}
	d.request.Reply(struct{}{}, nil)
	d.request = nil
}
