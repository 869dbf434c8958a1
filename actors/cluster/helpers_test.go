package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/cluster/clustertest"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// waitMost is how long a test waits for what must come: elections take up to nine seconds, and the machine may be busy.
const waitMost = 90 * time.Second

var realClock = time.Now //nolint:forbidigo // the embedded server reads the real one too

// eventually waits until ok says so.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitMost)
	defer cancel()
	for !ok() {
		if pause(ctx, 5*time.Millisecond) != nil {
			t.Fatalf("waited %s for: %s", waitMost, what)
		}
	}
}

// fleet is the nodes of a test.
type fleet struct {
	t       testing.TB
	members []Member
	configs []Config
	nodes   []*testNode // nil while one is stopped
}

// newFleet is three nodes that are not started.
func newFleet(t testing.TB) *fleet {
	t.Helper()
	f := &fleet{t: t, nodes: make([]*testNode, 3)}
	at := clustertest.Addresses(t, 3)
	for i := range 3 {
		f.members = append(f.members, Member{Name: fmt.Sprintf("n%d", i+1), Address: at[i]})
	}
	for i := range 3 {
		f.configs = append(f.configs, f.config(f.members[i].Name, i+1, at[i], t.TempDir()))
	}
	t.Cleanup(f.stopAll)
	return f
}

func (f *fleet) config(name string, number int, listen, dir string) Config {
	level := slog.LevelError + 1
	if os.Getenv("CLUSTER_LOG") != "" {
		level = slog.LevelDebug
	}
	return Config{
		Cluster: "test", Name: name, Node: engine.NodeID(number), Members: f.members, Listen: listen, Dir: dir, Insecure: true,
		Version: "test", Clock: realClock, Log: wal.Options{ReserveBytes: -1},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With("node", name),
	}
}

// startAll starts those that are stopped, at once.
func (f *fleet) startAll() {
	f.t.Helper()
	var all sync.WaitGroup
	for i := range f.nodes {
		if f.nodes[i] == nil {
			all.Go(func() { f.start(i) })
		}
	}
	all.Wait()
	if f.t.Failed() {
		f.t.FailNow()
	}
}

func (f *fleet) start(i int) {
	f.t.Helper()
	n, err := startNode(f.t.Context(), f.configs[i])
	if err != nil {
		f.t.Errorf("start %s: %v", f.configs[i].Name, err)
		return
	}
	f.nodes[i] = n
}

func (f *fleet) stop(i int) {
	f.t.Helper()
	if n := f.nodes[i]; n != nil {
		f.nodes[i] = nil
		if err := n.stop(); err != nil {
			f.t.Errorf("stop %s: %v", f.configs[i].Name, err)
		}
	}
}

func (f *fleet) stopAll() {
	var all sync.WaitGroup
	for i := range f.nodes {
		all.Go(func() { f.stop(i) })
	}
	all.Wait()
}

// leader waits for a node that leads and has a majority.
func (f *fleet) leader() int {
	f.t.Helper()
	at := -1
	eventually(f.t, "a leader", func() bool {
		at = slices.IndexFunc(f.nodes, func(n *testNode) bool { return n != nil && n.cluster.leads() && n.cluster.Standing().Majority })
		return at >= 0
	})
	return at
}

// sameLogs waits until all nodes that run have what the longest one has, and compares record by record.
func (f *fleet) sameLogs() []string {
	f.t.Helper()
	var running []*testNode
	for _, n := range f.nodes {
		if n != nil {
			running = append(running, n)
		}
	}
	longest := uint64(0)
	for _, n := range running {
		longest = max(longest, n.cluster.Journal().Last())
	}
	var logs [][]string
	for _, n := range running {
		n.await(f.t, longest)
		logs = append(logs, n.log(f.t))
	}
	for i, log := range logs {
		if !slices.Equal(log, logs[0]) {
			f.t.Fatalf("logs of %s (%d records) and %s (%d) differ", running[0].cluster.config.Name, len(logs[0]), running[i].cluster.config.Name, len(log))
		}
	}
	return logs[0]
}

// testNode is a node whose actors only remember what they were given.
type testNode struct {
	cluster *Cluster
	cancel  context.CancelFunc
	done    chan struct{}

	mu        sync.Mutex
	delivered uint64
	moved     chan struct{} // closed at the next delivery
	gate      chan struct{} // nil, or what a delivery waits for
	err       error         // of Follow
}

func startNode(ctx context.Context, c Config) (*testNode, error) {
	ctx, cancel := context.WithTimeout(ctx, waitMost)
	defer cancel()
	joined, err := Open(ctx, c)
	if err != nil {
		return nil, err
	}
	n := &testNode{cluster: joined, done: make(chan struct{}), moved: make(chan struct{}), delivered: joined.Journal().Last()}
	following, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	go func() {
		defer close(n.done)
		err := joined.Journal().Follow(following, n.deliver)
		n.mu.Lock()
		n.err = err
		n.mu.Unlock()
	}()
	return n, nil
}

func (n *testNode) deliver(sequence uint64, record []byte) {
	n.mu.Lock()
	gate := n.gate
	n.mu.Unlock()
	if gate != nil {
		<-gate
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if sequence != n.delivered+1 || len(record) == 0 {
		panic(fmt.Sprintf("record %d after %d", sequence, n.delivered))
	}
	n.delivered = sequence
	close(n.moved)
	n.moved = make(chan struct{})
}

// beyond waits for a record behind this one.
func (n *testNode) beyond(sequence uint64) error {
	for {
		n.mu.Lock()
		there, moved := n.delivered > sequence, n.moved
		n.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-moved:
		case <-n.done:
			return errEnded
		}
	}
}

func (n *testNode) stop() error {
	n.cancel()
	<-n.done
	return errors.Join(n.err, n.cluster.Journal().Close(), n.cluster.Close())
}

func (n *testNode) last() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.delivered
}

func (n *testNode) await(t testing.TB, sequence uint64) {
	t.Helper()
	eventually(t, fmt.Sprintf("record %d at %s", sequence, n.cluster.config.Name), func() bool { return n.last() >= sequence })
}

// ends waits until Follow has ended.
func (n *testNode) ends(t testing.TB) {
	t.Helper()
	eventually(t, "the end of "+n.cluster.config.Name, func() bool {
		select {
		case <-n.done:
			return true
		default:
			return false
		}
	})
}

// log is what the copy has.
func (n *testNode) log(t testing.TB) []string {
	t.Helper()
	var records []string
	j := n.cluster.Journal()
	if err := j.Read(j.First(), func(_ uint64, record []byte) error {
		records = append(records, string(record))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return records
}

// append appends until the record stands: who loses a place tries the next one. It returns the place and how many were lost.
func (n *testNode) append(record string) (place uint64, lost int, err error) {
	for {
		last := n.last()
		place, err = n.cluster.Journal().Append(last, [][]byte{[]byte(record)})
		if !errors.Is(err, actors.ErrPosition) {
			return place, lost, err
		}
		lost++
		if err := n.beyond(last); err != nil { // the record that took the place is about to be delivered
			return 0, lost, err
		}
	}
}

// mustAppend is append that fails the test.
func (n *testNode) mustAppend(t testing.TB, record string) uint64 {
	t.Helper()
	place, _, err := n.append(record)
	if err != nil {
		t.Fatalf("append %q: %v", record, err)
	}
	return place
}

// snapshot has every node that runs keep one.
func (f *fleet) snapshot(sequence uint64) {
	f.t.Helper()
	for _, n := range f.nodes {
		if n == nil {
			continue
		}
		n.await(f.t, sequence)
		err := n.cluster.Journal().WriteSnapshot(sequence, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "state at %d", sequence)
			return err
		})
		if err != nil {
			f.t.Fatal(err)
		}
	}
}

// trimmedTo waits until the stream begins there.
func (f *fleet) trimmedTo(first uint64) {
	f.t.Helper()
	at := slices.IndexFunc(f.nodes, func(n *testNode) bool { return n != nil })
	eventually(f.t, fmt.Sprintf("a stream that begins with %d", first), func() bool {
		e, err := f.nodes[at].cluster.askExtent(f.t.Context())
		return err == nil && e.first == first
	})
}

// state is the newest snapshot.
func (n *testNode) state(t testing.TB) string {
	t.Helper()
	_, r, ok, err := n.cluster.Journal().Snapshot()
	if err != nil || !ok {
		t.Fatalf("no snapshot: %v", err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// takeError is how Follow ended; stop no longer tells it.
func (n *testNode) takeError() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := n.err
	n.err = nil
	return err
}

// sameTail is sameLogs from a record on, for nodes whose logs begin at different places.
func (f *fleet) sameTail(from uint64) {
	f.t.Helper()
	longest := uint64(0)
	for _, n := range f.nodes {
		longest = max(longest, n.cluster.Journal().Last())
	}
	var first []string
	for i, n := range f.nodes {
		n.await(f.t, longest)
		var tail []string
		if err := n.cluster.Journal().Read(from, func(_ uint64, record []byte) error {
			tail = append(tail, string(record))
			return nil
		}); err != nil {
			f.t.Fatal(err)
		}
		if i == 0 {
			first = tail
		}
		if !slices.Equal(first, tail) {
			f.t.Fatalf("from record %d on %s has %q, %s has %q", from, f.configs[0].Name, first, f.configs[i].Name, tail)
		}
	}
}

// restore does what hintRestore says.
func (f *fleet) restore(from int) {
	f.t.Helper()
	for i := range f.configs {
		if i != from {
			f.configs[i].Dir = f.t.TempDir()
		}
	}
	dir := f.configs[from].Dir
	if err := errors.Join(os.Remove(filepath.Join(dir, identityName)), os.RemoveAll(filepath.Join(dir, streamDirName))); err != nil {
		f.t.Fatal(err)
	}
}
