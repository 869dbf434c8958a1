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
	// ReplicationWindow is the maximum number of SharedJournal records that are delivered but not yet applied. It must
	// be much smaller than mailbox.ReserveDefault, the room of a mailbox for one-way messages such as RemoteEvents.
	ReplicationWindow   = 64
	healthCheckInterval = 250 * time.Millisecond
)

const _ = uint(mailbox.ReserveDefault/2 - ReplicationWindow)

// WindowEntry counts the references to a record in the replication window, which contains the delivered records that
// are not applied yet. Each owner with events in the record has a reference until it has applied them.
type WindowEntry struct {
	window     chan struct{}
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
		<-w.window
	}
}

// Delivered sends the Actor the next record of a SharedJournal. The record is a bundle: the records of one batch of a
// node (record.Bundle).
type Delivered struct {
	mailbox.OneWay
	Sequence uint64
	own      bool // the bundle is this process's newest proposal
	records  int  // number of records in the bundle
	bytes    int  // size of the bundle
	err      error

	// Events of another node's bundle, by owner.
	currencies map[string][]engine.Event
	accounts   [][]account.Event // events of accounts, by shard
	registry   []any

	Window *WindowEntry
}

// Reject implements mailbox.Message. It is called if the Actor has stopped, and drops the record.
func (d *Delivered) Reject(*engine.Error) { d.Window.Release() }

// RemoteEvents sends an owner its events from another node's record, in order. The owner must call Window.Release after
// it has applied them.
type RemoteEvents[E any] struct {
	mailbox.OneWay
	Events []E
	Window *WindowEntry
}

// Reject implements mailbox.Message. It is called if the owner has stopped, and drops the events.
func (e *RemoteEvents[E]) Reject(*engine.Error) { e.Window.Release() }

// follower sends the Actor the records of all nodes. It also sends writesBlocked while changes cannot become durable.
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

// deliver sends a record to the Actor when the window has room. After stop it drops every record, so that the Actor
// never gets a record after a gap.
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

// decode decodes a bundle into m and groups its events by owner. It skips this process's own bundles, because the
// owners still have these events.
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
	for i, element := range b.Records {
		event, err := f.decoder.Event(element)
		if err != nil {
			return fmt.Errorf("record %d of a bundle: %w", i, err)
		}
		switch e := event.(type) {
		case engine.Event:
			m.currencies[e.CurrencyCode()] = append(m.currencies[e.CurrencyCode()], e)
		case account.Event:
			shard := &m.accounts[e.AccountID()%uint64(len(m.accounts))]
			*shard = append(*shard, e)
		case *record.CodeRefused: // does not change state
		default:
			m.registry = append(m.registry, e)
		}
	}
	return nil
}

// watch updates the health of the disk. While changes cannot become durable, it repeatedly sends writesBlocked to the
// Actor. The writer does not check the disk while it waits for the cluster.
func (f *follower) watch() {
	defer f.done.Done()
	ticker := time.NewTicker(healthCheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-f.context.Done():
			return
		case <-ticker.C:
		}
		health := f.log.Shared.ClusterHealth()
		f.log.Health.noteCopy(health)
		if !health.DiskFull {
			f.log.checkSpace()
		}
		if (Majority{f.log.Shared}).writeProblem() != nil {
			f.log.Ref.Send(&writesBlocked{})
		}
	}
}

// stop stops the goroutines. After it returns, the Actor gets no record.
func (f *follower) stop() {
	f.cancel()
	f.done.Wait()
}
