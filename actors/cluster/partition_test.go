package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/cluster/clustertest"
)

// wires are the connections between the nodes of a fleet: each node dials each other one through a proxy of the test's own.
type wires struct {
	t      testing.TB
	mu     sync.Mutex
	healed sync.Cond // with mu
	cut    map[[2]int]bool
	open   map[net.Conn][2]int
	doors  []net.Listener
	closed bool
	all    sync.WaitGroup
}

// wire puts proxies between the nodes of a fleet that is not started.
func wire(t testing.TB, f *fleet) *wires {
	t.Helper()
	w := &wires{t: t, cut: map[[2]int]bool{}, open: map[net.Conn][2]int{}}
	w.healed.L = &w.mu
	nowhere := clustertest.Addresses(t, len(f.configs)) // what nodes tell of each other must not be a way round
	for from := range f.configs {
		members := make([]Member, len(f.members))
		for to, m := range f.members {
			members[to] = Member{Name: m.Name, Address: w.proxy(from, to, m.Address)}
		}
		f.configs[from].Members = members
		f.configs[from].Advertise = nowhere[from]
	}
	t.Cleanup(w.close) // before the fleet's: cleanups run in reverse order
	return w
}

func (w *wires) proxy(from, to int, address string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.doors = append(w.doors, l)
	w.all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			w.all.Go(func() { w.carry(in, [2]int{from, to}, address) })
		}
	})
	return l.Addr().String()
}

// carry copies both ways until one end closes or the wire is cut.
func (w *wires) carry(in net.Conn, pair [2]int, address string) {
	defer in.Close()
	out, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer out.Close()
	w.mu.Lock()
	refused := w.cut[pair] || w.closed
	if !refused {
		w.open[in], w.open[out] = pair, pair
	}
	w.mu.Unlock()
	if refused {
		return
	}
	var both sync.WaitGroup
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(heldWriter{w, pair, to}, from) // it ends when somebody closes
		to.Close()
		from.Close()
	}
	both.Go(func() { pipe(in, out) })
	both.Go(func() { pipe(out, in) })
	both.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, in)
	delete(w.open, out)
}

// heldWriter holds back what is written while its wire is cut.
type heldWriter struct {
	w    *wires
	pair [2]int
	to   net.Conn
}

// Write is io.Writer.
func (h heldWriter) Write(p []byte) (int, error) {
	h.w.mu.Lock()
	for h.w.cut[h.pair] && !h.w.closed {
		h.w.healed.Wait()
	}
	h.w.mu.Unlock()
	return h.to.Write(p)
}

// alone cuts a node off from all others. Silently: connections stay open, and nothing comes through until the wires are healed.
func (w *wires) alone(node int, silently bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for other := range 3 {
		if other != node {
			w.cut[[2]int{node, other}], w.cut[[2]int{other, node}] = true, true
		}
	}
	for c, pair := range w.open {
		if w.cut[pair] && !silently {
			c.Close()
		}
	}
}

func (w *wires) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.cut)
	w.healed.Broadcast()
}

func (w *wires) close() {
	w.mu.Lock()
	w.closed = true
	for c := range w.open {
		c.Close()
	}
	w.healed.Broadcast()
	w.mu.Unlock()
	for _, l := range w.doors {
		l.Close()
	}
	w.all.Wait()
}

// TestPartition cuts off each node in turn, the leader too: it knows so within three seconds, what it appends waits, the others go on; then
// all have the same log, and every append that was told it stands does, once.
func TestPartition(t *testing.T) {
	f := newFleet(t)
	w := wire(t, f)
	f.startAll()
	stood := []string{"start"}
	f.nodes[0].mustAppend(t, "start")
	for round, which := range []string{"leader", "follower", "silent leader"} {
		f.sameLogs()
		cut := f.leader()
		if which == "follower" {
			cut = (cut + 1) % 3
		}
		other := (cut + 1) % 3
		began := realClock()
		w.alone(cut, which == "silent leader")
		eventually(t, "a node that knows that it is alone", func() bool { return !f.nodes[cut].cluster.Standing().Majority })
		knew := realClock().Sub(began)
		if knew > 3*time.Second+waitSlack {
			t.Errorf("the %s that was cut off knew after %s", which, knew)
		}
		lonely := make(chan error, 1)
		go func() {
			_, err := f.nodes[cut].cluster.Journal().Append(f.nodes[cut].last(), [][]byte{fmt.Appendf(nil, "lonely %d", round)})
			lonely <- err
		}()
		f.nodes[other].mustAppend(t, fmt.Sprintf("majority %d", round))
		stood = append(stood, fmt.Sprintf("majority %d", round))
		t.Logf("without its %s: known after %s, first append of the others after %s", which, knew, realClock().Sub(began))
		select {
		case err := <-lonely:
			t.Fatalf("the %s that is cut off was answered %v", which, err)
		default:
		}
		w.heal()
		began = realClock()
		if err := <-lonely; !errors.Is(err, actors.ErrPosition) {
			t.Errorf("the append of the %s ended with %v, want ErrPosition", which, err)
		}
		eventually(t, "a majority everywhere", func() bool { return f.nodes[cut].cluster.Standing().Majority })
		t.Logf("healed after %s", realClock().Sub(began))
	}
	if log := f.sameLogs(); fmt.Sprint(log) != fmt.Sprint(stood) {
		t.Errorf("log %q, want %q", log, stood)
	}
}

// waitSlack is what a busy machine may add.
const waitSlack = 2 * time.Second

// TestPartition_Start starts a node that is alone: it has its copy for reads, and no majority.
func TestPartition_Start(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.startAll()
	f.nodes[0].mustAppend(t, "kept")
	f.sameLogs()
	f.stopAll()
	f.start(1)
	if t.Failed() {
		t.FailNow()
	}
	n := f.nodes[1]
	if log := n.log(t); len(log) != 1 || log[0] != "kept" || n.cluster.Standing().Majority {
		t.Errorf("alone: log %q, standing %+v", log, n.cluster.Standing())
	}
	ended := make(chan error, 1)
	go func() {
		_, err := n.cluster.Journal().Append(1, [][]byte{[]byte("never")})
		ended <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := n.cluster.Seal(ctx); err == nil {
		t.Error("a seal without a majority")
	}
	f.stop(1)
	if err := <-ended; err == nil || errors.Is(err, actors.ErrPosition) {
		t.Errorf("the append that nobody could decide ended with %v", err)
	}
}
