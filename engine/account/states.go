package account

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// State is an account as a snapshot keeps it. What is leased counts as spent for whoever reads it.
type State struct {
	Record Record
	Days   []DayState  // by day
	Floor  engine.Date // days up to here are closed
	Leases []LeaseState
}

// DayState is the day's count of an account.
type DayState struct {
	Day    engine.Date
	Leased int
}

// LeaseState is what was leased since a moment in steady time, and what was unspent then. In a cluster it is instead the newest word of a
// node: that it had admitted Recent in the minute before, and could spend Count from then on. Its Steady is then of the process that wrote
// the state, or in a replay of the node that spoke: whoever reads it knows only that it is past, and counts it as having come now (Resume).
type LeaseState struct {
	Steady  time.Duration
	Unspent int
	Count   int
	Node    engine.NodeID
	Recent  int
}

// State is the account for a snapshot: what its events have made of it, and nothing of this process.
func (a *Account) State() State {
	state := State{Record: a.durable(), Floor: a.days.floor}
	for _, c := range a.days.counts {
		state.Days = append(state.Days, DayState{c.day, c.leased})
	}
	for _, mark := range a.leases {
		state.Leases = append(state.Leases, LeaseState{Steady: mark.at, Unspent: mark.unspent, Count: mark.count})
	}
	for _, s := range a.shares {
		state.Leases = append(state.Leases, LeaseState{Steady: s.at, Count: s.tokens, Node: s.node, Recent: s.recent})
	}
	return state
}

// Restore is the account that a snapshot describes; Resume comes after the events behind it.
func Restore(state State) *Account {
	a := &Account{record: state.Record, days: days{floor: state.Floor}}
	a.record.Keys = nil
	for _, key := range state.Record.Keys {
		a.keys = append(a.keys, accountKey{record: key})
	}
	for _, day := range state.Days {
		a.days.counts = append(a.days.counts, dayCount{day: day.Day, leased: day.Leased})
	}
	for _, lease := range state.Leases {
		if lease.Node == 0 {
			a.leases = append(a.leases, leaseMark{lease.Steady, lease.Unspent, lease.Count})
		} else {
			a.shares = append(a.shares, share{lease.Node, lease.Steady, lease.Recent, lease.Count})
		}
	}
	return a
}
