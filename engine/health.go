package engine

import "time"

// Condition is one thing about a node that a load balancer or an operator may have to act on. Whoever owns the state
// tells its conditions: actors of log, disk and clock, collectors of sources, httpapi of its own load.
type Condition struct {
	// Name is what is looked at, one lower-case word: "log", "disk", "clock", "mail", "sources".
	Name string `json:"name"`
	// Saved is ConditionOK, or one word for what is wrong: "recovering", "read_only", "slow".
	State string `json:"state"`
	// Down says that the node can't answer data requests because of it; otherwise it answers, and something else suffers.
	Down bool `json:"down"`
	// Since is when the state began, zero when that isn't known.
	Since time.Time `json:"since,omitzero"`
	// Detail is one sentence for an operator: what suffers, and what to do. It is public: no paths, addresses or secrets.
	Detail string `json:"detail,omitempty"`
}

// ConditionOK is the state of what is as it should be.
const ConditionOK = "ok"

// Health tells how a node is. It answers from memory, never waits for a disk, the network or an actor that may be busy,
// and lists every condition that it knows, those that are well too, always in the same order.
type Health interface {
	Conditions() []Condition
}

// HealthyCondition is a condition with nothing wrong.
func HealthyCondition(name string) Condition { return Condition{Name: name, State: ConditionOK} }

// Readiness is how a node is as a whole.
type Readiness string

// The closed list of readinesses.
const (
	Ready       Readiness = "ready"       // nothing is wrong
	Degraded    Readiness = "degraded"    // data requests are answered, and something else suffers
	Unavailable Readiness = "unavailable" // data requests can't be answered: send them to another node
)

// ReadinessOf is what conditions amount to.
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
