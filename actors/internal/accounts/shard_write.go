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

// Limits of one write of a shard; a batch of the journal holds several of them.
const (
	shardRecordsMax = 4096
	shardBytesMax   = 768 << 10
)

const _ = uint(commitlog.BundlePayloadMax - shardBytesMax - shardRecordsMax*commitlog.RecordOverhead)

// pendingEvent is an event that an account wants to be kept.
type pendingEvent struct {
	account       uint64
	event         account.Event
	record        []byte
	remoteSeq     uint64 // messages about other nodes' records that the account had taken in when it decided
	unconditional bool   // it is true whatever other nodes have written
	final         bool   // the account gives its lease back; without an event there was none
	evicted       bool   // the account has no actor
}

// outbox is where the accounts of a shard leave their wishes. However many they are, one message about them
// is under way. A wish that nobody waits for lies there until the postman comes by, or a pressing one takes
// it along.
type outbox struct {
	shard    *mailbox.Ref
	flusher  *outboxFlusher
	notified atomic.Bool

	mu     sync.Mutex
	events []pendingEvent
}

// OutboxFilled tells a shard to look into its outbox.
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

// notify has the shard look into the outbox.
func (o *outbox) notify() {
	if !o.notified.Swap(true) {
		o.shard.Send(&OutboxFilled{})
	}
}

// empty reports that no wish lies there.
func (o *outbox) empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.events) == 0
}

// take empties the outbox. It says so before it looks: a wish that is left meanwhile is seen now or told
// again.
func (o *outbox) take() []pendingEvent {
	o.notified.Store(false)
	o.mu.Lock()
	defer o.mu.Unlock()
	wishes := o.events
	o.events = nil
	return wishes
}

// collect takes the wishes of the accounts.
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

// write sends the journal what is pending, unless a write is under way.
func (s *ShardActor) write() {
	if len(s.inFlight) > 0 {
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

// rejectConflicts gives the accounts back what other nodes' records have made void.
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

// outcomesTurnMax is how many outcomes one message delivers, so that requests come between them.
const outcomesTurnMax = 8

// deliverMore goes on with a write whose outcome is known.
type deliverMore struct {
	mailbox.OneWay
	err *engine.Error
}

// committed tells the accounts how their events came out, in order.
func (s *ShardActor) committed(err *engine.Error) {
	if err == commitlog.ErrConflict {
		s.pending = slices.Concat(s.inFlight, s.pending) // it is only the shard that was touched; not each account
		s.inFlight = nil
	}
	some := s.inFlight[:min(outcomesTurnMax, len(s.inFlight))]
	for _, w := range some {
		if _, leased := w.event.(*account.Leased); leased && err == nil {
			s.leases.Add(1)
		}
		s.deliver(w, err)
	}
	clear(some)
	if s.inFlight = s.inFlight[len(some):]; len(s.inFlight) > 0 {
		s.self.Send(&deliverMore{err: err})
		return
	}
	s.write()
	s.drained()
}

// deliver tells one account.
func (s *ShardActor) deliver(w pendingEvent, err *engine.Error) {
	if w.evicted {
		s.evictedReturned(w, err)
	} else if one := s.Loaded[w.account]; one != nil {
		one.Ref.Deliver(&eventWritten{event: w.event, err: err})
	}
	s.countReturned(w)
}

// finish begins the end: every account gives back what it has leased and not spent.
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

// returnEvicted is leave for an account without an actor.
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

// evictedReturned keeps an account that has given its lease back. It may have heard of other nodes meanwhile.
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

// countReturned counts accounts that have nothing leased any more.
func (s *ShardActor) countReturned(w pendingEvent) {
	if w.final {
		s.returnsAwaited--
		s.drained()
	}
}

// drained answers Close when nothing is awaited any more.
func (s *ShardActor) drained() {
	if s.draining == nil || s.stopped == nil && (s.returnsAwaited > 0 || len(s.inFlight)+len(s.pending) > 0) {
		return
	}
	s.draining.Reply(struct{}{}, nil)
	s.draining = nil
}
