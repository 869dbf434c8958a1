package engine

import (
	"sync"
	"time"
)

// NodeID is the number of a node in a cluster, from 1. A node keeps its number forever. 0 means a node without a
// cluster.
type NodeID uint16

// Cluster is a cluster as seen by one of its nodes.
type Cluster struct {
	Cluster  string        `json:"cluster"`
	Majority bool          `json:"majority"` // the cluster has a leader and a majority of voters, so changes can be made durable
	Since    time.Time     `json:"since"`    // when Majority last changed
	Leader   string        `json:"leader,omitempty"`
	Nodes    []ClusterNode `json:"nodes"` // all members, and other nodes that have sent a heartbeat; sorted by name
}

// ClusterNode describes a node of a cluster by its newest heartbeat. If no heartbeat of a member has arrived, only
// Name, Address, Self and Member are set.
type ClusterNode struct {
	Name         string    `json:"name"`
	Address      string    `json:"address"`
	Version      string    `json:"version,omitempty"`
	Self         bool      `json:"self"`
	Member       bool      `json:"member"`                 // the node is in the list of members of the responding node
	Reachable    bool      `json:"reachable"`              // the newest heartbeat is recent
	SeenAt       time.Time `json:"seenAt,omitzero"`        // when the newest heartbeat arrived
	Leader       bool      `json:"leader"`                 // changes go through this node
	OtherMembers bool      `json:"otherMembers,omitempty"` // the node's list of members differs from that of the responding node
	Current      bool      `json:"current"`                // the node is a member, and its copy of the log is up to date
	Record       uint64    `json:"record"`                 // sequence number of the newest record in the node's copy of the log
	Lag          uint64    `json:"lag"`                    // number of newer records that the node lacks
	Snapshot     uint64    `json:"snapshot"`               // sequence number of the node's newest snapshot
}

// Condition is the state of one part of a node, for load balancers and operators.
type Condition struct {
	// Name names the part by one lower-case word: "log", "disk", "mail", "sources".
	Name string `json:"name"`
	// State is ConditionOK, or one word for the problem: "recovering", "read_only", "slow".
	State string `json:"state"`
	// Down reports whether the problem prevents responses to data requests.
	Down bool `json:"down"`
	// Since is the time at which the state began, or zero if the time is unknown.
	Since time.Time `json:"since,omitzero"`
	// Detail states the effect and the remedy in one sentence. It is public, so it must not contain paths, addresses or
	// secrets.
	Detail string `json:"detail,omitempty"`
}

// ConditionOK is the state of a part without a problem.
const ConditionOK = "ok"

// Health reports all conditions of a node, always in the same order. Conditions reads memory only and never waits for
// the disk, the network or an actor.
type Health interface {
	Conditions() []Condition
}

// HealthyCondition returns the condition of a part without a problem.
func HealthyCondition(name string) Condition { return Condition{Name: name, State: ConditionOK} }

// Readiness summarizes the conditions of a node.
type Readiness string

// The values of Readiness.
const (
	Ready       Readiness = "ready"       // no problem
	Degraded    Readiness = "degraded"    // a problem that does not prevent responses to data requests
	Unavailable Readiness = "unavailable" // no responses to data requests; clients should use another node
)

// ReadinessOf summarizes conditions.
func ReadinessOf(conditions []Condition) Readiness {
	readiness := Ready
	for i := range conditions {
		switch c := &conditions[i]; {
		case c.State == ConditionOK:
		case c.Down:
			return Unavailable
		default:
			readiness = Degraded
		}
	}
	return readiness
}

// FaultHoldOff is the time without a report after which an intermittent fault has ended. It keeps the node's condition
// from flapping. It must be shorter than five seconds, the limit for reporting a recovery.
const FaultHoldOff = 3 * time.Second

// Fault tracks one fault of a node. Use Report for an intermittent fault, Begin and Recover for a lasting one. The zero
// Fault means no fault. It is safe for concurrent use. With monotonic clock readings, changes of the wall clock have no
// effect.
type Fault struct {
	mu      sync.Mutex
	start   time.Time
	last    time.Time // time of the newest report, or of Recover; zero after Clear
	lasting bool
}

// Report records that the fault occurs now.
func (f *Fault) Report(now time.Time) { f.ReportSince(now, now) }

// ReportSince records that the fault occurs now and began at start.
func (f *Fault) ReportSince(start, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.present(now) {
		f.start = start
	}
	f.last = now
}

// Begin records a fault that lasts until Recover or Clear is called.
func (f *Fault) Begin(now time.Time) {
	f.Report(now)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lasting = true
}

// Clear ends the fault at once, without FaultHoldOff.
func (f *Fault) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lasting, f.last = false, time.Time{}
}

// Recover ends a lasting fault, but with a delay of FaultHoldOff.
func (f *Fault) Recover(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lasting {
		f.lasting, f.last = false, now
	}
}

// Since returns the beginning of the fault, or false if there is none.
func (f *Fault) Since(now time.Time) (time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.present(now) {
		return time.Time{}, false
	}
	return f.start.Round(0).UTC(), true
}

// present reports whether there is a fault. It takes the absolute difference of times, because the clock may be set
// back.
func (f *Fault) present(now time.Time) bool {
	return f.lasting || !f.last.IsZero() && now.Sub(f.last).Abs() < FaultHoldOff
}
