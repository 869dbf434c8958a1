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

const _ = uint(commitlog.BundleRoom - shardBytesMax - shardRecordsMax*commitlog.BundleRecordBytes)

// wish is an event that an account wants to be kept.
type wish struct {
	account uint64
	event   account.Event
	record  []byte
	heard   uint64 // messages about other nodes' records that the account had taken in when it decided
	firm    bool   // it is true whatever other nodes have written
	last    bool   // the account gives its lease back; without an event there was none
	asleep  bool   // the account has no actor
}

// outbox is where the accounts of a shard leave their wishes. However many they are, one message about them
// is under way. A wish that nobody waits for lies there until the postman comes by, or a pressing one takes
// it along.
type outbox struct {
	shard   *mailbox.Ref
	postman *postman
	told    atomic.Bool

	mu     sync.Mutex
	wishes []wish
}

// Wished tells a shard to look into its outbox.
type Wished struct{ mailbox.OneWay }

func (o *outbox) post(w wish, pressing bool) {
	o.mu.Lock()
	o.wishes = append(o.wishes, w)
	o.mu.Unlock()
	if pressing {
		o.tell()
	} else {
		o.postman.expect()
	}
}

// tell has the shard look into the outbox.
func (o *outbox) tell() {
	if !o.told.Swap(true) {
		o.shard.Send(&Wished{})
	}
}

// empty reports that no wish lies there.
func (o *outbox) empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.wishes) == 0
}

// take empties the outbox. It says so before it looks: a wish that is left meanwhile is seen now or told
// again.
func (o *outbox) take() []wish {
	o.told.Store(false)
	o.mu.Lock()
	defer o.mu.Unlock()
	wishes := o.wishes
	o.wishes = nil
	return wishes
}

// collect takes the wishes of the accounts.
func (s *ShardActor) collect() {
	for _, w := range s.outbox.take() {
		switch {
		case w.event == nil:
			s.returned(w)
		case s.stopped != nil:
			s.outcome(w, s.stopped)
		default:
			s.pending = append(s.pending, w)
		}
	}
	s.write()
}

// write sends the journal what is pending, unless a write is under way.
func (s *ShardActor) write() {
	if len(s.flight) > 0 {
		return
	}
	s.withdraw()
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
	s.flight = s.pending[:len(records):len(records)]
	s.pending = s.pending[len(records):]
	s.journal.Send(&commitlog.Write{From: s.self, Records: records, Heard: s.heard})
}

// withdraw gives the accounts back what other nodes' records have made void.
func (s *ShardActor) withdraw() {
	kept := s.pending[:0]
	for _, w := range s.pending {
		if one := s.Live[w.account]; one == nil || w.firm || w.heard == one.heard {
			kept = append(kept, w)
		} else {
			s.outcome(w, commitlog.ErrConflict)
		}
	}
	s.pending = kept
}

// committed tells the accounts how their events came out, in order.
func (s *ShardActor) committed(m *commitlog.Committed) {
	done := s.flight
	s.flight = nil
	if m.Err == commitlog.ErrConflict {
		s.pending = slices.Concat(done, s.pending) // it is only the shard that was touched; not each account
		s.write()
		s.settled()
		return
	}
	for _, w := range done {
		if _, leased := w.event.(*account.Leased); leased && m.Err == nil {
			s.leases.Add(1)
		}
		s.outcome(w, m.Err)
	}
	s.write()
	s.settled()
}

// outcome tells one account.
func (s *ShardActor) outcome(w wish, err *engine.Error) {
	if w.asleep {
		s.resettle(w, err)
	} else if one := s.Live[w.account]; one != nil {
		one.Ref.Send(&kept{event: w.event, err: err})
	}
	s.returned(w)
}

// settle begins the end: every account gives back what it has leased and not spent.
func (s *ShardActor) settle(m *settling) {
	s.leaving, s.closed = m, true
	if s.stopped != nil {
		s.settled()
		return
	}
	s.awaited = len(s.Live) + 1
	for _, one := range s.Live {
		one.Ref.Send(&returning{})
	}
	now := s.clock.Now()
	for id, state := range s.idle {
		if state.aside() {
			s.giveBack(id, state, now)
		}
	}
	s.write()
	s.returned(wish{last: true})
}

// giveBack is leave for an account without an actor.
func (s *ShardActor) giveBack(id uint64, state dormant, now account.Moment) {
	account, err := state.wake(s.node, s.clock.start())
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
	s.awaited++
	s.pending = append(s.pending, wish{account: id, event: event, record: record, firm: true, last: true, asleep: true})
}

// resettle keeps an account that has given its lease back. It may have heard of other nodes meanwhile.
func (s *ShardActor) resettle(w wish, err *engine.Error) {
	if err != nil {
		return
	}
	account, failed := s.idle[w.account].wake(s.node, s.clock.start())
	if failed != nil {
		return
	}
	account.Apply(w.event)
	s.idle[w.account] = Freeze(account)
}

// returned counts accounts that have nothing leased any more.
func (s *ShardActor) returned(w wish) {
	if w.last {
		s.awaited--
		s.settled()
	}
}

// settled answers Close when nothing is awaited any more.
func (s *ShardActor) settled() {
	if s.leaving == nil || s.stopped == nil && (s.awaited > 0 || len(s.flight)+len(s.pending) > 0) {
		return
	}
	s.leaving.Reply(struct{}{}, nil)
	s.leaving = nil
}
