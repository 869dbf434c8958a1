package commitlog

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

const (
	// ReplicationWindow is how many delivered records may be unapplied; then the follower waits. It is far less than a
	// mailbox's reserve for one-way messages.
	ReplicationWindow = 64
	// majorityCheckInterval is how often the follower checks for a majority.
	majorityCheckInterval = 250 * time.Millisecond
)

const _ = uint(mailbox.ReserveDefault/2 - ReplicationWindow)

// WindowEntry is the place of a record in the replication window, until every owner has applied it.
type WindowEntry struct {
	window     chan struct{}
	references atomic.Int64
}

// Retain adds a reference, for one owner.
func (w *WindowEntry) Retain() *WindowEntry {
	w.references.Add(1)
	return w
}

// Release drops a reference. The last one frees the place.
func (w *WindowEntry) Release() {
	if w.references.Add(-1) == 0 {
		<-w.window
	}
}

// Delivered is a record of a shared log, for the Actor. It has the events of another node's record, by owner.
type Delivered struct {
	mailbox.OneWay
	Sequence uint64
	own      bool // the newest bundle that this process offered
	records  int
	bytes    int
	err      error

	currencies map[string][]engine.Event
	accounts   [][]account.Event // by shard
	registry   []any

	Window *WindowEntry
}

// Reject drops a record: the Actor has stopped.
func (d *Delivered) Reject(*engine.Error) { d.Window.Release() }

// RemoteEvents is another node's events about the state of one owner, in order. The owner releases Window when it has
// applied them.
type RemoteEvents[E any] struct {
	mailbox.OneWay
	Events []E
	Window *WindowEntry
}

// Reject drops the events: the owner has stopped.
func (f *RemoteEvents[E]) Reject(*engine.Error) { f.Window.Release() }

// follower delivers the records of all nodes to the Actor, and tells it when there is no majority.
type follower struct {
	log     *Log
	shards  int
	decoder *record.Decoder
	window  chan struct{}
	context context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

func newFollower(log *Log, shards int) *follower {
	ctx, cancel := context.WithCancel(context.Background())
	return &follower{
		log: log, shards: shards, decoder: record.NewDecoder(), window: make(chan struct{}, ReplicationWindow), context: ctx, cancel: cancel,
	}
}

func (f *follower) start() {
	f.done.Add(2)
	go f.follow()
	go f.watch()
}

func (f *follower) follow() {
	defer f.done.Done()
	if err := f.log.Shared.Follow(f.context, f.deliver); err != nil && f.context.Err() == nil {
		f.log.Fail(fmt.Errorf("follow the log of the cluster: %w", err))
	}
}

// deliver waits for a place in the window. After stop it delivers nothing more: a skipped record would be a gap.
func (f *follower) deliver(sequence uint64, data []byte) {
	if f.context.Err() != nil {
		return
	}
	select {
	case f.window <- struct{}{}:
	case <-f.context.Done():
		return
	}
	m := &Delivered{Sequence: sequence, bytes: len(data), Window: &WindowEntry{window: f.window}}
	m.Window.Retain()
	m.err = f.decode(m, data)
	f.log.Ref.Send(m)
}

// decode sorts the events of a record by owner. The owners know those of their own bundle already.
func (f *follower) decode(m *Delivered, data []byte) error {
	b, err := f.decoder.Bundle(data)
	if err != nil {
		return err
	}
	m.records = len(b.Records)
	if m.own = b.Node == f.log.Shared.Node() && b.Token == f.log.token.Load(); m.own {
		return nil
	}
	m.currencies, m.accounts = map[string][]engine.Event{}, make([][]account.Event, f.shards)
	for i, one := range b.Records {
		event, err := f.decoder.Event(one)
		if err != nil {
			return fmt.Errorf("record %d of a bundle: %w", i, err)
		}
		switch e := event.(type) {
		case engine.Event:
			m.currencies[e.CurrencyCode()] = append(m.currencies[e.CurrencyCode()], e)
		case account.Event:
			shard := &m.accounts[e.AccountID()%uint64(len(m.accounts))]
			*shard = append(*shard, e)
		case *record.CodeRefused: // changes nothing
		default:
			m.registry = append(m.registry, e)
		}
	}
	return nil
}

// watch tells the Actor repeatedly while there is no majority.
func (f *follower) watch() {
	defer f.done.Done()
	ticker := time.NewTicker(majorityCheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-f.context.Done():
			return
		case <-ticker.C:
		}
		if !f.log.Shared.ClusterHealth().Majority {
			f.log.Ref.Send(&majorityLost{})
		}
	}
}

// stop waits until nothing more is delivered.
func (f *follower) stop() {
	f.cancel()
	f.done.Wait()
}
