//go:build !nocluster

package cluster

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/cluster/clustertest"
)

// network are the connections between the nodes of a fleet: each node dials each other one through a proxy of the test's own.
type network struct {
	t          testing.TB
	mu         sync.Mutex
	healed     sync.Cond // with mu
	cut        int       // the node that is cut off, 0 = none; the first is 1
	conns      []net.Conn
	listeners  []net.Listener
	closed     bool
	goroutines sync.WaitGroup
}

// newNetwork puts proxies between the nodes of a fleet that is not started.
func newNetwork(t testing.TB, f *testCluster) *network {
	t.Helper()
	w := &network{t: t}
	w.healed.L = &w.mu
	nowhere := clustertest.Addresses(t, len(f.configs)) // what nodes tell of each other must not be a way round
	for from := range f.configs {
		f.configs[from].Members = slices.Clone(f.members)
		for to, m := range f.members {
			f.configs[from].Members[to].Address = w.proxy(from+1, to+1, m.Address)
		}
		f.configs[from].Advertise = nowhere[from]
	}
	t.Cleanup(w.close) // before the fleet's: cleanups run in reverse order
	return w
}

func (w *network) proxy(from, to int, address string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.listeners = append(w.listeners, l)
	w.goroutines.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", address)
			if err != nil {
				in.Close()
				continue
			}
			w.set(func() { w.conns = append(w.conns, in, out) })
			w.goroutines.Go(func() { w.relay(from, to, in, out) })
			w.goroutines.Go(func() { w.relay(from, to, out, in) })
		}
	})
	return l.Addr().String()
}

// relay copies one way, and holds back what comes while one of the two nodes is cut off: connections stay open, and nothing arrives.
func (w *network) relay(from, to int, out, in net.Conn) {
	defer in.Close()
	defer out.Close()
	for buffer := make([]byte, 32<<10); ; {
		n, err := in.Read(buffer)
		if err != nil {
			return
		}
		w.mu.Lock()
		for from != to && (w.cut == from || w.cut == to) && !w.closed {
			w.healed.Wait()
		}
		w.mu.Unlock()
		if _, err := out.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (w *network) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	if w.closed {
		for _, c := range w.conns {
			c.Close()
		}
	}
	w.healed.Broadcast()
}

// writeLocalLog cuts a node off from all others, or heals with none.
func (w *network) isolate(node int) { w.set(func() { w.cut = node + 1 }) }
func (w *network) heal()            { w.isolate(-1) }

func (w *network) close() {
	w.set(func() { w.closed = true })
	for _, l := range w.listeners {
		l.Close()
	}
	w.goroutines.Wait()
}

// TestPartition cuts off the leader, then a follower: it knows so within three seconds, what it appends waits, the others go on; then
// all have the same log, and every append that was told it stands does, once.
func TestPartition(t *testing.T) {
	t.Parallel()
	f := newTestCluster(t)
	w := newNetwork(t, f)
	f.startAll()
	f.nodes[0].mustAppend(t, "start")
	stood := []string{"start"}
	for _, which := range []string{"leader", "follower"} {
		f.awaitSameRecords(0)
		cut := f.leader()
		if which == "follower" {
			cut = (cut + 1) % 3
		}
		stood = append(stood, "majority without its "+which)
		f.cutOff(t, w, cut, stood[len(stood)-1])
	}
	if log := f.awaitSameRecords(0); !slices.Equal(log, stood) {
		t.Errorf("log %q, want %q", log, stood)
	}
	f.runSteps(t, stopsAtDamage("a changed bit"))
}

// cutOff cuts off one node while the others append a record, and heals.
func (f *testCluster) cutOff(t *testing.T, w *network, cut int, record string) {
	t.Helper()
	alone := f.nodes[cut]
	began, late := realClock(), time.Duration(0)
	w.isolate(cut)
	for alone.cluster.Health().Majority {
		before := realClock()
		if sleep(t.Context(), 5*time.Millisecond) != nil {
			t.Fatal("it never knew")
		}
		late += realClock().Sub(before) - 5*time.Millisecond
	}
	knew := realClock().Sub(began)
	if knew > 3*time.Second+2*late { // late is what a busy machine adds
		t.Errorf("%s: known after %s on a machine that was %s late", record, knew, late)
	}
	lonely := make(chan error, 1)
	go func() {
		_, err := alone.cluster.Journal().Append(alone.last(), [][]byte{[]byte("lonely")})
		lonely <- err
	}()
	f.nodes[(cut+1)%3].mustAppend(t, record)
	t.Logf("%s: known after %s, first append of the others after %s", record, knew, realClock().Sub(began))
	select {
	case err := <-lonely:
		t.Fatalf("%s: the node that is cut off was answered %v", record, err)
	default:
	}
	w.heal()
	if err := <-lonely; !errors.Is(err, actors.ErrPosition) {
		t.Errorf("%s: the append of the other one ended with %v, want ErrPosition", record, err)
	}
	eventually(t, "a majority everywhere", func() bool { return alone.cluster.Health().Majority })
}

// TestLease has three nodes want one lease: one holds it; given back, another one has it soon; taken from a holder that is stopped hard, after
// its time.
func TestLease(t *testing.T) {
	t.Parallel()
	f := newTestCluster(t)
	w := newNetwork(t, f)
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
	select {
	case <-first.Lost():
		t.Error("a lease that was just taken is not held")
	default:
	}
	first.Release()
	<-first.Lost()
	second := <-held
	w.isolate(slices.IndexFunc(f.nodes, func(n *testNode) bool { return n.cluster == second.cluster }))
	began := realClock()
	<-second.Lost()
	lost := realClock().Sub(began)
	third := <-held
	t.Logf("cut off: lost after %s, taken by another node after %s", lost, realClock().Sub(began))
	if third.cluster == second.cluster {
		t.Error("the node that is cut off took the lease again")
	}
	w.heal()
}

// TestLease_Time has a lease end by its margin before others may take it. What a machine that sleeps does to its clocks no test here can do.
func TestLease_Time(t *testing.T) {
	began := realClock()
	now := began
	l := &Lease{cluster: &Cluster{config: Config{Clock: func() time.Time { return now }}}, renewedAt: began}
	now = began.Add(leaseTTL - leaseMargin - 1)
	if l.remaining() <= 0 {
		t.Error("lost before its time")
	}
	now = began.Add(leaseTTL - leaseMargin)
	if l.remaining() > 0 {
		t.Error("held after its time")
	}
}
