package account

import (
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Leases in a cluster. Each node spends only what it has leased itself, for LeaseSpan from when it asked by either of its clocks, and only
// while all that it and the others may have admitted in the last 60 seconds stays below the limit. What the others may have admitted it
// knows from the log: the newest word of each node, a lease or a return, says how much that node had admitted in the minute before and how
// much it might spend from then on.
//
// Why no 60 seconds ever hold more than the limit (L2): of the leases of which something was spent in them take the one that comes last in
// the log. Whoever spends of it has heard all that come before it. So at its last request in that minute it counted, beside its own,
// everything that the others can have spent in it. A lease that was decided without the event before it is void all the same (AbortLease):
// so that no more of a day is leased than its limit, and nobody holds what he may not spend.
const (
	// LeaseSpan is how long a node of a cluster may spend what it has leased, from when it asked for it.
	LeaseSpan = time.Minute
	// clockRateMargin is how much longer others count it, because no two clocks run at quite the same rate.
	clockRateMargin = time.Second
)

// recentUntil and dead are from when on RecentAdmitted and Count of a node's word count no more.
func (s *LeaseState) recentUntil() time.Duration { return s.Steady + MinuteSpan + clockRateMargin }
func (s *LeaseState) countUntil() time.Duration {
	return s.Steady + LeaseSpan + MinuteSpan + clockRateMargin
}

// admittedMax is the most that the node can have admitted in the minute before a moment, or may admit still.
func (s *LeaseState) admittedMax(now time.Duration) int {
	sum := 0
	if now < s.recentUntil() {
		sum += s.RecentAdmitted
	}
	if now < s.countUntil() {
		sum += s.Count
	}
	return sum
}

// freedBy is how much of what counts now counts no more at a later moment.
func (s *LeaseState) freedBy(now, later time.Duration) int {
	return s.admittedMax(now) - s.admittedMax(later)
}

// SetNode says on which node of a cluster the account is counted, from Resume or Reload on; without it the node is alone.
func (a *Account) SetNode(node engine.NodeID) { a.node = node }

// setNodeLease keeps the newest word of a node. One that says nothing is none, so that the log's word alone decides what a state holds. In a
// cluster nobody lives who spends what a node leased when it was alone: who spoke first had counted it.
func (a *Account) setNodeLease(word LeaseState) {
	a.leases = nil
	i, known := slices.BinarySearchFunc(a.nodeLeases, word.Node, func(s LeaseState, node engine.NodeID) int { return int(s.Node) - int(node) })
	switch empty := word.RecentAdmitted == 0 && word.Count == 0; {
	case known && empty:
		a.nodeLeases = slices.Delete(a.nodeLeases, i, i+1)
	case known:
		a.nodeLeases[i] = word
	case !empty:
		a.nodeLeases = slices.Insert(a.nodeLeases, i, word)
	}
}

// ownNodeLease is the newest word of this node.
func (a *Account) ownNodeLease() LeaseState {
	for i := range a.nodeLeases {
		if a.nodeLeases[i].Node == a.node {
			return a.nodeLeases[i]
		}
	}
	return LeaseState{Node: a.node}
}

// othersAdmittedMax is the most that the other nodes can have admitted in the minute before a moment, or may admit still.
func (a *Account) othersAdmittedMax(now time.Duration) int {
	sum := 0
	for i := range a.nodeLeases {
		if a.nodeLeases[i].Node != a.node {
			sum += a.nodeLeases[i].admittedMax(now)
		}
	}
	return sum
}

// resumeNodeLeases begins to count in a new process. When the words of the log were said nobody knows any more: those of others count as
// having come now, and all that this node may have admitted before as admitted now.
func (a *Account) resumeNodeLeases(now ClockReading) {
	for i := range a.nodeLeases {
		s := &a.nodeLeases[i]
		s.Steady = max(s.Steady, now.Steady) // later only when Learn brought it to an account that sleeps since the start
		if s.Node != a.node {
			continue
		}
		for range s.RecentAdmitted + s.Count {
			a.minute.add(ClockReading{Steady: s.Steady})
		}
	}
}

// clusterMinute is the window of the minute as far as this node can know it.
func (a *Account) clusterMinute(limit int, now ClockReading) Window {
	w := a.minute.window(limit, now)
	others := a.othersAdmittedMax(now.Steady)
	if others == 0 {
		return w
	}
	used := len(a.minute.active()) + others
	w.Remaining = max(0, limit-used)
	w.Reset = now.Wall.Add(a.leaveTime(max(1, used-limit+1), now.Steady) - now.Steady)
	return w
}

// leaveTime is when so many of those that count in the minute will have left it.
func (a *Account) leaveTime(count int, now time.Duration) time.Duration {
	earliest := now + LeaseSpan + MinuteSpan + clockRateMargin // by then all have
	inside := a.minute.active()
	own, _ := slices.BinarySearchFunc(inside, count, func(at time.Duration, count int) int {
		return a.leftBy(now, at+MinuteSpan) - count
	})
	if own < len(inside) {
		earliest = min(earliest, inside[own]+MinuteSpan)
	}
	for i := range a.nodeLeases {
		for _, end := range [...]time.Duration{a.nodeLeases[i].recentUntil(), a.nodeLeases[i].countUntil()} {
			if end > now && end < earliest && a.leftBy(now, end) >= count {
				earliest = end
			}
		}
	}
	return earliest
}

// leftBy is how many of those that count in the minute now have left it at a later moment.
func (a *Account) leftBy(now, later time.Duration) int {
	inside := a.minute.active()
	sum, found := slices.BinarySearch(inside, later-MinuteSpan)
	for found && sum < len(inside) && inside[sum] == later-MinuteSpan {
		sum++
	}
	for i := range a.nodeLeases {
		if a.nodeLeases[i].Node != a.node {
			sum += a.nodeLeases[i].freedBy(now, later)
		}
	}
	return sum
}

// ApplyRemote makes a durable event true that another process decided: another node of the cluster, or this one before it was started again. now
// is when it arrived here. What is on its way into the log from here stays on its way: whoever owns the account has it decided again
// (AbortLease, AbortKey, AbortReturn), because it was decided without this. A replay applies all alike (Apply), and Resume comes behind it.
func (a *Account) ApplyRemote(event Event, now ClockReading) {
	switch e := event.(type) {
	case *KeyCreated:
		a.addKey(e.Key)
	case *Leased:
		if count := a.days.getOrCreate(e.Day); count != nil {
			count.leased += e.Count
			count.spent += e.Count
		}
		a.setNodeLease(LeaseState{Node: e.Node, Steady: now.Steady, RecentAdmitted: e.RecentAdmitted, Count: e.Unspent + e.Count + e.Refunded})
		a.setKeyUse(e.KeyID, e.At)
	case *Returned:
		if count := a.days.find(e.Day); count != nil {
			back := min(e.Unspent, count.leased)
			count.leased -= back
			count.spent = max(0, count.spent-back)
		}
		a.setNodeLease(LeaseState{Node: e.Node, Steady: now.Steady, RecentAdmitted: e.RecentAdmitted})
		for _, use := range e.Uses {
			a.setKeyUse(use.KeyID, use.At)
		}
	default:
		a.Apply(event)
	}
}
