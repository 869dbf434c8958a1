package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/tasard/tasard/engine"
)

// heartbeat is the state of one node, which sends it to all nodes every watchInterval. The stream is the log of the
// cluster, and the local log is the node's own copy of the stream. The fields of ClusterNode that depend on the
// receiver are empty, except SeenAt at the receiver. Its Record and Snapshot are of the local log.
type heartbeat struct {
	engine.ClusterNode
	Members   map[string]string `json:"members"`           // addresses of the members in the node's configuration, by name
	Stream    string            `json:"stream,omitempty"`  // ID of the stream to which the local log belongs
	HasBackup bool              `json:"open"`              // the node can send its state to other nodes
	Raft      uint64            `json:"raft"`              // ID of the node in raft
	Removed   []uint64          `json:"removed,omitempty"` // of the leader: IDs that the cluster has removed
	Durable   map[uint64]uint64 `json:"durable,omitempty"` // replica.durable
}

// peerTable holds the newest heartbeat of each node.
type peerTable struct {
	cluster *Cluster

	mu     sync.Mutex
	byName map[string]heartbeat
	lost   map[string]bool // unreachable nodes at the newest call of logChanges; used only there
}

// receive handles a heartbeat from a node.
func (t *peerTable) receive(from string, body []byte) {
	var h heartbeat
	if err := json.Unmarshal(body, &h); err != nil || h.Name != from {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	h.SeenAt = t.cluster.config.Clock()
	t.byName[h.Name] = h
	t.cluster.replica.noteDurable(h.Durable)
	t.cluster.transport.learn(h.Name, h.Address)
}

// logChanges logs once that a node is not reachable, and that it is reachable again. It drops an unreachable node that
// is neither in the list of members nor in raft: it has left.
func (t *peerTable) logChanges() {
	now := t.cluster.config.Clock()
	nodes := slices.Collect(maps.Values(t.cluster.replica.state.Load().Nodes))
	for _, h := range t.all() {
		lost := now.Sub(h.SeenAt) >= reachableWithin
		changed := t.lost[h.Name] != lost
		t.lost[h.Name] = lost
		switch {
		case lost && !t.cluster.config.isMember(h.Name) && !slices.Contains(nodes, nodeName{h.Name}):
			t.mu.Lock()
			delete(t.byName, h.Name)
			t.mu.Unlock()
			t.cluster.transport.unlink(h.Name)
		case changed && lost:
			t.cluster.logger.Warn("node not reachable", "node", h.Name, "address", h.Address)
		case changed:
			t.cluster.logger.Info("node reachable again", "node", h.Name, "address", h.Address)
		}
	}
}

func (c *Cluster) encodeHeartbeat() []byte {
	self := c.self.Load()
	h := heartbeat{Members: c.config.memberAddresses(), Raft: self.Raft, Stream: self.Stream}
	h.Name, h.Address, h.Version, h.Record = c.config.name(), c.config.advertise, c.config.Version, c.last.Load()
	r := c.replica
	h.Durable, h.Leader, h.Current = r.durableIndexes(), r.leads.Load(), r.caughtUp() && r.votes()
	if h.Leader {
		h.Removed = r.state.Load().Removed
	}
	if journal := c.Journal(); journal != nil {
		h.Record, h.Snapshot, h.HasBackup = journal.Last(), journal.Stats().SnapshotSequence, c.backup.Load() != nil
	}
	body, err := json.Marshal(h)
	if err != nil {
		panic(err) // numbers and strings always have an encoding
	}
	return body
}

func (c *Cluster) sendHeartbeat() {
	body := c.encodeHeartbeat()
	c.peers.receive(c.config.name(), body)
	c.transport.broadcast(kindHeartbeat, body)
}

// all returns the newest heartbeat of each node that was ever seen, sorted by name.
func (t *peerTable) all() []heartbeat {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []heartbeat
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		all = append(all, t.byName[name])
	}
	return all
}

// nameOf returns the name of the node with a raft ID, or "".
func (t *peerTable) nameOf(id uint64) string {
	for _, h := range t.all() {
		if h.Raft == id {
			return h.Name
		}
	}
	return ""
}

// reachable returns the newest heartbeat of each node that has sent one within the time reachableWithin.
func (t *peerTable) reachable() []heartbeat {
	now := t.cluster.config.Clock()
	return slices.DeleteFunc(t.all(), func(h heartbeat) bool { return now.Sub(h.SeenAt) >= reachableWithin })
}

// bootstrapMember returns the name of the member that creates the stream: the member with a log, or the first in the
// list if no member has a log. While a member is unreachable, it returns an error, because that member may have a log.
// It also returns an error if a member belongs to a stream, or if two members have a log.
func (t *peerTable) bootstrapMember(members []Member) (string, error) {
	reachable := t.reachable()
	var withLog []string
	for _, m := range members {
		i := slices.IndexFunc(reachable, func(h heartbeat) bool { return h.Name == m.Name() })
		switch {
		case i < 0:
			return "", fmt.Errorf("the stream is created when all members are reachable, and %s is not", m.Name())
		case reachable[i].Stream != "":
			return "", fmt.Errorf("%s belongs to stream %s, which the cluster does not have", m.Name(), reachable[i].Stream)
		case reachable[i].Record > 0:
			withLog = append(withLog, m.Name())
		}
	}
	switch len(withLog) {
	case 0:
		return members[0].Name(), nil
	case 1:
		return withLog[0], nil
	}
	return "", fmt.Errorf("%s each have a log of their own: choose one, and empty the directories of the others", strings.Join(withLog, " and "))
}

// backupSources returns the nodes that can send their state to this node. The node with the longest log is first.
func (t *peerTable) backupSources(stream string) ([]heartbeat, error) {
	sources := slices.DeleteFunc(t.reachable(), func(h heartbeat) bool {
		return !h.HasBackup || h.Stream != stream || h.Name == t.cluster.config.name()
	})
	if len(sources) == 0 {
		return nil, errors.New("no other node offers its state")
	}
	slices.SortStableFunc(sources, func(a, b heartbeat) int { return cmp.Compare(b.Record, a.Record) })
	return sources, nil
}

// Status returns the state of all nodes according to their newest heartbeats. It does not block.
func (c *Cluster) Status() engine.Cluster {
	now := c.config.Clock()
	nodes := map[string]engine.ClusterNode{}
	for _, m := range c.config.Members {
		nodes[m.Name()] = engine.ClusterNode{Name: m.Name(), Address: m.Address, Member: true, Self: m.Node == c.config.Node}
	}
	newest, own := uint64(0), c.config.memberAddresses()
	for _, h := range c.peers.all() {
		n, reachable := h.ClusterNode, now.Sub(h.SeenAt) < reachableWithin
		n.Self, n.Member, n.Reachable, n.SeenAt = h.Name == c.config.name(), nodes[h.Name].Member, reachable, h.SeenAt.Round(0).UTC()
		n.Leader, n.Current, n.OtherMembers = n.Leader && reachable, n.Current && reachable, reachable && !maps.Equal(h.Members, own)
		nodes[h.Name] = n
		newest = max(newest, h.Record)
	}
	health := c.Health()
	s := engine.Cluster{Cluster: c.config.Cluster, Majority: health.Majority, Since: health.Since.UTC(), Leader: health.Leader}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name]
		n.Lag = newest - n.Record
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

// promoteLag is the maximum number of entries that a learner may lack when it becomes a voter.
const promoteLag = 64

// changeMembers changes the voters of raft to the members in the nodes' configurations, one step at a time. Only the
// leader does this. A new node first gets all entries as a learner, because a new, empty voter would count for the
// majority at once.
func (r *replica) changeMembers() {
	if !r.leads.Load() || !r.caughtUp() {
		return
	}
	reachable := r.c.peers.reachable()
	r.do(func() {
		if change := r.nextChange(reachable); change != nil {
			_ = r.raw.ProposeConfChange(change) // the next call tries again
		}
	})
}

// nextChange returns the next step, or nil if there is none. Call it on the goroutine that owns raft.
func (r *replica) nextChange(reachable []heartbeat) *pb.ConfChange {
	state, agreed := r.state.Load(), r.listsAgree(reachable)
	for _, h := range reachable {
		if h.Raft == 0 || h.Stream != "" && h.Stream != state.Stream || slices.Contains(state.Removed, h.Raft) || !r.c.config.isMember(h.Name) {
			continue
		}
		_, known := state.Nodes[h.Raft]
		switch {
		case !known:
			for id, n := range state.Nodes {
				if n.Name == h.Name { // the machine was replaced
					return change(pb.ConfChangeRemoveNode, id, n.Name)
				}
			}
			return change(pb.ConfChangeAddLearnerNode, h.Raft, h.Name)
		case agreed && slices.Contains(r.conf.Load().GetLearners(), h.Raft) && r.nearlyCurrent(&h):
			return change(pb.ConfChangeAddNode, h.Raft, h.Name)
		}
	}
	if agreed && r.membersVote() {
		for id, n := range state.Nodes {
			gone := !slices.ContainsFunc(reachable, func(h heartbeat) bool { return h.Name == n.Name })
			if gone && !r.c.config.isMember(n.Name) {
				return change(pb.ConfChangeRemoveNode, id, n.Name)
			}
		}
	}
	return nil
}

func change(kind pb.ConfChangeType, id uint64, name string) *pb.ConfChange {
	context, err := json.Marshal(nodeName{name})
	if err != nil {
		panic(err) // a struct of strings always has an encoding
	}
	return &pb.ConfChange{Type: kind.Enum(), NodeId: proto.Uint64(id), Context: context}
}

// listsAgree reports whether all reachable nodes have the same list of members as this node.
func (r *replica) listsAgree(reachable []heartbeat) bool {
	own := slices.Sorted(maps.Keys(r.c.config.memberAddresses()))
	return !slices.ContainsFunc(reachable, func(h heartbeat) bool { return !slices.Equal(slices.Sorted(maps.Keys(h.Members)), own) })
}

// membersVote reports whether all members of the list are voters.
func (r *replica) membersVote() bool {
	nodes, voters := r.state.Load().Nodes, r.voters()
	return !slices.ContainsFunc(r.c.config.Members, func(m Member) bool {
		return !slices.ContainsFunc(voters, func(id uint64) bool { return nodes[id].Name == m.Name() })
	})
}

// nearlyCurrent reports whether a learner has nearly all entries, and the records before the oldest entry.
func (r *replica) nearlyCurrent(h *heartbeat) bool {
	status, sequence := r.raw.Status(), r.state.Load().Sequence
	p, ok := status.Progress[h.Raft]
	hasRecords := h.Record+promoteLag >= sequence && (h.Record > 0 || sequence == 0)
	return ok && hasRecords && p.Match > 0 && p.Match+promoteLag >= status.HardState.GetCommit()
}

// votersComplete reports whether a majority of the members votes. Only then is an acknowledged record on a majority of
// the members. A new cluster begins with one voter.
func (r *replica) votersComplete() bool {
	return 2*len(r.voters()) > len(r.c.config.Members)
}

func (r *replica) leaderName() string {
	if id := r.leader.Load(); id != 0 {
		return r.name(id)
	}
	return ""
}

func (r *replica) voters() []uint64 { return r.conf.Load().GetVoters() }

func (r *replica) votes() bool { return slices.Contains(r.voters(), r.id) }

// leaveFullDisk hands over the leadership before this node's disk is so full that it must refuse entries.
func (r *replica) leaveFullDisk() {
	if j := r.c.Journal(); j != nil && r.leads.Load() && j.CheckSpace(spaceMargin) != nil {
		r.transfer()
	}
}

// spaceMargin is the free disk space that a leader needs in addition to the reserve.
const spaceMargin = 4 << 20
