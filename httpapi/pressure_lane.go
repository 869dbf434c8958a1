package httpapi

import (
	"bytes"
	"time"
)

// lane is whose turn comes first when not all can be served.
type lane uint8

const (
	laneHealth      lane = iota // never waits
	laneKeyed                   // a key that was good on this connection, and within its quota
	laneAnonymous               // everybody else
	laneKeyedCostly             // history and conversions take the most work
	laneCostly
	lanes
)

// patience is how old a request of a lane may get before nobody works on it any more.
func (l lane) patience() time.Duration {
	switch l {
	case laneKeyed:
		return 150 * time.Millisecond
	case laneAnonymous:
		return 100 * time.Millisecond
	default:
		return 50 * time.Millisecond
	}
}

// laneOf is the lane of a request by its target, and by whether its caller has a key.
func laneOf(target []byte, keyed bool) lane {
	if isHealthTarget(target) {
		return laneHealth
	}
	costly := bytes.HasPrefix(target, []byte("/v1/rates/history")) || bytes.HasPrefix(target, []byte("/v1/convert"))
	switch {
	case costly && keyed:
		return laneKeyedCostly
	case costly:
		return laneCostly
	case keyed:
		return laneKeyed
	}
	return laneAnonymous
}

// isHealthTarget tells a question about the node itself: whoever restarts nodes that do not answer asks it, so it is answered whatever
// else is refused.
func isHealthTarget(target []byte) bool {
	path, _, _ := bytes.Cut(target, []byte("?"))
	switch string(path) {
	case livePath, liveOtherPath, readyPath:
		return true
	}
	return false
}
