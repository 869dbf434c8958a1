package commitlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// ReplicationWindow is the maximum number of SharedJournal records that are delivered but not yet applied. It must
// be much smaller than mailbox.ReserveDefault, the room of a mailbox for one-way messages such as RemoteEvents.
const ReplicationWindow = 64

const _ = uint(mailbox.ReserveDefault/2 - ReplicationWindow)

// WindowEntry is a delivered record that is not applied yet. It counts references: the Actor holds one while it handles
// the record, and each owner with events in the record holds one until it has applied them.
type WindowEntry struct {
	window     *window
	sequence   uint64
	references atomic.Int64
}

// Retain adds a reference.
func (w *WindowEntry) Retain() *WindowEntry {
	w.references.Add(1)
	return w
}

// Release removes a reference. When no reference is left, the record no longer counts for ReplicationWindow.
func (w *WindowEntry) Release() {
	if w.references.Add(-1) == 0 {
		w.window.remove(w)
	}
}

// window is the replication window.
type window struct {
	mu      sync.Mutex
	entries []*WindowEntry // oldest first
	newest  uint64         // sequence of the newest delivered record
	removed chan struct{}  // closed, and replaced, when an entry is removed
}

// add adds a record with one reference when there is room. It returns nil if ctx ends first. One goroutine may call it.
func (w *window) add(ctx context.Context, sequence uint64) *WindowEntry {
	for {
		_, length, removed := w.state()
		if length < ReplicationWindow {
			break
		}
		select {
		case <-removed:
		case <-ctx.Done():
			return nil
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e := &WindowEntry{window: w, sequence: sequence}
	w.newest = sequence
	w.entries = append(w.entries, e.Retain())
	return e
}

func (w *window) remove(e *WindowEntry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entries = slices.DeleteFunc(w.entries, func(other *WindowEntry) bool { return other == e })
	close(w.removed)
	w.removed = make(chan struct{})
}

// state returns the sequence up to which all records are applied, the number of entries, and a channel that is closed
// when an entry is removed.
func (w *window) state() (applied uint64, length int, removed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	applied = w.newest
	if len(w.entries) > 0 {
		applied = w.entries[0].sequence - 1
	}
	return applied, len(w.entries), w.removed
}

// Delivered sends the Actor the next record of a SharedJournal: a bundle with the records of one node's batch
// (record.Bundle).
type Delivered struct {
	mailbox.OneWay
	Sequence uint64
	own      bool // the bundle is this process's newest proposal
	records  int  // number of records in the bundle
	bytes    int  // size of the bundle
	err      error

	// Events of the bundle, by owner.
	currencies map[string][]engine.Event
	accounts   [][]account.Event // events of accounts, by shard
	registry   []any

	Window *WindowEntry
}

// Reject implements mailbox.Message. It drops the record, because the Actor has stopped.
func (d *Delivered) Reject(*engine.Error) { d.Window.Release() }

// RemoteEvents sends an owner its events that it has not decided itself, in order. The owner must call Window.Release
// after it has applied them.
type RemoteEvents[E any] struct {
	mailbox.OneWay
	Events []E
	Window *WindowEntry
}

// Reject implements mailbox.Message. It drops the events, because the owner has stopped.
func (e *RemoteEvents[E]) Reject(*engine.Error) { e.Window.Release() }

// follower sends the Actor the records of all nodes.
type follower struct {
	log     *Log
	shards  int // number of shards of the accounts
	decoder *record.Decoder
}

func (f *follower) follow() {
	if err := f.log.Shared.Follow(f.log.ending, f.deliver, f.lost); err != nil && f.log.ending.Err() == nil {
		f.log.Fail(fmt.Errorf("follow the log of the cluster: %w", err))
	}
}

// deliver sends a record to the Actor when the window has room. After Finish it drops every record, so that the Actor
// never gets a record after a gap.
func (f *follower) deliver(sequence uint64, data []byte) {
	if f.log.ending.Err() != nil {
		return
	}
	entry := f.log.window.add(f.log.ending, sequence)
	if entry == nil {
		return
	}
	m := &Delivered{Sequence: sequence, bytes: len(data), Window: entry}
	m.err = f.decode(m, data)
	f.log.Ref.Send(m)
}

func (f *follower) lost(term uint64) { f.log.Ref.Send(&leadershipLost{term: term}) }

// decode decodes a bundle into m and groups its events by owner.
func (f *follower) decode(m *Delivered, data []byte) error {
	b, events, err := f.decoder.Events(data)
	if err != nil {
		return err
	}
	m.records = len(b.Records)
	m.own = b.Node == f.log.Shared.Node() && b.Token == f.log.token.Load()
	m.currencies, m.accounts = map[string][]engine.Event{}, make([][]account.Event, f.shards)
	for _, event := range events {
		switch e := event.(type) {
		case engine.Event:
			m.currencies[e.CurrencyCode()] = append(m.currencies[e.CurrencyCode()], e)
		case account.Event:
			shard := &m.accounts[account.IDOf(e)%uint64(len(m.accounts))]
			*shard = append(*shard, e)
		case *record.CodeRefused: // does not change state
		default:
			m.registry = append(m.registry, e)
		}
	}
	return nil
}

// replication is the Actor's state for a SharedJournal. There, a batch of writes is a single record, a bundle.
//
//	owner      makes records while this node decides (Log.Decides), and sends a Write with the term
//	Actor      packs waiting writes of the term into a bundle with a new token; the writer appends it
//	follower   delivers the records of the cluster: this bundle or another one
//	Actor      this bundle: commits its writes
//	           another bundle: sends its events to their owners (RemoteEvents)
//
// An owner's rules therefore hold across all nodes: in one term only the leader decides, and it begins when its owners
// have applied everything from earlier terms. A write is committed when its record is delivered, not when Append
// returns. If this node ceases to lead meanwhile, the write's outcome is unknown, and a bundle that is delivered later
// counts as another node's. All nodes apply all records in the same order, so their snapshots at one sequence are
// equal. The follower pauses while ReplicationWindow records are delivered but not yet applied. All writes are rejected
// while the cluster has no majority or this node's disk is full. Meanwhile reads work, and accounts can spend quota
// already leased by this node.
type replication struct {
	currencies map[string]*mailbox.Ref
	stopping   bool   // the node stops
	lost       uint64 // newest term that has ended
}

// outdated reports whether this node must not decide any more in the term in which the records were made.
func (a *Actor) outdated(w *Write) bool {
	if a.replication == nil {
		return false
	}
	term, decides := a.log.Decides()
	return !decides || w.Term != term
}

// rejectOutdated rejects waiting writes of earlier terms.
func (a *Actor) rejectOutdated() {
	a.waiting = slices.DeleteFunc(a.waiting, func(w *Write) bool {
		outdated := a.outdated(w)
		if outdated {
			w.Reject(ErrNotLeader)
		}
		return outdated
	})
}

// writesBlocked tells the Actor that this node's changes cannot become durable (Majority.writeProblem).
type writesBlocked struct{ mailbox.OneWay }

// leadershipLost tells the Actor that a term of Log.Decides has ended.
type leadershipLost struct {
	mailbox.OneWay
	term uint64
}

// nodeStopping tells the Actor that the node is stopping. Without a majority, the Actor then abandons the proposed
// bundle.
type nodeStopping struct{ mailbox.OneWay }

// propose proposes the records of the writes in flight as one bundle.
func (a *Actor) propose(records [][]byte) {
	bundle, err := record.Encode(&record.Bundle{Node: a.log.Shared.Node(), Token: a.log.token.Add(1), Records: records})
	if err != nil {
		a.failStop(err)
		return
	}
	a.submitAppend([][]byte{bundle})
}

// proposalReturned handles the return of Append. Without an error, delivered answers the writes, or advance when the
// term has ended.
func (a *Actor) proposalReturned(m *appendResult) {
	switch {
	case m.err == nil || a.stopCause != nil:
	case errors.Is(m.err, wal.ErrNoSpace):
		a.rejectBatch(ReadOnly(m.err))
	case errors.Is(m.err, ErrNotLeader):
		a.rejectBatch(ErrNotLeader)
	default:
		a.failStop(fmt.Errorf("write to the journal: %w", m.err))
	}
}

// proposalLost reports whether the outcome of the writes in flight is unknown, because their term has ended after
// Append returned.
func (a *Actor) proposalLost() bool {
	return a.replication != nil && len(a.inFlight) > 0 && !a.writerBusy && a.inFlight[0].Term <= a.replication.lost
}

// rejectBatch rejects the writes in flight, if they were not committed before.
func (a *Actor) rejectBatch(cause *engine.Error) {
	batch := a.inFlight
	a.inFlight = nil
	a.log.Health.noteDone()
	rejectWrites(batch, cause)
}

func rejectWrites(batch []*Write, cause *engine.Error) {
	for _, w := range batch {
		w.Reject(cause)
	}
}

// delivered handles the next record of the journal.
func (a *Actor) delivered(m *Delivered) {
	defer m.Window.Release()
	switch {
	case a.stopCause != nil:
		return
	case m.err != nil:
		a.failStop(fmt.Errorf("record %d: %w", m.Sequence, m.err))
		return
	case m.Sequence != a.last+1:
		a.failStop(fmt.Errorf("record %d was delivered after record %d", m.Sequence, a.last))
		return
	}
	a.last = m.Sequence
	defer a.log.Health.Sequence.Store(m.Sequence)
	a.countAppended(m.records, m.bytes)
	if m.own && len(a.inFlight) > 0 {
		batch := a.inFlight
		a.inFlight = nil
		a.log.Health.Sequence.Store(m.Sequence) // before the callers get their answers
		a.commit(batch)
		return
	}
	if len(a.inFlight) > 0 { // another node leads: its records come first
		a.rejectBatch(ErrOutcomeUnknown)
	}
	a.rejectOutdated()
	if err := a.route(m); err != nil {
		a.failStop(fmt.Errorf("record %d: %w", m.Sequence, err))
	}
}

// route sends the events of a record to their owners. Shards come before the registrar, so that an account
// exists before its sessions.
func (a *Actor) route(m *Delivered) error {
	for currency, events := range m.currencies {
		owner := a.replication.currencies[currency]
		if owner == nil {
			return fmt.Errorf("another node has rates of currency %q, which this node does not know; restart this node", currency)
		}
		owner.Send(&RemoteEvents[engine.Event]{Events: events, Window: m.Window.Retain()})
	}
	for i, events := range m.accounts {
		if len(events) > 0 {
			a.shards[i].Send(&RemoteEvents[account.Event]{Events: events, Window: m.Window.Retain()})
		}
	}
	if len(m.registry) > 0 {
		a.registry.Send(&RemoteEvents[any]{Events: m.registry, Window: m.Window.Retain()})
	}
	return nil
}

// writesBlocked rejects waiting writes. The proposed bundle may still be committed, so it is abandoned only at a stop.
func (a *Actor) writesBlocked() {
	problem := (Majority{a.log.Shared}).writeProblem()
	switch {
	case problem == nil:
		return
	case a.replication.stopping:
		a.stop(ErrOutcomeUnknown)
		return
	}
	rejectWrites(a.waiting, ReadOnly(problem))
	a.waiting = nil
}

// abandonProposal sends an error to the owners of the proposed bundle, because this process will not learn its outcome.
func (a *Actor) abandonProposal() {
	batch, cause := a.inFlight, ErrOutcomeUnknown
	if !a.replication.stopping {
		cause = writeError(a.stopCause)
	}
	a.inFlight = nil
	rejectWrites(batch, cause)
}
