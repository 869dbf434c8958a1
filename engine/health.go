package engine

import "time"

// NodeID numbers the nodes of a cluster from 1 on and never changes. 0 is a node without a cluster.
type NodeID uint16

// Condition is the state of one part of a node, for load balancers and operators. The owner of the part reports it:
// actors for log, disk and clock, collectors for sources, httpapi for its own load.
type Condition struct {
	// Name is the part, one lower-case word: "log", "disk", "clock", "mail", "sources".
	Name string `json:"name"`
	// State is ConditionOK, or one word for the problem: "recovering", "read_only", "slow".
	State string `json:"state"`
	// Down says that data requests can't be answered because of the problem.
	Down bool `json:"down"`
	// Since is when the state began, zero when that isn't known.
	Since time.Time `json:"since,omitzero"`
	// Detail says in one sentence what suffers and what to do. It is public: no paths, addresses or secrets.
	Detail string `json:"detail,omitempty"`
}

// ConditionOK is the state of a part without a problem.
const ConditionOK = "ok"

// Health reports the conditions of a node. It answers from memory and never waits for the disk, the network or an
// actor. The list has every condition, also those without a problem, always in the same order.
type Health interface {
	Conditions() []Condition
}

// HealthyCondition returns the condition of a part without a problem.
func HealthyCondition(name string) Condition { return Condition{Name: name, State: ConditionOK} }

// Readiness sums up the conditions of a node.
type Readiness string

// The closed list of readinesses.
const (
	Ready       Readiness = "ready"       // no problem
	Degraded    Readiness = "degraded"    // data requests are answered, something else has a problem
	Unavailable Readiness = "unavailable" // data requests can't be answered: send them to another node
)

// ReadinessOf sums up conditions.
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
