package cluster

import (
	"slices"
	"testing"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/tasard/tasard/engine"
)

// TestMembers changes the list of members of a running cluster: from three to five, back to three without two of the
// first, and to another address of the last. No acknowledged record is lost, and the members that are left need no
// others.
func TestMembers(t *testing.T) {
	t.Parallel()
	f := newTestCluster(t)
	f.startAll()
	for i, at := range freeAddresses(2) {
		f.members = append(f.members, Member{Node: engine.NodeID(i + 4), Address: at})
	}
	for i, m := range f.members[3:] {
		f.configs, f.nodes = append(f.configs, f.config(i+4, m.Address, t.TempDir())), append(f.nodes, nil)
	}
	for i := range 3 {
		f.relist(i, f.members)
	}
	written := f.appendMany("before", 5)
	if got := f.voterNames(); len(got) != 3 {
		t.Errorf("%q vote while two of five members were never seen", got)
	}
	f.start(3)
	f.start(4)
	eventually(t, "five voters", func() bool { return len(f.voterNames()) == 5 && f.currentMembers() == 5 })
	written = append(written, f.appendMany("five", 5)...)

	left := slices.Clone(f.members[2:])
	for _, i := range []int{2, 3, 4} {
		f.relist(i, left)
		eventually(t, "current members", func() bool { return f.currentMembers() >= 3 })
	}
	f.stop(0)
	f.stop(1)
	written = append(written, f.appendMany("three of five", 5)...)
	eventually(t, "three voters", func() bool { return slices.Equal(f.voterNames(), []string{"node-3", "node-4", "node-5"}) })
	eventually(t, "no report about the nodes that have left", func() bool { return len(f.nodes[f.leader()].cluster.Status().Nodes) == 3 })

	left = slices.Clone(left)
	left[2].Address = freeAddresses(1)[0] // node-5 moves
	f.configs[4].Listen = left[2].Address
	for _, i := range []int{2, 3, 4} {
		f.relist(i, left)
	}
	f.stop(2)
	written = append(written, f.appendMany("two of three", 5)...)
	if log := f.awaitSameRecords(0); !slices.Equal(log, written) {
		t.Errorf("the log has %q, acknowledged were %q", log, written)
	}
}

// TestMembers_Swap puts a node with another number in the place of a member.
func TestMembers_Swap(t *testing.T) {
	t.Parallel()
	f := newTestCluster(t)
	f.startAll()
	written := f.appendMany("before", 5)
	f.members = append(slices.Clone(f.members[:2]), Member{Node: 4, Address: freeAddresses(1)[0]})
	f.configs, f.nodes = append(f.configs, f.config(4, f.members[2].Address, t.TempDir())), append(f.nodes, nil)
	f.relist(0, f.members)
	f.relist(1, f.members)
	f.stop(2)
	f.start(3)
	eventually(t, "three voters", func() bool { return slices.Equal(f.voterNames(), []string{"node-1", "node-2", "node-4"}) })
	f.stop(f.leader())
	written = append(written, f.appendMany("without one of the first", 5)...)
	if log := f.awaitSameRecords(0); !slices.Equal(log, written) {
		t.Errorf("the log has %q, acknowledged were %q", log, written)
	}
}

// TestMembers_LearnerFirst: a new member becomes a learner, and a voter when it lacks at most promoteLag entries.
func TestMembers_LearnerFirst(t *testing.T) {
	storage, conf := raft.NewMemoryStorage(), &pb.ConfState{Voters: []uint64{1}, Learners: []uint64{2}}
	snapshot := &pb.SnapshotMetadata{Index: proto.Uint64(100), Term: proto.Uint64(1), ConfState: conf}
	if err := storage.ApplySnapshot(&pb.Snapshot{Metadata: snapshot}); err != nil {
		t.Fatal(err)
	}
	raw, err := raft.NewRawNode(&raft.Config{ID: 1, ElectionTick: 20, HeartbeatTick: 4, MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 64, Storage: storage})
	if err == nil {
		err = raw.Campaign()
	}
	for err == nil && raw.HasReady() {
		ready := raw.Ready()
		err = storage.Append(ready.Entries)
		raw.Advance(ready)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{c: &Cluster{config: Config{Members: []Member{{Node: 1}, {Node: 2}, {Node: 3}}}}, raw: raw}
	r.state.Store(&replicated{Nodes: map[uint64]nodeName{1: {"node-1"}, 2: {"node-2"}}})
	r.conf.Store(conf)
	status := raw.Status()
	commit := status.HardState.GetCommit()
	for _, c := range []struct {
		id, match uint64
		want      *pb.ConfChange
	}{
		{3, 0, change(pb.ConfChangeAddLearnerNode, 3, "node-3")},
		{2, 0, nil},
		{2, commit - promoteLag - 1, nil},
		{2, commit - promoteLag, change(pb.ConfChangeAddNode, 2, "node-2")},
	} {
		answer := &pb.Message{Type: pb.MsgAppResp.Enum(), From: &c.id, To: proto.Uint64(1), Term: status.HardState.Term, Index: &c.match}
		if err := raw.Step(answer); c.match > 0 && err != nil {
			t.Fatal(err)
		}
		seen := heartbeat{ClusterNode: engine.ClusterNode{Name: NodeName(engine.NodeID(c.id))}, Raft: c.id, Members: r.c.config.memberAddresses()}
		if got := r.nextChange([]heartbeat{seen}); !proto.Equal(got, c.want) {
			t.Errorf("node %d with %d of %d entries: %v, want %v", c.id, c.match, commit, got, c.want)
		}
	}
}

// TestMembers_Gone: a node that is no longer in the list stays while it is reachable, and a removed one stays out.
// There is a majority only when a majority of the list votes.
func TestMembers_Gone(t *testing.T) {
	r := &replica{c: &Cluster{config: Config{Members: []Member{{Node: 1}, {Node: 2}, {Node: 3}}}}}
	r.state.Store(&replicated{Nodes: map[uint64]nodeName{1: {"node-1"}, 2: {"node-2"}, 3: {"node-3"}, 4: {"node-4"}}, Removed: []uint64{5}})
	r.conf.Store(&pb.ConfState{Voters: []uint64{1, 2, 3, 4}})
	seen := func(id uint64, name, stream string) heartbeat {
		return heartbeat{ClusterNode: engine.ClusterNode{Name: name}, Raft: id, Stream: stream, Members: r.c.config.memberAddresses()}
	}
	left := seen(4, "node-4", "")
	for _, tt := range []struct {
		name      string
		reachable []heartbeat
		want      *pb.ConfChange
	}{
		{"reachable", []heartbeat{left}, nil},
		{"gone", nil, change(pb.ConfChangeRemoveNode, 4, "node-4")},
		{"removed", []heartbeat{left, seen(5, "node-3", "")}, nil},
		{"of another stream", []heartbeat{left, seen(6, "node-3", "2e")}, nil},
	} {
		if got := r.nextChange(tt.reachable); !proto.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	for voters, want := range []bool{false, false, true, true} {
		r.conf.Store(&pb.ConfState{Voters: []uint64{1, 2, 3}[:voters]})
		if r.votersComplete() != want {
			t.Errorf("%d voters of 3: %t", voters, !want)
		}
	}
}

// relist restarts a node with another list of members.
func (f *testCluster) relist(i int, members []Member) {
	f.t.Helper()
	f.stop(i)
	f.configs[i].Members = members
	n := f.start(i)
	eventually(f.t, "the restarted node is current", func() bool { return n.cluster.replica.caughtUp() })
}

func (f *testCluster) voterNames() (names []string) {
	r := f.nodes[f.leader()].cluster.replica
	for _, id := range r.voters() {
		names = append(names, r.state.Load().Nodes[id].Name)
	}
	slices.Sort(names)
	return names
}

func (f *testCluster) currentMembers() int {
	count := 0
	for _, n := range f.nodes[f.leader()].cluster.Status().Nodes {
		if n.Current {
			count++
		}
	}
	return count
}
