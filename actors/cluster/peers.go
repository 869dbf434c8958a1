//go:build !nocluster

package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tasard/tasard/engine"
)

const (
	subjectHeartbeat = "tasard.report"
	peersMax         = 64 // nodes that are remembered
)

// heartbeat is the report that each node sends to all others every watchInterval.
type heartbeat struct {
	Name          string        `json:"name"`
	Node          engine.NodeID `json:"node"`
	Address       string        `json:"address"`
	Version       string        `json:"version"`
	Stream        string        `json:"stream,omitempty"` // that its log belongs to
	Bootstrapping bool          `json:"founding,omitempty"`
	Last          uint64        `json:"last"` // newest record of its log
	Snapshot      uint64        `json:"kept"` // sequence of its newest snapshot
	HasBackup     bool          `json:"open"` // others can copy its log
	Leader        bool          `json:"leader,omitempty"`
	MetaLeader    bool          `json:"meta,omitempty"`
	Majority      bool          `json:"majority,omitempty"`
	Current       bool          `json:"current,omitempty"` // its part of the stream is complete
}

// receivedHeartbeat is a heartbeat with its time of arrival.
type receivedHeartbeat struct {
	heartbeat
	receivedAt time.Time
}

// peerTable holds the newest heartbeat of every node, including this one.
type peerTable struct {
	cluster *Cluster

	mu     sync.Mutex
	byName map[string]receivedHeartbeat
}

func newPeerTable(c *Cluster) *peerTable {
	return &peerTable{cluster: c, byName: map[string]receivedHeartbeat{}}
}

func (t *peerTable) subscribe() error {
	_, err := t.cluster.server.conn.Subscribe(subjectHeartbeat, t.receive) // ends with the connection
	return err
}

func (t *peerTable) receive(m *nats.Msg) {
	var next heartbeat
	if err := json.Unmarshal(m.Data, &next); err != nil || checkName("", next.Name) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.byName[next.Name]; !known && len(t.byName) >= peersMax {
		return
	}
	t.byName[next.Name] = receivedHeartbeat{next, t.cluster.config.Clock()}
}

// sendHeartbeat reports this node's state to the others.
func (c *Cluster) sendHeartbeat() {
	self := c.self.Load()
	own := heartbeat{
		Name: c.config.Name, Node: c.config.Node, Address: c.config.advertise, Version: c.config.Version,
		Stream: self.Stream, Bootstrapping: self.Bootstrapping, Last: c.last.Load(),
		Majority: c.Health().Majority,
	}
	if s := c.server.nats; c.config.selfIsMember() {
		own.Leader, own.MetaLeader, own.Current = c.isLeader(), s.JetStreamIsLeader(), s.JetStreamIsStreamCurrent(accountName, streamName)
	}
	if journal := c.Journal(); journal != nil {
		own.Last, own.Snapshot, own.HasBackup = journal.Last(), journal.snapshotSequence.Load(), true
	}
	body, err := json.Marshal(own)
	if err == nil {
		err = c.server.conn.Publish(subjectHeartbeat, body)
	}
	if err != nil {
		c.logger.Debug("heartbeat not sent", "cause", err.Error())
	}
}

// setJournal sets the journal and tells the others.
func (c *Cluster) setJournal(j *Journal) {
	c.journal.Store(j)
	c.sendHeartbeat()
}

// all returns every node that was ever seen, by name.
func (t *peerTable) all() []receivedHeartbeat {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []receivedHeartbeat
	for _, h := range t.byName {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b receivedHeartbeat) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// reachable returns the nodes that sent a heartbeat recently.
func (t *peerTable) reachable(now time.Time) []receivedHeartbeat {
	return slices.DeleteFunc(t.all(), func(h receivedHeartbeat) bool { return now.Sub(h.receivedAt) >= reachableWithin })
}

// leader returns the node that says it leads the stream.
func (t *peerTable) leader(now time.Time) (heartbeat, bool) {
	// After an election two nodes may say so briefly; the one with a majority is right.
	var leader heartbeat
	for _, h := range t.reachable(now) {
		if h.Leader && (!leader.Leader || h.Majority && !leader.Majority) {
			leader = h.heartbeat
		}
	}
	return leader, leader.Leader
}

// numberConflict returns an error when another node has this node's number and this one has to stop: quota leases are
// granted to a number, and only one node may spend them. A guest stops in favour of a member, otherwise the node
// whose name sorts later.
func (t *peerTable) numberConflict(c *Config) error {
	for _, h := range t.reachable(c.Clock()) {
		if h.Node != c.Node || h.Name == c.Name {
			continue
		}
		other := c.isMember(h.Name)
		if own := c.selfIsMember(); own == other && c.Name > h.Name || !own && other {
			return fmt.Errorf("number %d belongs to node %s at %s: give this node another number", c.Node, h.Name, h.Address)
		}
	}
	return nil
}

// bootstrapMember returns the member that creates the stream. All members must be reachable, so that no log is left
// behind.
func (t *peerTable) bootstrapMember(members []Member) (string, error) {
	present := map[string]heartbeat{}
	for _, h := range t.reachable(t.cluster.config.Clock()) {
		present[h.Name] = h.heartbeat
	}
	var with []string
	for _, m := range members {
		h, ok := present[m.Name]
		switch {
		case !ok:
			return "", fmt.Errorf("the stream is created when all members are reachable, and %s is not", m.Name)
		case h.Stream != "" && !h.Bootstrapping:
			return "", fmt.Errorf("%s belongs to stream %s, which the cluster does not have", m.Name, h.Stream)
		case h.Last > 0:
			with = append(with, m.Name)
		}
	}
	switch len(with) {
	case 0:
		return members[0].Name, nil
	case 1:
		return with[0], nil
	}
	return "", fmt.Errorf("%s each have a log of their own: choose one, and empty the directories of the others", strings.Join(with, " and "))
}

// firstNeeded returns the first record that a node may need from the stream: the one after the oldest of all newest
// snapshots. long means that the stream is too long to wait for unreachable members; unreachable guests are never
// waited for.
func (t *peerTable) firstNeeded(c *Config, long bool) uint64 {
	now := c.Clock()
	all := t.all()
	for _, m := range c.Members {
		if !long && !slices.ContainsFunc(all, func(h receivedHeartbeat) bool { return h.Name == m.Name }) {
			return 0
		}
	}
	least, counted := ^uint64(0), 0
	for _, h := range all {
		switch {
		case now.Sub(h.receivedAt) < reachableWithin:
			least, counted = min(least, h.Snapshot), counted+1
		case !long && c.isMember(h.Name):
			return 0
		}
	}
	if counted == 0 {
		return 0
	}
	return least + 1
}

var errNoBackup = errors.New("no other node offers its log")

// backupSources returns the nodes with a complete log of this stream, the longest log first.
func (t *peerTable) backupSources(c *Config, stream string) ([]heartbeat, error) {
	var sources []heartbeat
	for _, h := range t.reachable(c.Clock()) {
		if h.HasBackup && h.Stream == stream && h.Name != c.Name {
			sources = append(sources, h.heartbeat)
		}
	}
	if len(sources) == 0 {
		return nil, errNoBackup
	}
	slices.SortStableFunc(sources, func(a, b heartbeat) int { return cmp.Compare(b.Last, a.Last) })
	return sources, nil
}

// Status returns the state of all nodes, from memory.
func (c *Cluster) Status() Status {
	now := c.config.Clock()
	nodes := map[string]NodeStatus{}
	for _, m := range c.config.Members {
		nodes[m.Name] = NodeStatus{Name: m.Name, Address: m.Address, Member: true, Self: m.Name == c.config.Name}
	}
	newest := uint64(0)
	for _, h := range c.peers.all() {
		there := now.Sub(h.receivedAt) < reachableWithin
		nodes[h.Name] = NodeStatus{
			Name: h.Name, Node: h.Node, Address: h.Address, Version: h.Version, Self: h.Name == c.config.Name,
			Member: nodes[h.Name].Member, Reachable: there, LastSeen: h.receivedAt.Round(0).UTC(),
			Leader: h.Leader && there, MetaLeader: h.MetaLeader && there, Current: h.Current && there, Last: h.Last, Snapshot: h.Snapshot,
		}
		newest = max(newest, h.Last)
	}
	s := Status{Cluster: c.config.Cluster, Stream: c.self.Load().Stream, Health: c.Health()}
	for _, n := range nodes {
		n.Lag = newest - n.Last
		s.Nodes = append(s.Nodes, n)
	}
	slices.SortFunc(s.Nodes, func(a, b NodeStatus) int { return strings.Compare(a.Name, b.Name) })
	return s
}
