package account

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// State is an account as snapshots keep it: the result of its events. Leases count as spent.
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

// LeaseState bounds how many requests may have been admitted since a lease or return, so that a crash never lets more
// than the limit through in a minute.
//
// Without a cluster there is one for each lease: Count was leased at Steady, and of what was leased before, Unspent was
// left.
//
// In a cluster there is one for each node, its last lease or return: the node had admitted RecentAdmitted in the minute
// before, and could spend Count from then on. Steady is when the event arrived, in the steady time of this process (in
// a replay: of the node that decided it; Resume sets it to the present).
type LeaseState struct {
	Steady         time.Duration
	Unspent        int
	Count          int
	Node           engine.NodeID
	RecentAdmitted int
}

// State returns the account for a snapshot.
func (a *Account) State() State {
	var s State
	a.SaveState(&s)
	return s
}

// SaveState is State into memory that is used again.
func (a *Account) SaveState(s *State) {
	keys := s.Record.Keys[:0]
	s.Record = a.record
	for i := range a.keys {
		keys = append(keys, a.keys[i].record)
	}
	s.Record.Keys, s.ClosedUntil = keys, a.days.closedUntil
	s.Leases = append(append(s.Leases[:0], a.leases...), a.nodeLeases...)
	s.Days = s.Days[:0]
	for _, c := range a.days.counts {
		s.Days = append(s.Days, DayState{c.day, c.leased})
	}
}

// Restore returns the account of a snapshot. Resume or Reload must follow, after the events behind the snapshot.
func Restore(state State) *Account {
	a := new(Account)
	a.Load(&state)
	return a
}

// Load is Restore into an Account of the caller.
func (a *Account) Load(state *State) {
	*a = Account{record: state.Record, days: dayCounts{counts: a.firstDays[:0], closedUntil: state.ClosedUntil}, keys: a.firstKeys[:0]}
	a.record.Keys = nil
	for i := range state.Record.Keys {
		a.keys = append(a.keys, accountKey{record: state.Record.Keys[i]})
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
}
