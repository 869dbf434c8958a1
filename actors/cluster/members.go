package cluster

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

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

// stopCause returns an error if the cluster has removed this node, or if its directory is an old copy.
func (c *Cluster) stopCause() error {
	for _, h := range c.peers.reachable() {
		if h.Leader && slices.Contains(h.Removed, c.self.Load().Raft) {
			return errors.New("the cluster has removed this node: start it with an empty directory")
		}
	}
	if c.replica.older.Load() {
		return errOlder
	}
	return nil
}
