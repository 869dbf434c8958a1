package cluster

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tasard/tasard/actors/cluster/clustertest"
)

// TestJournal_OneWinner has three nodes append at once: each record stands once, in one order, the same on every node.
func TestJournal_OneWinner(t *testing.T) {
	f := newFleet(t)
	f.startAll()
	const each = 40
	var all sync.WaitGroup
	places := make([][]uint64, 3)
	lost := make([]int, 3)
	for i, n := range f.nodes {
		all.Go(func() {
			for k := range each {
				place, misses, err := n.append(fmt.Sprintf("n%d record %d", i+1, k))
				if err != nil {
					t.Errorf("append: %v", err)
					return
				}
				places[i], lost[i] = append(places[i], place), lost[i]+misses
			}
		})
	}
	all.Wait()
	log := f.sameLogs()
	taken := slices.Concat(places...)
	slices.Sort(taken)
	if len(log) != 3*each || len(slices.Compact(taken)) != 3*each {
		t.Fatalf("%d records, %d places, want %d", len(log), len(taken), 3*each)
	}
	for i := range places {
		for k, place := range places[i] {
			if want := fmt.Sprintf("n%d record %d", i+1, k); log[place-1] != want {
				t.Errorf("place %d has %q, its writer was told %q", place, log[place-1], want)
			}
		}
	}
	if lost[0]+lost[1]+lost[2] == 0 {
		t.Error("nobody lost a place: the writers did not meet")
	}
	t.Logf("places lost: %v", lost)
}

// TestCluster_Restart stops a node, goes on without it, and starts it again; then all at once.
func TestCluster_Restart(t *testing.T) {
	f := newFleet(t)
	f.startAll()
	f.nodes[0].mustAppend(t, "before")
	f.sameLogs()
	f.stop(1)
	for k := range 700 { // more than are fetched at once
		f.nodes[2].mustAppend(t, fmt.Sprintf("without %d", k))
	}
	began := realClock()
	f.start(1)
	f.nodes[1].await(t, 701)
	t.Logf("one node back with 700 records after %s", realClock().Sub(began))
	f.nodes[1].mustAppend(t, "with")
	if log := f.sameLogs(); len(log) != 702 || log[0] != "before" || log[701] != "with" {
		t.Fatalf("%d records, from %q to %q", len(log), log[0], log[len(log)-1])
	}
	f.stopAll()
	began = realClock()
	f.startAll()
	started := realClock().Sub(began)
	f.nodes[0].mustAppend(t, "after")
	t.Logf("all back after %s, the first append after %s", started, realClock().Sub(began))
	if log := f.sameLogs(); len(log) != 703 || log[702] != "after" {
		t.Fatalf("%d records, the last is %q", len(log), log[len(log)-1])
	}
}

// TestCluster_LeaderStops stops the leader, with and without word, while another node appends.
func TestCluster_LeaderStops(t *testing.T) {
	f := newFleet(t)
	f.startAll()
	f.nodes[0].mustAppend(t, "first")
	leader := f.leader()
	began := realClock()
	if err := f.nodes[leader].cluster.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := (leader + 1) % 3
	f.nodes[other].mustAppend(t, "second")
	t.Logf("handed over, and a record appended, after %s", realClock().Sub(began))
	f.stop(leader)
	f.nodes[other].mustAppend(t, "third")
	f.start(leader)
	if t.Failed() {
		t.FailNow()
	}
	f.nodes[leader].mustAppend(t, "fourth")
	if log := f.sameLogs(); !slices.Equal(log, []string{"first", "second", "third", "fourth"}) {
		t.Fatalf("log %q", log)
	}
}

// trimmedFleet is three nodes with twenty records, of which the stream has those behind their snapshot alone.
func trimmedFleet(t *testing.T, snapshot uint64) *fleet {
	t.Helper()
	f := newFleet(t)
	f.startAll()
	for k := range 20 {
		f.nodes[0].mustAppend(t, fmt.Sprintf("record %d", k+1))
	}
	f.sameLogs()
	f.snapshot(snapshot)
	f.trimmedTo(snapshot + 1)
	return f
}

// TestCluster_Wiped replaces a machine by an empty directory, after the stream was trimmed: the node gets a snapshot and what follows it.
func TestCluster_Wiped(t *testing.T) {
	f := trimmedFleet(t, 15)
	f.stop(1)
	f.configs[1].Dir = t.TempDir()
	f.nodes[0].mustAppend(t, "record 21")
	began := realClock()
	f.start(1)
	if t.Failed() {
		t.FailNow()
	}
	f.nodes[1].await(t, 21)
	t.Logf("an empty node back after %s", realClock().Sub(began))
	if got := f.nodes[1].state(t); got != "state at 15" {
		t.Errorf("the snapshot is %q", got)
	}
	f.nodes[1].mustAppend(t, "record 22")
	f.nodes[0].await(t, 22)
	last := f.nodes[1].log(t)
	if last[len(last)-1] != "record 22" {
		t.Errorf("the log ends with %q", last[len(last)-1])
	}
}

// TestCluster_Guest has a fourth node join, without a vote: it writes and reads as the others do, and leaves.
func TestCluster_Guest(t *testing.T) {
	f := trimmedFleet(t, 10)
	f.configs = append(f.configs, f.config("guest", 4, clustertest.Addresses(t, 1)[0], t.TempDir()))
	f.nodes = append(f.nodes, nil)
	began := realClock()
	f.start(3)
	if t.Failed() {
		t.FailNow()
	}
	guest := f.nodes[3]
	guest.await(t, 20)
	t.Logf("a guest is there after %s", realClock().Sub(began))
	guest.mustAppend(t, "of the guest")
	f.nodes[1].await(t, 21)
	eventually(t, "a majority at the guest", func() bool { return guest.cluster.Standing().Majority })
	eventually(t, "the guest in the status", func() bool {
		at := slices.IndexFunc(f.nodes[0].cluster.Status().Nodes, func(n NodeStatus) bool {
			return n.Name == "guest" && n.Reachable && !n.Member && n.Last == 21 && n.Lag == 0
		})
		return at >= 0
	})
	f.stop(3)
	f.nodes[2].mustAppend(t, "without the guest")
}
