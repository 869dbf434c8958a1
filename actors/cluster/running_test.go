package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/wal"
)

// TestRunning tests one running cluster of three nodes.
func TestRunning(t *testing.T) {
	t.Parallel()
	f := newTestCluster(t)
	f.startAll()
	f.runSteps(t,
		step{"OneWinner", oneWinner}, step{"Calls", callLeader}, step{"Limits", limits}, step{"SlowOwner", slowDelivery},
		step{"Seal", oneCodeKey},
		step{"Twice", sameNodeTwice}, step{"Refused", joinRefused}, step{"OtherHistory", otherHistory})
}

// oneWinner has three nodes append at once: each record is in the stream once, in the same order on every node.
func oneWinner(t *testing.T, f *testCluster) {
	const each = 20
	var acknowledged [3][]string
	var places [3][]uint64
	var all sync.WaitGroup
	for i, n := range f.nodes {
		all.Go(func() {
			for k := range each {
				record := fmt.Sprintf("n%d record %d", i+1, k)
				place, err := n.append(record)
				if err != nil {
					t.Errorf("append: %v", err)
				}
				acknowledged[i], places[i] = append(acknowledged[i], record), append(places[i], place)
			}
		})
	}
	all.Wait()
	log, taken := f.awaitSameRecords(0), slices.Concat(places[:]...)
	slices.Sort(taken)
	if len(log) != 3*each || len(slices.Compact(taken)) != 3*each {
		t.Fatalf("%d records, %d places, want %d", len(log), len(taken), 3*each)
	}
	for i := range places {
		for k, place := range places[i] {
			if log[place-1] != acknowledged[i][k] {
				t.Errorf("sequence %d has %q, acknowledged was %q", place, log[place-1], acknowledged[i][k])
			}
		}
	}
	if n := f.nodes[0].otherLists(); n > 0 {
		t.Errorf("%d nodes are shown with another list of members", n)
	}
}

// callLeader asks the leader through another node. A request without a number and an entry without a frame end the
// connection, and no more.
func callLeader(t *testing.T, f *testCluster) {
	at := f.leader()
	leader, other := f.nodes[at].cluster, f.nodes[(at+1)%3].cluster
	if _, err := leader.Journal().Ask(t.Context(), []byte("x")); !errors.Is(err, actors.ErrNotLeader) {
		t.Errorf("the leader asks itself: %v", err)
	}
	leader.Journal().Serve(func([]byte) []byte { return nil }, f.nodes[at].backup)
	if _, err := other.Journal().Ask(t.Context(), []byte("x")); !errors.Is(err, actors.ErrNotLeader) {
		t.Errorf("a leader that did nothing: %v", err)
	}
	defer leader.Journal().Serve(f.nodes[at].answer, f.nodes[at].backup)
	hold, received := make(chan struct{}), make(chan struct{})
	leader.Journal().Serve(func(request []byte) []byte {
		if string(request) == "wait" {
			received <- struct{}{}
			<-hold
		}
		return append([]byte("answer to "), request...)
	}, f.nodes[at].backup)
	for _, request := range []string{"one", strings.Repeat("x", 1<<20)} {
		if answer, err := other.Journal().Ask(t.Context(), []byte(request)); err != nil || string(answer) != "answer to "+request {
			t.Errorf("%.20q, %v", answer, err)
		}
	}
	link, waiting := other.transport.link(leader.config.name()), make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for call, end := range []func(){cancel, func() { link.send(kindCall, []byte("short")) }} {
		go func() {
			_, err := other.Journal().Ask(ctx, []byte("wait"))
			waiting <- err
		}()
		<-received
		end()
		if err := <-waiting; !errors.Is(err, actors.ErrOutcomeUnknown) {
			t.Errorf("call %d, whose time or connection ended: %v", call, err)
		}
		ctx = t.Context()
	}
	close(hold)
	eventually(t, "a new connection", link.up.Load)
	entry := &pb.Message{Type: pb.MsgApp.Enum(), Entries: []*pb.Entry{{Data: []byte("short")}}}
	if err := leader.transport.receive(nil, "node-2", kindRaft, mustMarshal(entry)); err == nil {
		t.Error("an entry without a frame is accepted")
	}
}

// limits appends the largest record, and rejects invalid ones.
func limits(t *testing.T, f *testCluster) {
	n, leader := f.nodes[1], f.nodes[f.leader()].cluster.Journal()
	at := n.mustAppend(t, strings.Repeat("x", recordBytesMax))
	for _, tt := range []struct {
		name     string
		expected uint64
		records  [][]byte
		want     error
	}{
		{"too large", at, [][]byte{make([]byte, recordBytesMax+1)}, wal.ErrLimit},
		{"empty", at, [][]byte{{}}, wal.ErrLimit},
		{"another term", 1 << 40, [][]byte{{1}}, actors.ErrNotLeader},
	} {
		if _, err := leader.Append(tt.expected, tt.records); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	leader.cluster.replica.transferUntil.Store(math.MaxInt64)
	if term, _ := leader.Leadership(); term != 0 {
		t.Error("the leader decides while it hands over")
	}
	leader.cluster.replica.transferUntil.Store(0)
	if _, err := n.cluster.Journal().Append(at, [][]byte{{1}, {2}}); err == nil {
		t.Error("two records are taken for one")
	}
	n.mustAppend(t, "after")
	if log := f.awaitSameRecords(at); !slices.Equal(log, []string{"after"}) {
		t.Errorf("after the largest record there is %q", log)
	}
	eventually(t, "a majority at node 2", func() bool { return n.cluster.Health().Majority })
}

const slowRecords = 192

// slowDelivery blocks deliveries on a node: its records wait for it.
func slowDelivery(t *testing.T, f *testCluster) {
	f.awaitSameRecords(0)
	slow := f.nodes[(f.leader()+1)%3]
	before := slow.last()
	slow.gate.Lock()
	f.appendMany("for the slow one", slowRecords)
	slow.gate.Unlock()
	if log := f.awaitSameRecords(before); len(log) != slowRecords {
		t.Errorf("%d records, want %d", len(log), slowRecords)
	}
}

// TestFullDisk takes the space from one node: the node reports its disk and not a lost majority, however long it waits,
// and its own changes are rejected. With space it has all records.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	f := newTestCluster(t)
	f.configs[2].Log.ReserveBytes = 1 << 60
	f.startAll()
	n := f.nodes[2]
	j := n.cluster.Journal()
	f.nodes[0].mustAppend(t, "no space for this")
	eventually(t, "a full disk", func() bool { return n.cluster.Health().DiskFull })
	if _, err := j.Append(j.Last(), [][]byte{[]byte("nor for this")}); !errors.Is(err, wal.ErrNoSpace) {
		t.Errorf("append on a full disk: %v", err)
	}
	eventually(t, "a majority", func() bool { return n.cluster.Health().Majority })
	f.stop(2)
	f.configs[2].Log.ReserveBytes = -1
	f.start(2)
	f.awaitSameRecords(0)
}

// oneCodeKey wants the same login-code key from all nodes.
func oneCodeKey(t *testing.T, f *testCluster) {
	var first []byte
	for i, n := range f.nodes {
		key := n.cluster.LoginCodeKey()
		if i == 0 {
			first = key
		}
		if len(key) != codeKeyBytes || !bytes.Equal(key, first) || bytes.Equal(key, make([]byte, codeKeyBytes)) {
			t.Errorf("node %d: key %x", i+1, key)
		}
	}
}

// sameNodeTwice starts a second process of a running node in another directory, as a replacement does: it is refused,
// and the first one goes on. Without the first it is accepted, and the first is refused, also later:
// it may lack records that it acknowledged.
func sameNodeTwice(t *testing.T, f *testCluster) {
	const words = "have accepted another process as node-2"
	first, second, elsewhere := f.configs[1], f.configs[1], freeAddresses(1)[0]
	second.Dir, second.Listen = f.parent.TempDir(), elsewhere
	wantRefused(t, second, words)
	copied := second
	copied.Dir = f.parent.TempDir() // of a running node: another process with its ID in raft
	if err := os.CopyFS(copied.Dir, os.DirFS(first.Dir)); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, copied, words)
	second.Dir, second.Listen = f.parent.TempDir(), first.Listen
	last := f.nodes[1].mustAppend(t, "of the first process")
	f.stop(1)
	replacement, err := startNode(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	replacement.await(t, last)
	replacement.mustAppend(t, "of the replacement")
	first.Listen = elsewhere
	wantRefused(t, first, words)
	if err := replacement.stop(); err != nil {
		t.Error(err)
	}
	wantRefused(t, f.configs[1], "the cluster has removed this node")
	f.configs[1].Dir = f.parent.TempDir()
	f.start(1).mustAppend(t, "first again")
}

// joinRefused starts nodes with conflicting configurations beside a running cluster.
func joinRefused(t *testing.T, f *testCluster) {
	wantRefused(t, f.configs[0], wal.ErrLocked.Error())
	busy := f.configs[1]
	busy.Dir, busy.Listen = t.TempDir(), f.configs[0].Listen
	wantRefused(t, busy, "address already in use")

	stream, path := f.nodes[0].cluster.self.Load().Stream, filepath.Join(f.configs[2].Dir, identityName)
	f.stop(2)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ from, to, words string }{
		{stream, strings.Repeat("0", 32), "belongs to stream 0000"},
		{`"test"`, `"other"`, `belongs to the cluster "other"`},
		{`"node": 3`, `"node": 7`, "belongs to node-7, this is node-3"},
		{`"format": 2`, `"format": 9`, "run the newer program"},
		{`"format": 2`, `"format": 1`, "a cluster of an earlier version"},
		{stream, "", "does not name a stream"},
		{"{", "", "invalid character"},
	} {
		write(strings.Replace(string(text), tt.from, tt.to, 1))
		wantRefused(t, f.configs[2], tt.words)
	}
	f.configs[2].Dir = f.parent.TempDir()
	appendOutside(t, f.configs[2].Dir, "1", "2")
	wantRefused(t, f.configs[2], "records that the cluster does not have")
	f.configs[2].Dir = f.parent.TempDir()
	f.start(2)
}
