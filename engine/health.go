package engine

import "time"

// NodeID is the number of a node in a cluster, from 1. A node keeps its number forever. 0 means a node without a
// cluster.
type NodeID uint16

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
	// Detail says in one sentence what the effect is and what to do. It is public and must not have paths, addresses or
	// secrets.
	Detail string `json:"detail,omitempty"`
}

// ConditionOK is the state of a part without a problem.
const ConditionOK = "ok"

// Health reports the conditions of a node. Conditions reads memory only and never waits for the disk, the network or an
// actor. It returns every condition, including those without a problem, always in the same order.
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
