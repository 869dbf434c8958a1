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
	subjectReport = "tasard.report"
	reportsMax    = 64 // nodes that are remembered
)

// report is what each node tells the others a few times in a second.
type report struct {
	Name     string        `json:"name"`
	Node     engine.NodeID `json:"node"`
	Address  string        `json:"address"`
	Version  string        `json:"version"`
	Stream   string        `json:"stream,omitempty"` // that its copy belongs to
	Founding bool          `json:"founding,omitempty"`
	Last     uint64        `json:"last"` // newest record of its copy
	Kept     uint64        `json:"kept"` // of its newest snapshot
	Open     bool          `json:"open"` // it has a copy that others can get
	Leader   bool          `json:"leader,omitempty"`
	Meta     bool          `json:"meta,omitempty"`
	Majority bool          `json:"majority,omitempty"`
	Current  bool          `json:"current,omitempty"` // its part of the stream is whole
}

// heardReport is one with the moment at which it came.
type heardReport struct {
	report
	at time.Time
}

// reports is what this node has heard of all nodes, itself too.
type reports struct {
	cluster *Cluster

	mu    sync.Mutex
	heard map[string]heardReport
}

func newReports(c *Cluster) *reports { return &reports{cluster: c, heard: map[string]heardReport{}} }

func (r *reports) listen() error {
	_, err := r.cluster.node.conn.Subscribe(subjectReport, r.take) // ends with the connection
	return err
}

func (r *reports) take(m *nats.Msg) {
	var next report
	if err := json.Unmarshal(m.Data, &next); err != nil || checkName("", next.Name) != nil {
		return // not of a node of ours
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.heard[next.Name]; !known && len(r.heard) >= reportsMax {
		return
	}
	r.heard[next.Name] = heardReport{next, r.cluster.config.Clock()}
}

// announce tells the others how this node is.
func (c *Cluster) announce() {
	c.mu.Lock()
	self, journal := c.self, c.journal
	c.mu.Unlock()
	own := report{
		Name: c.config.Name, Node: c.config.Node, Address: c.config.Advertise, Version: c.config.Version,
		Stream: self.Stream, Founding: self.Founding, Last: c.last.Load(),
		Majority: c.Standing().Majority,
	}
	if s := c.node.server; c.config.member() {
		own.Leader, own.Meta, own.Current = c.leads(), s.JetStreamIsLeader(), s.JetStreamIsStreamCurrent(accountName, streamName)
	}
	if journal != nil {
		own.Last, own.Kept, own.Open = journal.Last(), journal.kept.Load(), true
	}
	body, err := json.Marshal(own)
	if err == nil {
		err = c.node.conn.Publish(subjectReport, body)
	}
	if err != nil {
		c.logger.Debug("report not sent", "cause", err.Error())
	}
}

// publish makes the journal known.
func (c *Cluster) publish(j *Journal) {
	c.mu.Lock()
	c.journal = j
	c.mu.Unlock()
	c.announce()
}

// all is every node that was ever heard, by name.
func (r *reports) all() []heardReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []heardReport
	for _, h := range r.heard {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b heardReport) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// present is every node that was heard lately.
func (r *reports) present(now time.Time) []heardReport {
	return slices.DeleteFunc(r.all(), func(h heardReport) bool { return now.Sub(h.at) >= seenWithin })
}

// leader is the node that leads the stream, as it says itself.
func (r *reports) leader(now time.Time) (report, bool) {
	// After a change two may say so for a moment; the one that has a majority is right.
	var leader report
	for _, h := range r.present(now) {
		if h.Leader && (!leader.Leader || h.Majority && !leader.Majority) {
			leader = h.report
		}
	}
	return leader, leader.Leader
}

// clash is an error when another node has this one's number and this one has to give way: what is leased to a number must be spent by one
// node. A guest gives way to a member, else the name that comes later.
func (r *reports) clash(c *Config) error {
	for _, h := range r.present(c.Clock()) {
		if h.Node != c.Node || h.Name == c.Name {
			continue
		}
		other := c.isMember(h.Name)
		if own := c.member(); own == other && c.Name > h.Name || !own && other {
			return fmt.Errorf("number %d is that of node %s at %s: give this node another one", c.Node, h.Name, h.Address)
		}
	}
	return nil
}

// founder is the member that makes the stream. All must be there, so that no log is left behind.
func (r *reports) founder(members []Member) (string, error) {
	present := map[string]report{}
	for _, h := range r.present(r.cluster.config.Clock()) {
		present[h.Name] = h.report
	}
	var with []string
	for _, m := range members {
		h, ok := present[m.Name]
		switch {
		case !ok:
			return "", fmt.Errorf("the stream is made when all members are there, and %s is not", m.Name)
		case h.Stream != "" && !h.Founding:
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

// needed is the first record that somebody may need from the stream: the one behind the oldest of all newest snapshots. long says that
// nodes that are away are no longer waited for.
func (r *reports) needed(c *Config, long bool) uint64 {
	now := c.Clock()
	all := r.all()
	for _, m := range c.Members {
		if !long && !slices.ContainsFunc(all, func(h heardReport) bool { return h.Name == m.Name }) {
			return 0
		}
	}
	least, counted := ^uint64(0), 0
	for _, h := range all {
		switch {
		case now.Sub(h.at) < seenWithin:
			least, counted = min(least, h.Kept), counted+1
		case !long && c.isMember(h.Name): // a guest that is away is not waited for
			return 0
		}
	}
	if counted == 0 {
		return 0
	}
	return least + 1
}

// errNobody says that no other node has a copy to give.
var errNobody = errors.New("no other node is there that has a copy")

// givers are the nodes that have a copy of this stream, the longest first.
func (r *reports) givers(c *Config, stream string) ([]report, error) {
	var givers []report
	for _, h := range r.present(c.Clock()) {
		if h.Open && h.Stream == stream && h.Name != c.Name {
			givers = append(givers, h.report)
		}
	}
	if len(givers) == 0 {
		return nil, errNobody
	}
	slices.SortStableFunc(givers, func(a, b report) int { return cmp.Compare(b.Last, a.Last) })
	return givers, nil
}

// Status tells from memory how all nodes are.
func (c *Cluster) Status() Status {
	now := c.config.Clock()
	nodes := map[string]NodeStatus{}
	for _, m := range c.config.Members {
		nodes[m.Name] = NodeStatus{Name: m.Name, Address: m.Address, Member: true, Self: m.Name == c.config.Name}
	}
	newest := uint64(0)
	for _, h := range c.reports.all() {
		there := now.Sub(h.at) < seenWithin
		nodes[h.Name] = NodeStatus{
			Name: h.Name, Node: h.Node, Address: h.Address, Version: h.Version, Self: h.Name == c.config.Name,
			Member: nodes[h.Name].Member, Reachable: there, Seen: h.at.Round(0).UTC(),
			Leader: h.Leader && there, Meta: h.Meta && there, Current: h.Current && there, Last: h.Last, Snapshot: h.Kept,
		}
		newest = max(newest, h.Last)
	}
	s := Status{Cluster: c.config.Cluster, Stream: c.stream(), Standing: c.Standing()}
	for _, n := range nodes {
		n.Lag = newest - n.Last
		s.Nodes = append(s.Nodes, n)
	}
	slices.SortFunc(s.Nodes, func(a, b NodeStatus) int { return strings.Compare(a.Name, b.Name) })
	return s
}
