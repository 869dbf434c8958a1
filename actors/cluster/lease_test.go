package cluster

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestLease has three nodes want one lease: one holds it; given back, another one has it soon; taken from a holder that is stopped hard, after
// its time.
func TestLease(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := wire(t, f)
	f.startAll()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var holders atomic.Int64
	held := make(chan *Lease)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for _, n := range f.nodes {
		all.Go(func() {
			for {
				l, err := n.cluster.Acquire(ctx, "collect")
				if err != nil {
					return
				}
				if holders.Add(1) > 1 {
					t.Error("two nodes hold the lease")
				}
				select {
				case held <- l:
				case <-ctx.Done():
				}
				select {
				case <-l.Lost():
				case <-ctx.Done():
				}
				holders.Add(-1)
				l.Release()
			}
		})
	}
	first := <-held
	if !first.Held() {
		t.Error("a lease that was just taken is not held")
	}
	first.Release()
	if first.Held() {
		t.Error("a lease that was given back is held")
	}
	second := <-held
	at := 0
	for i, n := range f.nodes {
		if n.cluster == second.cluster {
			at = i
		}
	}
	w.alone(at, false)
	began := realClock()
	<-second.Lost()
	lost := realClock().Sub(began)
	if second.Held() {
		t.Error("a lease that is lost is held")
	}
	third := <-held
	t.Logf("cut off: lost after %s, taken by another node after %s", lost, realClock().Sub(began))
	if third.cluster == second.cluster {
		t.Error("the node that is cut off took the lease again")
	}
	w.heal()
}

// TestLease_LostAnswer loses the answer to a renewal: the holder finds that it is still its own.
func TestLease_LostAnswer(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.startAll()
	l, err := f.nodes[0].cluster.Acquire(t.Context(), "collect")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.bucket.Update(t.Context(), l.name, []byte(l.value), l.revision); err != nil {
		t.Fatal(err)
	}
	revision := func() uint64 {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.revision
	}
	before := revision()
	eventually(t, "two renewals more", func() bool { return revision() >= before+3 })
	if !l.Held() {
		t.Error("lost by a lost answer")
	}
	l.Release()
}

// TestLease_Time has a lease end by its margin before others may take it. What a machine that sleeps does to its clocks no test here can do.
func TestLease_Time(t *testing.T) {
	began := realClock()
	now := began
	l := &Lease{cluster: &Cluster{config: Config{Clock: func() time.Time { return now }}}, sent: began, lost: make(chan struct{})}
	now = began.Add(leaseTTL - leaseMargin - 1)
	if !l.Held() {
		t.Error("lost before its time")
	}
	now = began.Add(leaseTTL - leaseMargin)
	if l.Held() {
		t.Error("held after its time")
	}
}

// TestSeal has three nodes ask for the seal at once: it is one.
func TestSeal(t *testing.T) {
	f := newFleet(t)
	f.startAll()
	seals := make([][]byte, 3)
	var all sync.WaitGroup
	for i, n := range f.nodes {
		all.Go(func() {
			var err error
			if seals[i], err = n.cluster.Seal(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(seals[0]) != sealBytes || !bytes.Equal(seals[0], seals[1]) || !bytes.Equal(seals[0], seals[2]) || bytes.Equal(seals[0], make([]byte, sealBytes)) {
		t.Errorf("seals %x", seals)
	}
	if _, err := f.nodes[0].cluster.Acquire(t.Context(), "no name"); err == nil {
		t.Error("a lease with a space in its name")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if again, err := f.nodes[0].cluster.Seal(over); err != nil || !bytes.Equal(again, seals[0]) {
		t.Errorf("the kept seal: %x, %v", again, err)
	}
	// What is kept is of another stream, or not whole: the cluster is asked.
	path := filepath.Join(f.nodes[0].cluster.config.Dir, sealName)
	for _, text := range []string{"other " + hex.EncodeToString(seals[1]), f.nodes[0].cluster.stream() + " 00ff", ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.nodes[0].cluster.Seal(over); !errors.Is(err, context.Canceled) {
			t.Errorf("%q: a seal after the end: %v", text, err)
		}
		if again, err := f.nodes[0].cluster.Seal(t.Context()); err != nil || !bytes.Equal(again, seals[0]) {
			t.Errorf("%q: %x, %v", text, again, err)
		}
	}
}
