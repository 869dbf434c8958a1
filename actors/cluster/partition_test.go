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
)

// network connects the nodes of a cluster through proxies, so that each pair can be cut.
type network struct {
	t          testing.TB
	mu         sync.Mutex
	healed     sync.Cond // uses mu
	cut        int       // isolated node, or none
	listeners  []net.Listener
	goroutines sync.WaitGroup
}

// newNetwork puts proxies between the nodes of a cluster that is not started.
func newNetwork(t testing.TB, f *testCluster) *network {
	t.Helper()
	w := &network{t: t, cut: none}
	w.healed.L = &w.mu
	nowhere := freeAddresses(len(f.configs)) // nodes must not learn addresses that bypass the proxies
	for from := range f.configs {
		f.configs[from].Members = slices.Clone(f.members)
		for to, m := range f.members {
			f.configs[from].Members[to].Address = w.proxy(from, to, m.Address)
		}
		f.configs[from].advertise = nowhere[from]
	}
	t.Cleanup(func() {
		w.isolate(none)
		f.stopAll() // closes all connections, so that relays end
		for _, l := range w.listeners {
			l.Close()
		}
		w.goroutines.Wait()
	})
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
			w.goroutines.Go(func() { w.relay(from, to, in, out) })
			w.goroutines.Go(func() { w.relay(from, to, out, in) })
		}
	})
	return l.Addr().String()
}

// relay copies one direction and stalls while one of the two nodes is isolated: connections stay open, and nothing
// arrives.
func (w *network) relay(from, to int, out, in net.Conn) {
	defer in.Close()
	defer out.Close()
	for buffer := make([]byte, 32<<10); ; {
		n, err := in.Read(buffer)
		if err != nil {
			return
		}
		w.mu.Lock()
		for from != to && (w.cut == from || w.cut == to) {
			w.healed.Wait()
		}
		w.mu.Unlock()
		if _, err := out.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// none is the argument of isolate for a whole network.
const none = -1

// isolate cuts a node off from all others; none heals the network.
func (w *network) isolate(node int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = node
	w.healed.Broadcast()
}

// TestPartition isolates the leader, then a follower. The node knows within three seconds and appends nothing, while
// the others go on; after healing all nodes have the same log, with every acknowledged record exactly once.
func TestPartition(t *testing.T) {
	t.Parallel()
	f := newTestCluster(t)
	w := newNetwork(t, f)
	f.startAll()
	eventually(t, "three voters", func() bool { return len(f.voterNames()) == 3 })
	f.nodes[0].mustAppend(t, "start")
	eventually(t, "two members with other addresses", func() bool { return f.nodes[0].otherLists() == 2 })
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
}

// cutOff isolates one node while the others append a record, and heals.
func (f *testCluster) cutOff(t *testing.T, w *network, cut int, record string) {
	t.Helper()
	isolated := f.nodes[cut]
	began, late := realClock(), time.Duration(0)
	w.isolate(cut)
	want, lonely := actors.ErrNotLeader, make(chan error, 1)
	if isolated.cluster.replica.leads.Load() {
		want = actors.ErrOutcomeUnknown
	}
	go func() {
		_, err := isolated.appendHere("lonely")
		lonely <- err
	}()
	for isolated.cluster.Health().Majority {
		before := realClock()
		if sleep(t.Context(), 5*time.Millisecond) != nil {
			t.Fatal("it never knew")
		}
		late += realClock().Sub(before) - 5*time.Millisecond
	}
	knew := realClock().Sub(began)
	if knew > 3*time.Second+2*late { // late allows for a busy machine
		t.Errorf("%s: known after %s on a machine that was %s late", record, knew, late)
	}
	if err := <-lonely; !errors.Is(err, want) {
		t.Errorf("%s: the append of the isolated node ended with %v, want %v", record, err, want)
	}
	f.nodes[(cut+1)%3].mustAppend(t, record)
	t.Logf("%s: known after %s, first append of the others after %s", record, knew, realClock().Sub(began))
	w.isolate(none)
	eventually(t, "a majority everywhere", func() bool { return isolated.cluster.Health().Majority })
}

// TestProposing: a leader hands over when each proposal is committed and in the local log, or the disk is full.
func TestProposing(t *testing.T) {
	s := openTestStore(t, t.TempDir())
	if err := s.save(ready(1, 1, 2, 0, 0)); err != nil {
		t.Fatal(err)
	}
	r, j := &replica{c: &Cluster{}, store: s}, new(Journal)
	r.c.journal.Store(j)
	r.state.Store(&replicated{Sequence: 2})
	for _, tt := range []struct {
		applied, last uint64
		full, want    bool
	}{{1, 2, false, true}, {2, 1, false, true}, {2, 1, true, false}, {2, 2, false, false}} {
		r.applied.Store(tt.applied)
		r.c.last.Store(tt.last)
		j.diskFull.Store(tt.full)
		if got := r.proposing(); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}

// TestCaughtUpSince: a node that has copied a state does not count as caught up by an answer from before.
func TestCaughtUpSince(t *testing.T) {
	r, copied := new(replica), realClock()
	r.readIndex.Store(1)
	r.applied.Store(1)
	for later, want := range map[time.Duration]bool{0: false, 1: true} {
		r.readIndexAskedAt = copied.Add(later)
		if got := r.caughtUpSince(copied); got != want {
			t.Errorf("asked %s after the copy: %t", later, got)
		}
	}
}

// TestLead: one of three nodes leads; when it hands over, and when it is cut off, another one does.
func TestLead(t *testing.T) {
	t.Parallel()
	f := newTestCluster(t)
	w := newNetwork(t, f)
	f.startAll()
	eventually(t, "three voters", func() bool { return len(f.voterNames()) == 3 })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var holders atomic.Int64
	held := make(chan chan struct{}) // for each leader, a channel that is closed when it no longer leads
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for _, n := range f.nodes {
		all.Go(func() {
			var lost chan struct{}
			n.cluster.Lead(ctx, func(leads bool) {
				if !leads {
					holders.Add(-1)
					close(lost)
					return
				}
				if holders.Add(1) > 1 {
					t.Error("two nodes lead")
				}
				lost = make(chan struct{})
				select {
				case held <- lost:
				case <-ctx.Done():
				}
			})
		})
	}
	first := <-held
	leader := f.leader()
	if err := f.nodes[leader].cluster.StepDown(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-first
	second := <-held
	w.isolate(f.leader())
	began := realClock()
	<-second
	lost := realClock().Sub(began)
	<-held
	t.Logf("cut off: lost after %s, taken by another node after %s", lost, realClock().Sub(began))
	w.isolate(none)
}
