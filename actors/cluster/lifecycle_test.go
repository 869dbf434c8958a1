package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/actors"
)

// TestRestart restarts nodes of a cluster: one, the leader, all, and one without the others.
func TestRestart(t *testing.T) {
	t.Parallel()
	f := newTestCluster(t)
	f.startAll()
	f.runSteps(t, step{"One", restartOne}, step{"OldCopy", oldCopy}, step{"Leader", restartLeader}, step{"OneOnly", startOneOnly}, step{"All", restartAll})
}

// restartOne stops a node, appends without it, and starts it again.
func restartOne(t *testing.T, f *testCluster) {
	const more = framesMax + 20 // more than one batch of the local log
	f.nodes[0].mustAppend(t, "before")
	f.awaitSameRecords(0)
	f.stop(1)
	f.appendMany("while it is away", more)
	began := realClock()
	f.start(1).await(t, 1+more)
	t.Logf("one node back with %d records after %s", more, realClock().Sub(began))
	f.nodes[1].mustAppend(t, "with")
	if log := f.awaitSameRecords(0); len(log) != more+2 || log[0] != "before" || log[more+1] != "with" {
		t.Fatalf("%d records, from %q to %q", len(log), log[0], log[len(log)-1])
	}
}

// restartLeader has the leader hand over and stop while another node appends.
func restartLeader(t *testing.T, f *testCluster) {
	before := f.nodes[0].last()
	leader := f.leader()
	other := (leader + 1) % 3
	if err := f.nodes[leader].cluster.StepDown(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a leader that decides only with the newest record of earlier terms", func() bool {
		_, after := f.nodes[f.leader()].cluster.Journal().Leadership()
		return after == before
	})
	f.nodes[other].mustAppend(t, "handed over")
	f.stop(leader)
	f.nodes[other].mustAppend(t, "without it")
	f.start(leader).mustAppend(t, "back")
	if log := f.awaitSameRecords(before); !slices.Equal(log, []string{"handed over", "without it", "back"}) {
		t.Fatalf("log %q", log)
	}
}

// startOneOnly starts one node of a stopped cluster: it serves reads from its log, and has no majority.
func startOneOnly(t *testing.T, f *testCluster) {
	want := f.awaitSameRecords(0)
	f.stopAll()
	c, reads := f.configs[1], atomic.Int64{}
	c.Clock = func() time.Time { return realClock().Add(time.Duration(reads.Add(1)) * majorityTimeout / 100) } // so that majorityTimeout ends soon
	n, err := startNode(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if log := n.log(t, 0); !slices.Equal(log, want) || n.cluster.Health().Majority {
		t.Errorf("one node only: %d records of %d, standing %+v", len(log), len(want), n.cluster.Health())
	}
	if _, err := n.appendHere("never"); !errors.Is(err, actors.ErrNotLeader) {
		t.Errorf("the append of one node only: %v", err)
	}
	if len(n.cluster.LoginCodeKey()) != codeKeyBytes {
		t.Error("no key for login codes")
	}
	if err := n.stop(); err != nil {
		t.Error(err)
	}
}

// restartAll starts all nodes again.
func restartAll(t *testing.T, f *testCluster) {
	began := realClock()
	f.startAll()
	last := f.nodes[0].last()
	f.nodes[0].mustAppend(t, "after")
	t.Logf("all back, and the first append, after %s", realClock().Sub(began))
	if log := f.awaitSameRecords(0); log[len(log)-1] != "after" || uint64(len(log)) != last+1 || slices.Contains(log, "never") {
		t.Fatalf("%d records, the last is %q", len(log), log[len(log)-1])
	}
}

// TestTrimmed has a long stream trimmed up to the snapshots of the reachable nodes.
func TestTrimmed(t *testing.T) {
	t.Parallel()
	f := newTestCluster(t)
	for i := range f.configs {
		f.configs[i].checkpointEntries = 4
	}
	f.startAll()
	f.runSteps(t, step{"Away", awayWhileTrimmed}, step{"Wiped", replacedMachine}, step{"Diverged", diverged}, step{"LostStream", lostStream})
}

// awayWhileTrimmed trims records that a stopped node lacks: it copies another node's state when it starts.
func awayWhileTrimmed(t *testing.T, f *testCluster) {
	f.nodes[0].mustAppend(t, "record 1")
	f.awaitSameRecords(0)
	away, err := f.nodes[2].cluster.store.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	f.stop(2)
	const more = 8
	for k := range more {
		f.nodes[0].mustAppend(t, fmt.Sprintf("record %d", k+2))
	}
	eventually(t, "logs of raft that begin later, and no messages for the node that is away", func() bool {
		return !slices.ContainsFunc(f.nodes[:2], func(n *testNode) bool {
			first, err := n.cluster.store.FirstIndex()
			n.cluster.transport.mu.Lock()
			defer n.cluster.transport.mu.Unlock()
			return err != nil || first <= away+1 || len(n.cluster.transport.links["node-3"].out) > 0
		})
	})
	f.start(2)
	f.wantBackup(t, 2, more+1)
}

// wantBackup wants a node to have another node's state and the records after it, and to write.
func (f *testCluster) wantBackup(t *testing.T, i int, last uint64) {
	t.Helper()
	n := f.nodes[i]
	n.await(t, last)
	if got := n.cluster.Journal().Recovery().SnapshotSequence; got != last {
		t.Errorf("a state after record %d, want %d", got, last)
	}
	newest := fmt.Sprintf("of n%d with a copy", i+1)
	n.mustAppend(t, newest)
	if log := f.awaitSameRecords(last); log[len(log)-1] != newest {
		t.Errorf("after record %d there are %q", last, log)
	}
}

// replacedMachine empties a node's directory: it gets another node's state, although there are always newer records.
func replacedMachine(t *testing.T, f *testCluster) {
	f.stop(1)
	f.configs[1].Dir = f.parent.TempDir()
	last := f.nodes[0].mustAppend(t, "without a machine")
	for _, i := range []int{0, 2} {
		f.nodes[i].whileSending(func() { f.appendMany("while it is sent", 10) })
		defer f.nodes[i].whileSending(nil)
	}
	f.start(1)
	f.wantBackup(t, 1, last)
}

// oldCopy puts an old copy of a directory back after the leader has changed: the node stops before it votes.
func oldCopy(t *testing.T, f *testCluster) {
	f.awaitSameRecords(f.nodes[0].last())
	victim := (f.leader() + 1) % 3
	f.stop(victim)
	copied := f.parent.TempDir()
	if err := os.CopyFS(copied, os.DirFS(f.configs[victim].Dir)); err != nil {
		t.Fatal(err)
	}
	f.start(victim).mustAppend(t, "confirmed after the copy")
	f.awaitSameRecords(f.nodes[victim].last())
	leader := f.leader()
	if leader == victim {
		t.Fatal("the node that was started leads")
	}
	id, index := f.nodes[victim].cluster.self.Load().Raft, uint64(0)
	f.nodes[leader].cluster.replica.do(func() { index = f.nodes[leader].cluster.replica.applied.Load() })
	eventually(t, "all know what the node has confirmed", func() bool {
		return f.nodes[3-leader-victim].cluster.replica.durableIndexes()[id] >= index
	})
	f.stop(victim)
	if err := f.nodes[leader].cluster.StepDown(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.nodes[leader].mustAppend(t, "of the next leader")
	old := f.configs[victim]
	old.Dir = copied
	wantEnded(t, old, errOlder)
	f.start(victim)
	f.awaitSameRecords(0)
}

// diverged starts a node whose log was written to outside the cluster, with a record more than the stream and with
// another record than the stream. It is refused, and the remedy in the error helps.
func diverged(t *testing.T, f *testCluster) {
	f.awaitSameRecords(f.nodes[2].last())
	last := f.nodes[2].last()
	f.stop(2)
	appendOutside(t, f.configs[2].Dir, "outside")
	wantEnded(t, f.configs[2], ErrDiverged)
	f.nodes[0].mustAppend(t, "inside")
	wantEnded(t, f.configs[2], ErrDiverged)
	f.configs[2].Dir = f.parent.TempDir()
	f.start(2)
	if log := f.awaitSameRecords(last); !slices.Equal(log, []string{"inside"}) {
		t.Errorf("log %q", log)
	}
}

// lostStream gives two nodes a record that the stream lacks, as if the members had lost it. The error names a remedy,
// which helps.
func lostStream(t *testing.T, f *testCluster) {
	f.awaitSameRecords(f.nodes[2].last())
	last := f.nodes[2].last()
	for _, i := range []int{1, 2} {
		f.stop(i)
		appendOutside(t, f.configs[i].Dir, "lost by the others")
	}
	wantEnded(t, f.configs[2], ErrDiverged)
	f.stopAll()
	dir := f.configs[2].Dir
	if err := errors.Join(os.Remove(filepath.Join(dir, identityName)), os.RemoveAll(filepath.Join(dir, raftDirName))); err != nil {
		t.Fatal(err)
	}
	f.configs[0].Dir, f.configs[1].Dir = f.parent.TempDir(), f.parent.TempDir()
	f.startAll()
	f.nodes[0].mustAppend(t, "formed again")
	if log := f.awaitSameRecords(last); !slices.Equal(log, []string{"lost by the others", "formed again"}) {
		t.Errorf("log %q", log)
	}
}
