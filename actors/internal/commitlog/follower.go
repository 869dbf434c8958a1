package commitlog

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

const (
	// ReplicationWindow is how many records of the log may be on their way to the owners of state: then the follower waits. It is far less
	// than a mailbox keeps for one-way messages.
	ReplicationWindow = 64
	// majorityCheckInterval is how often the follower looks whether there is a majority.
	majorityCheckInterval = 250 * time.Millisecond
)

const _ = uint(mailbox.ReserveDefault/2 - ReplicationWindow)

// BundleToken is where the journal actor says which bundle it has offered, and the follower looks whether one is that. There is one at a time.
type BundleToken struct{ value atomic.Uint64 }

// NewBundleToken begins with a random token: a bundle of this node's that an earlier process offered is like another node's.
func NewBundleToken(random io.Reader) (*BundleToken, error) {
	var first [8]byte
	if _, err := io.ReadFull(random, first[:]); err != nil {
		return nil, fmt.Errorf("read random bytes: %w", err)
	}
	d := &BundleToken{}
	d.value.Store(binary.LittleEndian.Uint64(first[:]))
	return d, nil
}

func (d *BundleToken) next() { d.value.Add(1) }

// Window is the place that a record takes until every owner has heard of it. The follower waits when all places are taken, so the log
// is never read faster than it is applied.
type WindowEntry struct {
	window     chan struct{}
	references atomic.Int64
}

// Submit is the credit for one owner more.
func (c *WindowEntry) Retain() *WindowEntry {
	c.references.Add(1)
	return c
}

// Release gives it back.
func (c *WindowEntry) Release() {
	if c.references.Add(-1) == 0 {
		<-c.window
	}
}

// Delivered is a record of a log that several nodes write, for the journal actor. The events are of another node, by owner.
type Delivered struct {
	mailbox.OneWay
	Sequence uint64
	own      bool // it is the bundle that this node has offered
	records  int
	bytes    int
	err      error

	currencies map[string][]engine.Event
	accounts   [][]account.Event // by shard
	registry   []any

	Window *WindowEntry
}

// Reject gives up a record: the journal actor has stopped.
func (d *Delivered) Reject(*engine.Error) { d.Window.Release() }

// RemoteEvents tell an owner what another node's record says about its state, in order. It gives its credit back when they are applied.
type RemoteEvents[E any] struct {
	mailbox.OneWay
	Events []E
	Window *WindowEntry
}

// Reject gives the place back: the owner has stopped.
func (f *RemoteEvents[E]) Reject(*engine.Error) { f.Window.Release() }

// Follower is the goroutine that hands the journal actor the records of all nodes, and another one that tells it when a majority is lost or
// found. Its owner is the system.
type Follower struct {
	journal SharedJournal
	node    engine.NodeID
	token   *BundleToken
	shards  int
	decoder *record.Decoder
	window  chan struct{}
	fail    func(error)
	to      *mailbox.Ref
	context context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// NewFollower follows nothing before Start; fail stops the node.
func NewFollower(journal SharedJournal, desk *BundleToken, shards int, fail func(error)) *Follower {
	ctx, cancel := context.WithCancel(context.Background())
	return &Follower{
		journal: journal, node: journal.Node(), token: desk, shards: shards, decoder: record.NewDecoder(),
		window: make(chan struct{}, ReplicationWindow), fail: fail, context: ctx, cancel: cancel,
	}
}

// Start begins to hand records to the journal actor.
func (f *Follower) Start(to *mailbox.Ref) {
	f.to = to
	f.done.Add(2)
	go f.follow()
	go f.watch()
}

func (f *Follower) follow() {
	defer f.done.Done()
	if err := f.journal.Follow(f.context, f.Deliver); err != nil && f.context.Err() == nil {
		f.fail(fmt.Errorf("follow the log of the cluster: %w", err))
	}
}

// Deliver waits for a place. After the end it delivers nothing: what it had left out would be a gap.
func (f *Follower) Deliver(sequence uint64, data []byte) {
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
	f.to.Send(m)
}

// decode decodes a record and gives each owner its part. What this node has offered its owners know already.
func (f *Follower) decode(m *Delivered, data []byte) error {
	b, err := f.decoder.Bundle(data)
	if err != nil {
		return err
	}
	m.records = len(b.Records)
	if m.own = b.Node == f.node && b.Token == f.token.value.Load(); m.own {
		return nil
	}
	m.currencies, m.accounts = map[string][]engine.Event{}, make([][]account.Event, f.shards)
	for i, one := range b.Records {
		event, err := f.decoder.Event(one)
		if err != nil {
			return fmt.Errorf("part %d of a bundle: %w", i, err)
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

// watch tells the journal actor of a majority that was lost, again and again until there is one.
func (f *Follower) watch() {
	defer f.done.Done()
	ticker := time.NewTicker(majorityCheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-f.context.Done():
			return
		case <-ticker.C:
		}
		if !f.journal.ClusterHealth().Majority {
			f.to.Send(&majorityLost{})
		}
	}
}

// End waits until nothing more is delivered.
func (f *Follower) End() {
	f.cancel()
	f.done.Wait()
}
