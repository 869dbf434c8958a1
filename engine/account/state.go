package account

import (
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// State is an account as snapshots keep it: the result of its events. What is leased counts as spent.
type State struct {
	Record      Record
	Days        []DayState  // by day
	ClosedUntil engine.Date // this day and earlier ones are never counted again
	Leases      []LeaseState
}

// DayState is what was leased of one day.
type DayState struct {
	Day    engine.Date
	Leased int
}

// LeaseState bounds how many requests may have been admitted since a lease or return, so that a crash never lets more than
// the limit through in a minute.
//
// Without a cluster there is one for each lease: Count was leased at Steady, and of what was leased before, Unspent was left.
//
// In a cluster there is one for each node, its last lease or return: the node had admitted RecentAdmitted in the minute
// before, and could spend Count from then on. Steady is when the event arrived, in the steady time of this process (in a
// replay: of the node that decided it; Resume sets it to the present).
type LeaseState struct {
	Steady         time.Duration
	Unspent        int
	Count          int
	Node           engine.NodeID
	RecentAdmitted int
}

// State returns the account for a snapshot.
func (a *Account) State() State {
	state := State{Record: a.durableRecord(), ClosedUntil: a.days.closedUntil, Leases: slices.Concat(a.leases, a.nodeLeases)}
	for _, c := range a.days.counts {
		state.Days = append(state.Days, DayState{c.day, c.leased})
	}
	return state
}

// Restore returns the account of a snapshot. Resume or Reload must follow, after the events behind the snapshot.
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
