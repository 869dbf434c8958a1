package account

import (
	"time"

	"github.com/tasard/tasard/engine"
)

// State is the part of an account that is in the log, in the form of a snapshot. It does not tell how many leased
// requests were spent; after a restart all count as spent.
type State struct {
	Record      Record
	Days        []DayState  // sorted by day
	ClosedUntil engine.Date // this day and earlier days must not be counted again
	Leases      []LeaseState
}

// DayState is the number of leased requests of one day.
type DayState struct {
	Day    engine.Date
	Leased int
}

// LeaseState gives an upper bound of the requests that a node has admitted: RecentAdmitted requests in the minute
// before its newest lease (reserved part of a daily quota) or return, and at most Count requests from then on. With
// this bound no minute exceeds its limit, even after a crash.
//
// In a cluster Monotonic is the monotonic time of this process (ClockReading.Monotonic) at which the event arrived,
// because nodes have different clocks. In a replay it is the newest monotonic time in the log, until Resume sets it.
// Without a cluster it is the monotonic time of the decision.
type LeaseState struct {
	Monotonic      time.Duration
	Unspent        int // only in snapshots of a node without a cluster
	Count          int
	Node           engine.NodeID
	RecentAdmitted int
	asked          time.Duration // of the node's newest lease or return, on that node's clock; not in a snapshot
}

// singleStates returns the LeaseStates of a snapshot for a node without a cluster. There RecentAdmitted is a LeaseState
// of its own.
func (s LeaseState) singleStates() (states []LeaseState) {
	if s.RecentAdmitted > 0 {
		states = append(states, LeaseState{Monotonic: s.Monotonic, Count: s.RecentAdmitted})
	}
	if s.RecentAdmitted > 0 || s.Count > 0 {
		states = append(states, LeaseState{Monotonic: s.Monotonic, Count: s.Count})
	}
	return states
}

// afterSingle returns the state after the next LeaseState of a snapshot for a node without a cluster. Earlier versions
// wrote one for each lease of the last minute. Unspent is the number of unspent requests of earlier leases.
func (s LeaseState) afterSingle(next LeaseState) LeaseState {
	count := next.Unspent + next.Count
	return LeaseState{Monotonic: next.Monotonic, RecentAdmitted: s.admittedBefore(next.Monotonic, next.Unspent), Count: count}
}

// admittedBefore returns an upper bound of the requests that a node without a cluster has admitted in the minute before
// its next lease, when so many requests of its leases were unspent.
func (s LeaseState) admittedBefore(next time.Duration, unspent int) int {
	return s.admittedSingle(next) - min(unspent, s.Count)
}

// admittedSingle returns an upper bound of the requests that a node without a cluster has admitted in the last minute.
// A lease may be spent at any time.
func (s LeaseState) admittedSingle(now time.Duration) int {
	if now-s.Monotonic < MinuteSpan {
		return s.RecentAdmitted + s.Count
	}
	return s.Count
}

// State returns the state for a snapshot.
func (a *Account) State() State {
	s := State{Record: a.durableRecord(), ClosedUntil: a.days.closedUntil, Leases: a.single.singleStates()}
	for _, l := range a.nodeLeases {
		l.asked = 0
		s.Leases = append(s.Leases, l)
	}
	for _, c := range a.days.counts {
		if leased := c.leased - int(c.granted); leased > 0 || c.granted == 0 {
			s.Days = append(s.Days, DayState{c.day, leased})
		}
	}
	return s
}

// Restore returns the account of a snapshot. Then apply the newer events and call Resume.
func Restore(state State) *Account {
	a := new(Account)
	r := &state.Record
	a.id, a.email, a.createdAt, a.days.closedUntil = r.ID, r.Email, instantOf(r.CreatedAt), state.ClosedUntil
	a.setSpecial(func(s *special) { *s = special{r.SuspendedAt, r.Reason, r.Quota} })
	a.keys, a.days.counts, a.minute.admitted = a.firstKeys[:0], a.firstDays[:0], a.firstAdmitted[:0]
	for i := range r.Keys {
		a.keys = append(a.keys, keyOf(&r.Keys[i]))
	}
	for _, day := range state.Days {
		a.days.counts = append(a.days.counts, dayCount{day: day.Day, leased: day.Leased})
	}
	for _, lease := range state.Leases {
		if lease.Node == 0 {
			a.single = a.single.afterSingle(lease)
		} else {
			a.nodeLeases = append(a.nodeLeases, lease)
		}
	}
	return a
}
