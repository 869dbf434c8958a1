package accounts

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Limits of one write of a shard. A batch of the journal holds several.
const (
	shardRecordsMax = 4096
	shardBytesMax   = 768 << 10
)

const _ = uint(commitlog.BundlePayloadMax - shardBytesMax - shardRecordsMax*commitlog.RecordOverhead)

// pendingEvent is an event that is to be written.
type pendingEvent struct {
	account       uint64
	event         account.Event
	record        []byte
	remoteSeq     uint64 // AccountActor.remoteSeq when it was decided
	unconditional bool   // no record of another node makes it void
	final         bool   // the last one at the stop; without an event there was no lease
	evicted       bool   // the account has no actor
}

// outbox holds events of the accounts of a shard. At most one message about it is under way. An event for which no
// request waits stays until the flusher comes, or goes with an urgent one.
type outbox struct {
	shard    *mailbox.Ref
	flusher  *outboxFlusher
	notified atomic.Bool

	mu     sync.Mutex
	events []pendingEvent
}

// OutboxFilled makes a shard take the events of its outbox.
type OutboxFilled struct{ mailbox.OneWay }

func (o *outbox) post(w pendingEvent, pressing bool) {
	o.mu.Lock()
	o.events = append(o.events, w)
	o.mu.Unlock()
	if pressing {
		o.notify()
	} else {
		o.flusher.schedule()
	}
}

// notify sends the shard OutboxFilled.
func (o *outbox) notify() {
	if !o.notified.Swap(true) {
		o.shard.Send(&OutboxFilled{})
	}
}

// empty reports whether there are no events.
func (o *outbox) empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.events) == 0
}

// take removes all events. It clears notified first: an event that is posted meanwhile is either taken now or sends
// another message.
func (o *outbox) take() []pendingEvent {
	o.notified.Store(false)
	o.mu.Lock()
	defer o.mu.Unlock()
	wishes := o.events
	o.events = nil
	return wishes
}

// collect takes the events of the accounts.
func (s *ShardActor) collect() {
	for _, w := range s.common.outbox.take() {
		switch {
		case w.event == nil:
			s.countReturned(w)
		case s.stopped != nil:
			s.deliver(w, s.stopped)
		default:
			s.pending = append(s.pending, w)
		}
	}
	s.write()
}

// write sends the journal pending events, unless a write is under way.
func (s *ShardActor) write() {
	if len(s.inFlight)+len(s.results) > 0 {
		return
	}
	s.rejectConflicts()
	if len(s.pending) == 0 {
		return
	}
	records := make([][]byte, 0, min(len(s.pending), shardRecordsMax))
	bytes := 0
	for _, w := range s.pending {
		if len(records) == shardRecordsMax || len(records) > 0 && bytes+len(w.record) > shardBytesMax {
			break
		}
		records, bytes = append(records, w.record), bytes+len(w.record)
	}
	s.inFlight = s.pending[:len(records):len(records)]
	s.pending = s.pending[len(records):]
	s.journal.Send(&commitlog.Write{From: s.self, Records: records, RemoteSeq: s.remoteSeq})
}

// rejectConflicts returns events to their accounts that records of other nodes have made void.
func (s *ShardActor) rejectConflicts() {
	kept := s.pending[:0]
	for _, w := range s.pending {
		if one := s.Loaded[w.account]; one == nil || w.unconditional || w.remoteSeq == one.remoteSeq {
			kept = append(kept, w)
		} else {
			s.deliver(w, commitlog.ErrConflict)
		}
	}
	s.pending = kept
}

// resultsTurnMax is how many results one message delivers, so that requests come between them.
const resultsTurnMax = 8

// deliverMore continues deliverSome.
type deliverMore struct{ mailbox.OneWay }

// committed delivers the result of a write to its accounts, in order.
func (s *ShardActor) committed(err *engine.Error) {
	done := s.inFlight
	s.inFlight = nil
	if err == commitlog.ErrConflict {
		s.pending = slices.Concat(done, s.pending) // the record of another node was about some account of the shard
		s.write()
		s.drained()
		return
	}
	s.results, s.resultErr = done, err
	s.deliverSome(resultsTurnMax)
}

// deliverSome delivers so many results, and has the others delivered by the next messages.
func (s *ShardActor) deliverSome(count int) {
	some := s.results[:min(count, len(s.results))]
	s.results = s.results[len(some):]
	for _, w := range some {
		if _, leased := w.event.(*account.Leased); leased && s.resultErr == nil {
			s.leases.Add(1)
		}
		s.deliver(w, s.resultErr)
	}
	if len(s.results) > 0 {
		s.self.Send(&deliverMore{})
		return
	}
	s.write()
	s.drained()
}

// deliverBefore delivers all results before a message that must see them, such as a request for a snapshot.
func (s *ShardActor) deliverBefore(l mailbox.Message) {
	switch l.(type) {
	case *admission, *Refund, *usage, *accountAsk, *change, *OutboxFilled, *deliverMore:
	default:
		if len(s.results) > 0 {
			s.deliverSome(len(s.results))
		}
	}
}

// deliver delivers the result of one event.
func (s *ShardActor) deliver(w pendingEvent, err *engine.Error) {
	if w.evicted {
		s.evictedReturned(w, err)
	} else if one := s.Loaded[w.account]; one != nil {
		one.Ref.Deliver(&eventWritten{event: w.event, err: err})
	}
	s.countReturned(w)
}

// drain makes every account return its lease.
func (s *ShardActor) drain(m *drainRequest) {
	s.draining, s.closed = m, true
	if s.stopped != nil {
		s.drained()
		return
	}
	s.returnsAwaited = len(s.Loaded) + 1
	for _, one := range s.Loaded {
		one.Ref.Send(&returnLease{})
	}
	now := s.common.clock.Now()
	for id, state := range s.evicted {
		if state.hasProcessState() {
			s.returnEvicted(id, state, now)
		}
	}
	s.write()
	s.countReturned(pendingEvent{final: true})
}

// returnEvicted returns the lease of an evicted account.
func (s *ShardActor) returnEvicted(id uint64, state evictedAccount, now account.ClockReading) {
	account, err := state.load(s.node, s.common.clock.start())
	if err != nil {
		return
	}
	event := account.Return(now)
	if event == nil {
		return
	}
	record, err := record.Encode(event)
	if err != nil {
		return
	}
	s.returnsAwaited++
	s.pending = append(s.pending, pendingEvent{account: id, event: event, record: record, unconditional: true, final: true, evicted: true})
}

// evictedReturned applies the return of an evicted account.
func (s *ShardActor) evictedReturned(w pendingEvent, err *engine.Error) {
	if err != nil {
		return
	}
	account, failed := s.evicted[w.account].load(s.node, s.common.clock.start())
	if failed != nil {
		return
	}
	account.Apply(w.event)
	s.evicted[w.account] = EncodeDurable(account)
}

// countReturned counts accounts that have returned their leases.
func (s *ShardActor) countReturned(w pendingEvent) {
	if w.final {
		s.returnsAwaited--
		s.drained()
	}
}

// drained answers drainRequest when all leases are returned.
func (s *ShardActor) drained() {
	if s.draining == nil || s.stopped == nil && (s.returnsAwaited > 0 || len(s.inFlight)+len(s.results)+len(s.pending) > 0) {
		return
	}
	s.draining.Reply(struct{}{}, nil)
	s.draining = nil
}
