package conn

import "time"

// Lane is the priority class of a request: whose turn comes first when not all can be served.
type Lane uint8

// The lanes, the best first.
const (
	Health          Lane = iota // never waits
	Keyed                       // its caller is known
	Anonymous                   // everybody else
	KeyedCostly                 // what takes the most work
	AnonymousCostly             // the same
	Lanes                       // how many there are
)

// patience is how old a request of a lane may get before nobody works on it any more.
func (l Lane) patience() time.Duration {
	switch l {
	case Keyed:
		return 150 * time.Millisecond
	case Anonymous:
		return 100 * time.Millisecond
	default:
		return 50 * time.Millisecond
	}
}
