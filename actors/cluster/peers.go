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

// drop removes a node from the table.
func (t *peerTable) drop(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byName, name)
	t.cluster.transport.unlink(name)
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
			t.drop(h.Name)
		case changed && lost:
			t.cluster.logger.Warn("node not reachable", "node", h.Name, "address", h.Address)
		case changed:
			t.cluster.logger.Info("node reachable again", "node", h.Name, "address", h.Address)
		}
	}
}

func (c *Cluster) heartbeat() heartbeat {
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
	return h
}

func (c *Cluster) encodeHeartbeat() []byte {
	body, err := json.Marshal(c.heartbeat())
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
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, h := range t.byName {
		if h.Raft == id {
			return name
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
