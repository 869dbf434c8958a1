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

// LeaseState gives an upper bound of the requests admitted since a lease (reserved part of a daily quota) was taken or
// returned. With this bound no minute exceeds its limit, even after a crash.
//
// Without a cluster there is a LeaseState for each recent lease. At the monotonic time Monotonic
// (ClockReading.Monotonic, a monotonic clock) Count requests were leased. Unspent is the number of unspent requests
// of earlier leases at that time.
//
// In a cluster there is a LeaseState for each node, from the node's newest lease or return. The node had admitted
// RecentAdmitted requests in the minute before that event, and could spend Count requests from then on. Monotonic is
// the monotonic time of this process at which the event arrived. In a replay it is the monotonic time in the event,
// until Resume sets it.
type LeaseState struct {
	Monotonic      time.Duration
	Unspent        int
	Count          int
	Node           engine.NodeID
	RecentAdmitted int
	asked          time.Duration // of the node's newest lease or return, on that node's clock; not in a snapshot
}

// State returns the state for a snapshot.
func (a *Account) State() State {
	s := State{Record: a.durableRecord(), ClosedUntil: a.days.closedUntil}
	for _, l := range a.leases {
		s.Leases = append(s.Leases, LeaseState{Monotonic: l.at, Unspent: int(l.unspent), Count: int(l.count)})
	}
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
	a.keys, a.days.counts, a.leases, a.minute.admitted = a.firstKeys[:0], a.firstDays[:0], a.firstLeases[:0], a.firstAdmitted[:0]
	for i := range r.Keys {
		a.keys = append(a.keys, keyOf(&r.Keys[i]))
	}
	for _, day := range state.Days {
		a.days.counts = append(a.days.counts, dayCount{day: day.Day, leased: day.Leased})
	}
	for _, lease := range state.Leases {
		if lease.Node == 0 {
			a.leases = append(a.leases, recentLease{lease.Monotonic, int32(lease.Unspent), int32(lease.Count)})
		} else {
			a.nodeLeases = append(a.nodeLeases, lease)
		}
	}
	return a
}
