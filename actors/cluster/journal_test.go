package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/wal"
)

// TestJournal_Limits appends the largest record, and refuses what is no offer.
func TestJournal_Limits(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.startAll()
	n := f.nodes[1]
	n.mustAppend(t, strings.Repeat("x", wal.RecordBytesMax))
	for _, tt := range []struct {
		name     string
		expected uint64
		records  [][]byte
		want     error
	}{
		{"too large", 1, [][]byte{make([]byte, wal.RecordBytesMax+1)}, wal.ErrLimit},
		{"empty", 1, [][]byte{{}}, wal.ErrLimit},
		{"a place that is taken", 0, [][]byte{{1}}, actors.ErrPosition},
		{"a place behind the end", 7, [][]byte{{1}}, actors.ErrPosition},
	} {
		if _, err := n.cluster.Journal().Append(tt.expected, tt.records); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if _, err := n.cluster.Journal().Append(1, [][]byte{{1}, {2}}); err == nil {
		t.Error("two records are taken for one")
	}
	n.mustAppend(t, "after")
	if log := f.sameLogs(); len(log) != 2 {
		t.Errorf("%d records", len(log))
	}
	if j := n.cluster.Journal(); j.Node() != 2 || !j.Standing().Majority {
		t.Errorf("node %d, standing %+v", j.Node(), j.Standing())
	}
}

// TestJournal_SlowOwner has a node whose owners take nothing for a while: what the tail could not keep is fetched.
func TestJournal_SlowOwner(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.startAll()
	slow := f.nodes[2]
	gate := make(chan struct{})
	slow.mu.Lock()
	slow.gate = gate
	slow.mu.Unlock()
	const records = 3 * tailBuffer
	for k := range records {
		f.nodes[0].mustAppend(t, fmt.Sprintf("record %d", k))
	}
	if last := slow.last(); last != 0 {
		t.Errorf("%d records were delivered through a closed gate", last)
	}
	close(gate)
	slow.await(t, records)
	f.sameLogs()
}

// TestJournal_Stuck keeps an offer from being decided although the nodes hear each other: no majority then, until it is.
func TestJournal_Stuck(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.startAll()
	n := f.nodes[0]
	var lost atomic.Bool
	lost.Store(true)
	j := n.cluster.Journal()
	send := j.ask
	j.ask = func(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
		if lost.Load() {
			return nil, nats.ErrNoResponders
		}
		return send(ctx, m)
	}
	eventually(t, "a majority", func() bool { return n.cluster.Standing().Majority })
	began := realClock()
	done := make(chan error, 1)
	go func() {
		_, err := j.Append(0, [][]byte{[]byte("stuck")})
		done <- err
	}()
	eventually(t, "no majority", func() bool { return !n.cluster.Standing().Majority })
	if took := realClock().Sub(began); took < offerLong {
		t.Errorf("told after %s", took)
	}
	if !f.nodes[1].cluster.Standing().Majority {
		t.Error("a node that has nothing stuck is told the same")
	}
	lost.Store(false)
	if err := <-done; err != nil {
		t.Error(err)
	}
	eventually(t, "a majority again", func() bool { return n.cluster.Standing().Majority })
}

// TestJournal_LostStream gives a node a record that the stream lacks, as if the members had lost it: the node says so and stops.
func TestJournal_LostStream(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.startAll()
	f.nodes[0].mustAppend(t, "first")
	f.sameLogs()
	f.stop(2)
	log, err := wal.Open(f.configs[2].Dir, wal.Options{ReserveBytes: -1, Clock: realClock})
	if err == nil {
		_, err = log.Append([][]byte{[]byte("lost by the others")})
	}
	if err = errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	f.configs[2].confirm = joinLook
	f.start(2)
	f.nodes[2].ends(t)
	if err := f.nodes[2].takeError(); err == nil || !strings.Contains(err.Error(), "ends with 1, this node has 2") || !strings.Contains(err.Error(), hintRestore) {
		t.Errorf("ended with %v", err)
	}
	f.stop(2)

	// The way out that the error names.
	f.stopAll()
	f.restore(2)
	f.startAll()
	f.nodes[0].mustAppend(t, "third")
	if log := f.sameLogs(); !slices.Equal(log, []string{"first", "lost by the others", "third"}) {
		t.Errorf("log %q", log)
	}
}
