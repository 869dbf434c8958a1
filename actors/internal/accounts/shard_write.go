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
	unconditional bool   // it stays valid after records of other nodes
	final         bool   // the last of its account before the stop; event is nil if there was no lease to return
	evicted       bool   // the account has no actor
}

// outbox holds events of the accounts of a shard until the shard takes them. At most one OutboxFilled is under way. An
// event for which no request waits stays until the flusher runs or an urgent event is posted.
type outbox struct {
	shard    *mailbox.Ref
	flusher  *outboxFlusher
	notified atomic.Bool

	mu     sync.Mutex
	events []pendingEvent
}

// OutboxFilled makes a shard take the events of its outbox.
type OutboxFilled struct{ mailbox.OneWay }

func (o *outbox) post(p pendingEvent, urgent bool) {
	o.mu.Lock()
	o.events = append(o.events, p)
	o.mu.Unlock()
	if urgent {
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
	events := o.events
	o.events = nil
	return events
}

// collect takes the events of the accounts.
func (s *ShardActor) collect() {
	for _, p := range s.common.outbox.take() {
		switch {
		case p.event == nil:
			s.countReturned(p)
		case s.stopped != nil:
			s.deliver(p, s.stopped)
		default:
			s.pending = append(s.pending, p)
		}
	}
	s.write()
}

// write sends pending events to the journal, unless a write is under way.
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
	for _, p := range s.pending {
		if len(records) == shardRecordsMax || len(records) > 0 && bytes+len(p.record) > shardBytesMax {
			break
		}
		records, bytes = append(records, p.record), bytes+len(p.record)
	}
	s.inFlight = s.pending[:len(records):len(records)]
	s.pending = s.pending[len(records):]
	s.journal.Send(&commitlog.Write{From: s.self, Records: records, RemoteSeq: s.remoteSeq})
}

// rejectConflicts rejects pending events that were decided before a record of another node about the same account.
func (s *ShardActor) rejectConflicts() {
	remaining := s.pending[:0]
	for _, p := range s.pending {
		if acct := s.Loaded[p.account]; acct == nil || p.unconditional || p.remoteSeq == acct.remoteSeq {
			remaining = append(remaining, p)
		} else {
			s.deliver(p, commitlog.ErrConflict)
		}
	}
	s.pending = remaining
}

// resultsTurnMax is how many results are delivered in one turn, so that requests are handled in between.
const resultsTurnMax = 8

// deliverMore continues deliverSome.
type deliverMore struct{ mailbox.OneWay }

// committed delivers the result of a write to its accounts, in order.
func (s *ShardActor) committed(err *engine.Error) {
	done := s.inFlight
	s.inFlight = nil
	if err == commitlog.ErrConflict {
		s.pending = slices.Concat(done, s.pending) // the record of another node may be about other accounts
		s.write()
		s.drained()
		return
	}
	s.results, s.resultErr = done, err
	s.deliverSome(resultsTurnMax)
}

// deliverSome delivers up to count results. A deliverMore message continues with the others.
func (s *ShardActor) deliverSome(count int) {
	batch := s.results[:min(count, len(s.results))]
	s.results = s.results[len(batch):]
	for _, p := range batch {
		if _, leased := p.event.(*account.Leased); leased && s.resultErr == nil {
			s.leases.Add(1)
		}
		s.deliver(p, s.resultErr)
	}
	if len(s.results) > 0 {
		s.self.Send(&deliverMore{})
		return
	}
	s.write()
	s.drained()
}

// deliverBefore delivers all results before a message that depends on them, such as a request for a snapshot.
func (s *ShardActor) deliverBefore(msg mailbox.Message) {
	switch msg.(type) {
	case *admission, *Refund, *usage, *accountAsk, *change, *OutboxFilled, *deliverMore:
	default:
		if len(s.results) > 0 {
			s.deliverSome(len(s.results))
		}
	}
}

// deliver delivers the result of one event.
func (s *ShardActor) deliver(p pendingEvent, err *engine.Error) {
	if p.evicted {
		s.evictedReturned(p, err)
	} else if acct := s.Loaded[p.account]; acct != nil {
		acct.Ref.Deliver(&eventWritten{event: p.event, err: err})
	}
	s.countReturned(p)
}

// drain makes every account return its lease.
func (s *ShardActor) drain(m *drainRequest) {
	s.draining, s.closed = m, true
	if s.stopped != nil {
		s.drained()
		return
	}
	s.returnsAwaited = len(s.Loaded) + 1
	for _, acct := range s.Loaded {
		acct.Ref.Send(&returnLease{})
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
func (s *ShardActor) evictedReturned(p pendingEvent, err *engine.Error) {
	if err != nil {
		return
	}
	account, loadErr := s.evicted[p.account].load(s.node, s.common.clock.start())
	if loadErr != nil {
		return
	}
	account.Apply(p.event)
	s.evicted[p.account] = EncodeDurable(account)
}

// countReturned counts accounts that have returned their leases.
func (s *ShardActor) countReturned(p pendingEvent) {
	if p.final {
		s.returnsAwaited--
		s.drained()
	}
}

// drained answers drainRequest if all leases are returned or the node has stopped.
func (s *ShardActor) drained() {
	if s.draining == nil || s.stopped == nil && (s.returnsAwaited > 0 || len(s.inFlight)+len(s.results)+len(s.pending) > 0) {
		return
	}
	s.draining.Reply(struct{}{}, nil)
	s.draining = nil
}
