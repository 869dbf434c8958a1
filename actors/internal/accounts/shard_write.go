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

// Limits of one write. A shard is an actor that keeps a part of the accounts. The journal combines the writes of
// several shards in one batch.
const (
	shardRecordsMax = 4096
	shardBytesMax   = 768 << 10
)

// This line compiles only if the largest write fits into one batch.
const _ = uint(commitlog.BundlePayloadMax - shardBytesMax - shardRecordsMax*commitlog.RecordOverhead)

// pendingEvent is an event that is not durable yet.
type pendingEvent struct {
	account       uint64
	event         account.Event
	record        []byte // the encoded event
	remoteSeq     uint64 // AccountActor.remoteSeq when the event was made
	unconditional bool   // events of other nodes cannot make the event invalid
	final         bool   // the last event before a stop; event is nil if the account had no quota lease to return
	evicted       bool   // the account has no actor
}

// outbox collects events of the accounts of a shard. The shard takes the events when it receives OutboxFilled. The
// outboxFlusher sends this message: at once if an event is urgent, else after FlushDelay.
type outbox struct {
	shard    *mailbox.Ref
	flusher  *outboxFlusher
	notified atomic.Bool // an OutboxFilled is in the mailbox of the shard

	mu      sync.Mutex
	events  []pendingEvent
	encoder record.Encoder
}

// OutboxFilled tells a shard to take the events from its outbox.
type OutboxFilled struct{ mailbox.OneWay }

func (o *outbox) post(p pendingEvent, urgent bool) {
	o.mu.Lock()
	o.events = append(o.events, p)
	o.mu.Unlock()
	if urgent {
		o.flusher.hurry()
	} else {
		o.flusher.schedule()
	}
}

func (o *outbox) encode(event account.Event) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.encoder.Encode(event)
}

func (o *outbox) notify() {
	if !o.notified.Swap(true) {
		o.shard.Send(&OutboxFilled{})
	}
}

func (o *outbox) empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.events) == 0
}

// take moves all events to the end of a list. It clears notified first, so that no event is forgotten: an event that
// another goroutine posts during take is either in the result or causes another OutboxFilled.
func (o *outbox) take(to []pendingEvent) []pendingEvent {
	o.notified.Store(false)
	o.mu.Lock()
	defer o.mu.Unlock()
	to = append(to, o.events...)
	o.events = reuse(o.events)
	return to
}

// reuse empties a list and keeps its memory. It frees the memory of a list with room for more than shardRecordsMax
// elements.
func reuse[T any](list []T) []T {
	if cap(list) > shardRecordsMax {
		return nil
	}
	clear(list)
	return list[:0]
}

// collect takes the events from the outbox and starts to write them.
func (s *ShardActor) collect() {
	known := len(s.pending)
	s.pending = s.common.outbox.take(s.pending)
	taken := s.pending[known:]
	s.pending = s.pending[:known]
	for _, p := range taken {
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

// write sends pending events to the journal, up to the limits of one write. It does nothing until the accounts have the
// result of the previous write.
func (s *ShardActor) write() {
	if len(s.inFlight)+len(s.results) > 0 {
		return
	}
	s.rejectConflicts()
	if len(s.pending) == 0 {
		return
	}
	records, bytes := s.toJournal.Records[:0], 0
	for _, p := range s.pending {
		if len(records) == shardRecordsMax || len(records) > 0 && bytes+len(p.record) > shardBytesMax {
			break
		}
		records, bytes = append(records, p.record), bytes+len(p.record)
	}
	if count := len(records); count == len(s.pending) {
		s.inFlight, s.pending, s.spare = s.pending, s.spare, nil
	} else {
		s.inFlight, s.pending = s.pending[:count:count], s.pending[count:]
	}
	s.toJournal = commitlog.Write{From: s.self, Records: records, RemoteSeq: s.remoteSeq}
	s.journal.Send(&s.toJournal)
}

// rejectConflicts removes pending events that were made before the account received the newest event of another node.
// Their accounts get ErrConflict.
func (s *ShardActor) rejectConflicts() {
	if s.node == 0 {
		return
	}
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

// resultsPerMessage is the number of results that the shard delivers before it handles other messages.
const resultsPerMessage = 8

// deliverMore is a message of the shard to itself: it calls deliverSome again.
type deliverMore struct{ mailbox.OneWay }

// committed handles the result of a write. After a conflict with events of another node it writes the batch again,
// without the events that rejectConflicts removes. Any other result goes to the accounts.
func (s *ShardActor) committed(err *engine.Error) {
	done := s.inFlight
	s.inFlight = nil
	if err == commitlog.ErrConflict {
		s.pending = slices.Concat(done, s.pending)
		s.write()
		s.drained()
		return
	}
	s.results, s.resultErr = done, err
	s.deliverSome(resultsPerMessage)
}

// deliverSome delivers up to count results, in order, and sends deliverMore if results remain. After the last result it
// starts the next write.
func (s *ShardActor) deliverSome(count int) {
	remaining := s.results[s.delivered:]
	remaining = remaining[:min(count, len(remaining))]
	s.delivered += len(remaining)
	for _, p := range remaining {
		if _, leased := p.event.(*account.Leased); leased && s.resultErr == nil {
			s.leases.Add(1)
		}
		s.deliver(p, s.resultErr)
	}
	if s.delivered < len(s.results) {
		s.self.Send(&deliverMore{})
		return
	}
	s.spare, s.results, s.delivered = reuse(s.results), nil, 0
	s.write()
	s.drained()
}

// deliverBefore delivers all results if the handling of msg depends on them. For example, a snapshot must include all
// durable events.
func (s *ShardActor) deliverBefore(msg mailbox.Message) {
	switch msg.(type) {
	case *admissionRequest, *Refund, *usageRequest, *accountRequest, *changeRequest, *OutboxFilled, *deliverMore:
	default:
		if len(s.results) > 0 {
			s.deliverSome(len(s.results))
		}
	}
}

func (s *ShardActor) deliver(p pendingEvent, err *engine.Error) {
	if p.evicted {
		s.evictedReturned(p, err)
	} else if acct := s.Loaded[p.account]; acct != nil {
		acct.Ref.Deliver(acct.actor.eventWritten(p.event, err))
	}
	s.countReturned(p)
}

// drain makes every account return its quota lease (a reserved part of its quota), and rejects later messages to
// accounts.
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
		if state.hasEvictedState() {
			s.returnEvicted(id, state, now)
		}
	}
	s.write()
	s.countReturned(pendingEvent{final: true})
}

// returnEvicted returns the lease of an evicted account: it makes the event and adds it to pending.
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

// evictedReturned handles the result of writing the event of returnEvicted. If the event is durable, it applies the
// event to the evicted account.
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

func (s *ShardActor) countReturned(p pendingEvent) {
	if p.final {
		s.returnsAwaited--
		s.drained()
	}
}

// drained replies to the drainRequest, if there is one, when all leases are returned or the node has stopped.
func (s *ShardActor) drained() {
	if s.draining == nil || s.stopped == nil && (s.returnsAwaited > 0 || len(s.inFlight)+len(s.results)+len(s.pending) > 0) {
		return
	}
	s.draining.Reply(struct{}{}, nil)
	s.draining = nil
}
