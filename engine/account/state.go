package account

import (
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// State is an account as a snapshot keeps it. What is leased counts as spent for whoever reads it.
type State struct {
	Record      Record
	Days        []DayState  // by day
	ClosedUntil engine.Date // days up to here are closed
	Leases      []LeaseState
}

// DayState is the day's count of an account.
type DayState struct {
	Day    engine.Date
	Leased int
}

// LeaseState bounds, for whoever reads the log, how many requests were admitted after a moment. Of a node that is alone: Unspent is what was
// leased before it and not spent, Count what was leased from then on. Of a node of a cluster it is the newest word of that node: it had
// admitted RecentAdmitted in the minute before, and could spend Count from then on. Steady is then when the word arrived, in the steady time of the
// process that heard it, or in a replay that of the node that spoke: after a restart it counts as having come now (Resume).
type LeaseState struct {
	Steady         time.Duration
	Unspent        int
	Count          int
	Node           engine.NodeID
	RecentAdmitted int
}

// State is the account for a snapshot: what its events have made of it, and nothing of this process.
func (a *Account) State() State {
	state := State{Record: a.durableRecord(), ClosedUntil: a.days.closedUntil, Leases: slices.Concat(a.leases, a.nodeLeases)}
	for _, c := range a.days.counts {
		state.Days = append(state.Days, DayState{c.day, c.leased})
	}
	return state
}

// Restore is the account that a snapshot describes; Resume comes after the events behind it.
func Restore(state State) *Account {
	a := &Account{record: state.Record, days: dayCounts{closedUntil: state.ClosedUntil}}
	a.record.Keys = nil
	for _, key := range state.Record.Keys {
		a.keys = append(a.keys, accountKey{record: key})
	}
	for _, day := range state.Days {
		a.days.counts = append(a.days.counts, dayCount{day: day.Day, leased: day.Leased})
	}
	for _, lease := range state.Leases {
		if lease.Node == 0 {
			a.leases = append(a.leases, lease)
		} else {
			a.nodeLeases = append(a.nodeLeases, lease)
		}
	}
	return a
}
