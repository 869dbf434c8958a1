package cluster

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// TestMain runs the tests. No goroutine may be left afterwards. Four test clusters run in parallel on any number of
// processors, because they mostly wait for elections; more would need over 1,024 descriptors.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// waitTimeout is generous: elections take seconds, and the machine may be busy.
const waitTimeout = 90 * time.Second

var realClock = time.Now //nolint:forbidigo // the sockets use the real one too

// eventually polls ok until it returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	for !ok() {
		if sleep(ctx, 5*time.Millisecond) != nil {
			t.Fatalf("waited %s for: %s", waitTimeout, what)
		}
	}
}

// testCluster is the nodes of a test.
type testCluster struct {
	t, parent testing.TB // of the running step, and of the whole test
	members   []Member
	configs   []Config
	nodes     []*testNode // nil while stopped
}

// newTestCluster prepares three nodes without starting them.
func newTestCluster(t testing.TB) *testCluster {
	t.Helper()
	f := &testCluster{t: t, parent: t, nodes: make([]*testNode, 3)}
	at := freeAddresses(3)
	for i := range 3 {
		f.members = append(f.members, Member{Node: engine.NodeID(i + 1), Address: at[i]})
	}
	for i := range 3 {
		f.configs = append(f.configs, f.config(i+1, at[i], t.TempDir()))
	}
	t.Cleanup(f.stopAll)
	return f
}

// step is one step of a test on a cluster.
type step struct {
	name string
	run  func(*testing.T, *testCluster)
}

// runSteps runs steps one after the other on the same nodes, up to the first that fails.
func (f *testCluster) runSteps(t *testing.T, parts ...step) {
	t.Helper()
	defer func() { f.t = t }()
	for _, p := range parts {
		if !t.Run(p.name, func(t *testing.T) { f.t = t; p.run(t, f) }) {
			return
		}
	}
}

func (f *testCluster) config(number int, listen, dir string) Config {
	level := slog.LevelError + 1
	if os.Getenv("CLUSTER_LOG") != "" {
		level = slog.LevelDebug
	}
	return Config{
		Cluster: "test", Node: engine.NodeID(number), Members: f.members, Listen: listen, Dir: dir, Secret: testSecret,
		Version: "test", Clock: realClock, Random: rand.Reader, Log: wal.Options{ReserveBytes: -1},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With("node", number),
	}
}

// startAll starts all stopped nodes at once.
func (f *testCluster) startAll() {
	f.t.Helper()
	var all sync.WaitGroup
	errs := make([]error, len(f.nodes))
	for i := range f.nodes {
		if f.nodes[i] == nil {
			all.Go(func() { f.nodes[i], errs[i] = startNode(f.t.Context(), f.configs[i]) })
		}
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		f.t.Fatal(err)
	}
}

func (f *testCluster) start(i int) *testNode {
	f.t.Helper()
	n, err := startNode(f.t.Context(), f.configs[i])
	if err != nil {
		f.t.Fatalf("start %s: %v", f.configs[i].name(), err)
	}
	f.nodes[i] = n
	return n
}

func (f *testCluster) stop(i int) {
	f.t.Helper()
	if n := f.nodes[i]; n != nil {
		f.nodes[i] = nil
		if err := n.stop(); err != nil {
			f.t.Errorf("stop %s: %v", f.configs[i].name(), err)
		}
	}
}

func (f *testCluster) stopAll() {
	var all sync.WaitGroup
	for i := range f.nodes {
		all.Go(func() { f.stop(i) })
	}
	all.Wait()
}

// leader waits for a node that leads with a majority.
func (f *testCluster) leader() int {
	f.t.Helper()
	at := -1
	eventually(f.t, "a leader", func() bool {
		at = slices.IndexFunc(f.nodes, func(n *testNode) bool {
			return n != nil && n.cluster.replica.leads.Load() && n.cluster.Health().Majority
		})
		return at >= 0
	})
	return at
}

// awaitSameRecords waits until all running nodes have the newest record of any of them, compares their records after
// a sequence, and returns those.
func (f *testCluster) awaitSameRecords(after uint64) []string {
	f.t.Helper()
	running := slices.DeleteFunc(slices.Clone(f.nodes), func(n *testNode) bool { return n == nil })
	longest := uint64(0)
	for _, n := range running {
		longest = max(longest, n.cluster.Journal().Last())
	}
	var first []string
	for i, n := range running {
		n.await(f.t, longest)
		log := n.log(f.t, after)
		if i == 0 {
			first = log
		}
		if !slices.Equal(log, first) {
			f.t.Fatalf("after record %d %s has %q, %s has %q", after, running[0].cluster.config.name(), first, n.cluster.config.name(), log)
		}
	}
	return first
}

// appendedCount makes the records of appendMany differ.
var appendedCount atomic.Int64

// appendMany appends records through the leader and returns them.
func (f *testCluster) appendMany(what string, count int) (records []string) {
	f.t.Helper()
	for range count {
		records = append(records, fmt.Sprint(what, " ", appendedCount.Add(1)))
		f.nodes[f.leader()].mustAppend(f.t, records[len(records)-1])
	}
	return records
}

// testNode is a node whose actors only count what is delivered.
type testNode struct {
	cluster *Cluster
	cancel  context.CancelFunc
	done    chan struct{} // closed when Follow has returned
	err     error         // of Follow, once done is closed

	gate      sync.Mutex // blocks deliveries while it is locked
	records   []string   // the state: all records of the stream
	delivered atomic.Uint64
	lost      atomic.Uint64 // newest term of this leader that has ended
	sending   func()        // called between the state of a backup and its sending, if not nil; guarded by gate
	appending sync.Mutex
}

func startNode(ctx context.Context, c Config) (*testNode, error) {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	joined, err := Open(c)
	if err != nil {
		return nil, err
	}
	if _, err := joined.Join(ctx); err != nil {
		return nil, errors.Join(err, joined.Close())
	}
	n := &testNode{cluster: joined, done: make(chan struct{})}
	if n.records, err = readState(joined.Journal()); err != nil {
		return nil, errors.Join(err, joined.Journal().Close(), joined.Close())
	}
	n.delivered.Store(joined.Journal().Last())
	joined.Journal().Serve(n.answer, n.backup)
	following, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	go func() {
		defer close(n.done)
		n.err = joined.Journal().Follow(following, n.deliver, n.lost.Store)
	}()
	return n, nil
}

func (n *testNode) deliver(sequence uint64, record []byte) {
	n.gate.Lock()
	defer n.gate.Unlock()
	if last := n.last(); sequence != last+1 || len(record) == 0 {
		panic(fmt.Sprintf("record %d after %d", sequence, last))
	}
	n.records = append(n.records, string(record))
	n.delivered.Store(sequence)
}

func (n *testNode) stop() error {
	n.cancel()
	<-n.done
	return errors.Join(n.err, n.cluster.Journal().Close(), n.cluster.Close())
}

func (n *testNode) last() uint64 { return n.delivered.Load() }

func (n *testNode) await(t testing.TB, sequence uint64) {
	t.Helper()
	eventually(t, fmt.Sprintf("record %d at %s", sequence, n.cluster.config.name()), func() bool { return n.last() >= sequence })
}

// awaitEnd waits until Follow has returned and takes its error, so that stop does not return it.
func (n *testNode) awaitEnd(t testing.TB) error {
	t.Helper()
	select {
	case <-n.done:
	case <-time.NewTimer(waitTimeout).C:
		t.Fatalf("%s goes on", n.cluster.config.name())
	}
	err := n.err
	n.err = nil
	return err
}

// log returns the records after a sequence, as this node has them on disk.
func (n *testNode) log(t testing.TB, after uint64) []string {
	t.Helper()
	records, err := readState(n.cluster.Journal())
	if err != nil {
		t.Fatal(err)
	}
	return records[after:]
}

// readState returns all records of the stream: those in the state with which the local log begins, and those after it.
func readState(j *Journal) (records []string, err error) {
	_, state, ok, err := j.Snapshot()
	if ok {
		err = errors.Join(json.NewDecoder(state).Decode(&records), state.Close())
	}
	if err != nil {
		return nil, err
	}
	err = j.Read(j.First(), func(_ uint64, record []byte) error {
		records = append(records, string(record))
		return nil
	})
	return records, err
}

// append appends a record at the leader, and waits until this node has it. It repeats what no leader has accepted.
func (n *testNode) append(record string) (place uint64, err error) {
	for {
		if place, err = n.appendHere(record); errors.Is(err, actors.ErrNotLeader) {
			var answer []byte
			if answer, err = n.cluster.Journal().Ask(context.Background(), []byte(record)); err == nil {
				place = binary.LittleEndian.Uint64(answer)
			}
		}
		for err == nil && n.last() < place {
			err = n.wait(time.Millisecond)
		}
		if !errors.Is(err, actors.ErrNotLeader) {
			return place, err
		}
		if err := n.wait(5 * time.Millisecond); err != nil {
			return 0, err
		}
	}
}

var errClosed = errors.New("Follow has returned")

// wait waits, and returns errClosed if Follow returns meanwhile.
func (n *testNode) wait(d time.Duration) error {
	select {
	case <-n.done:
		return errClosed
	case <-time.NewTimer(d).C:
		return nil
	}
}

// appendHere appends a record, unlike any other, if this node leads, and waits for the outcome.
func (n *testNode) appendHere(record string) (uint64, error) {
	n.appending.Lock()
	defer n.appending.Unlock()
	j := n.cluster.Journal()
	term, after := j.Leadership()
	if term == 0 || n.last() < after {
		return 0, actors.ErrNotLeader
	}
	before := n.last()
	_, err := j.Append(term, [][]byte{[]byte(record)})
	for err == nil {
		lost := n.lost.Load() >= term
		if at := slices.Index(n.after(before), record); at >= 0 {
			return before + uint64(at) + 1, nil
		}
		if err = n.wait(time.Millisecond); lost {
			return 0, actors.ErrOutcomeUnknown
		}
	}
	return 0, err
}

// after returns the delivered records after a sequence.
func (n *testNode) after(sequence uint64) []string {
	n.gate.Lock()
	defer n.gate.Unlock()
	return n.records[sequence:]
}

// answer appends a record for another node.
func (n *testNode) answer(record []byte) []byte {
	place, err := n.appendHere(string(record))
	if errors.Is(err, actors.ErrNotLeader) {
		return nil
	}
	return binary.LittleEndian.AppendUint64(nil, place)
}

// backup writes a backup for another node.
func (n *testNode) backup(w io.Writer) error {
	n.gate.Lock()
	records, sending := slices.Clone(n.records), n.sending
	n.gate.Unlock()
	if sending != nil {
		sending()
	}
	return wal.WriteBackup(w, wal.BackupInfo{Sequence: uint64(len(records))}, func(w io.Writer) error { return json.NewEncoder(w).Encode(records) })
}

// whileSending sets a function that is called while a backup is sent.
func (n *testNode) whileSending(do func()) {
	n.gate.Lock()
	defer n.gate.Unlock()
	n.sending = do
}

// mustAppend is append that fails the test on an error.
func (n *testNode) mustAppend(t testing.TB, record string) uint64 {
	t.Helper()
	place, err := n.append(record)
	if err != nil || place == 0 {
		t.Fatalf("append %q: %v", record, err)
	}
	return place
}

// otherHistory is the last step on a cluster: every node stops before it applies a record of a node that has another
// one before it.
func otherHistory(t *testing.T, f *testCluster) {
	f.awaitSameRecords(f.nodes[0].last())
	state, leader := f.nodes[0].cluster.replica.state.Load(), f.nodes[f.leader()].cluster.replica
	last, entry := state.Sequence, frame{sequence: state.Sequence + 1, previous: state.Checksum + 1, record: []byte("whole")}
	eventually(t, "an entry that is taken", func() (ok bool) {
		return leader.do(func() { ok = leader.raw.Propose(entry.encode()) == nil }) && ok
	})
	for _, n := range f.nodes {
		if err := n.awaitEnd(t); !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), fmt.Sprintf("record %d", last+1)) {
			t.Errorf("follow ended with %v", err)
		}
		if n.last() != last || n.cluster.Journal().Last() != last {
			t.Errorf("delivered up to %d, kept up to %d, want %d", n.last(), n.cluster.Journal().Last(), last)
		}
	}
}

// appendOutside appends records to the log in a directory as a node without a cluster does.
func appendOutside(t testing.TB, dir string, records ...string) {
	t.Helper()
	log, err := wal.Open(dir, wal.Options{ReserveBytes: -1, Clock: realClock})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, record := range records {
		if _, err := log.Append([][]byte{[]byte(record)}); err != nil {
			t.Fatal(err)
		}
	}
}

// wantRefused starts a node and wants an error that contains words.
func wantRefused(t testing.TB, c Config, words string) {
	t.Helper()
	n, err := startNode(t.Context(), c)
	switch {
	case err == nil:
		t.Errorf("started, want %q; %v", words, n.stop())
	case !strings.Contains(err.Error(), words):
		t.Errorf("refused with %q, want %q", err, words)
	}
}

// wantEnded starts a node that ends with an error: when it joins or, if the others were slow to answer, soon after.
func wantEnded(t testing.TB, c Config, want error) {
	t.Helper()
	n, err := startNode(t.Context(), c)
	if err == nil {
		err = n.awaitEnd(t)
		if stopErr := n.stop(); stopErr != nil {
			t.Error(stopErr)
		}
	}
	if !errors.Is(err, want) {
		t.Errorf("ended with %v, want %v", err, want)
	}
}

// otherLists returns how many nodes have another list of members.
func (n *testNode) otherLists() (count int) {
	for _, s := range n.cluster.Status().Nodes {
		if s.OtherMembers {
			count++
		}
	}
	return count
}

// hosts is the number of loopback hosts that the tests of this process have used. No two tests share one, so a node
// that starts again finds its address free, and no node of an earlier test dials it.
var hosts atomic.Int64

// freeAddresses returns count loopback addresses (host:port) that no other test uses.
func freeAddresses(count int) (addresses []string) {
	for range count {
		n := int64(os.Getpid())<<8 + hosts.Add(1)
		addresses = append(addresses, fmt.Sprintf("127.%d.%d.%d:6221", 64+n>>16&63, n>>8&255, n&255))
	}
	return addresses
}
