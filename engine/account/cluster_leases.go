package account

import (
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Leases in a cluster. A node spends only what it has leased itself, for LeaseSpan after NextLease by both of its
// clocks, and only while all that it and the other nodes may have admitted in the last 60 seconds is below the limit.
// It knows of the others from the log: the last lease or return of a node says how much that node had admitted in the
// minute before, and how much it could spend from then on.
//
// This is why no 60 seconds ever have more requests than the limit: of the leases of which something was spent in them,
// take the last in the log. Its node had applied all leases before it. So for its last request in that minute it
// counted, beside its own requests, everything that other nodes can have admitted. A lease that was decided without the
// event before it in the log is void (AbortLease), so that no more of a day is leased than its quota.
const (
	// LeaseSpan is how long a node of a cluster may spend a lease.
	LeaseSpan = time.Minute
	// clockRateMargin is how much longer other nodes count it, because clocks run at slightly different rates.
	clockRateMargin = time.Second
)

// recentUntil and countUntil return until when RecentAdmitted and Count are counted.
func (s *LeaseState) recentUntil() time.Duration { return s.Steady + MinuteSpan + clockRateMargin }
func (s *LeaseState) countUntil() time.Duration {
	return s.Steady + LeaseSpan + MinuteSpan + clockRateMargin
}

// admittedMax returns how many requests the node may have admitted in the last minute, or may still admit, at most.
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

// SetNode says which node of a cluster this is. It must follow Resume or Reload.
func (a *Account) SetNode(node engine.NodeID) { a.node = node }

// setNodeLease replaces the lease state of a node. An empty one is removed, so that the state depends only on the log.
// Leases from before the cluster was formed can't be spent any more: the first lease in the cluster included them.
func (a *Account) setNodeLease(lease LeaseState) {
	a.leases = nil
	i, known := slices.BinarySearchFunc(a.nodeLeases, lease.Node, func(s LeaseState, node engine.NodeID) int { return int(s.Node) - int(node) })
	switch empty := lease.RecentAdmitted == 0 && lease.Count == 0; {
	case known && empty:
		a.nodeLeases = slices.Delete(a.nodeLeases, i, i+1)
	case known:
		a.nodeLeases[i] = lease
	case !empty:
		a.nodeLeases = slices.Insert(a.nodeLeases, i, lease)
	}
}

func (a *Account) ownNodeLease() LeaseState {
	for i := range a.nodeLeases {
		if a.nodeLeases[i].Node == a.node {
			return a.nodeLeases[i]
		}
	}
	return LeaseState{Node: a.node}
}

// othersAdmittedMax returns how many requests all other nodes may have admitted in the last minute, or may still admit.
func (a *Account) othersAdmittedMax(now time.Duration) int {
	sum := 0
	for i := range a.nodeLeases {
		if a.nodeLeases[i].Node != a.node {
			sum += a.nodeLeases[i].admittedMax(now)
		}
	}
	return sum
}

// resumeNodeLeases is Resume in a cluster. The age of the leases in the log is not known: those of other nodes count as
// leased now, and all that this node may have admitted as admitted now.
func (a *Account) resumeNodeLeases(now ClockReading) {
	for i := range a.nodeLeases {
		s := &a.nodeLeases[i]
		s.Steady = max(s.Steady, now.Steady) // ApplyRemote may have added a later one
		if s.Node != a.node {
			continue
		}
		for range s.RecentAdmitted + s.Count {
			a.minute.add(ClockReading{Steady: s.Steady})
		}
	}
}

// clusterMinute returns the minute window, in a cluster with the requests of other nodes.
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

// leaveTime returns when so many requests will have left the minute window.
func (a *Account) leaveTime(count int, now time.Duration) time.Duration {
	earliest := now + LeaseSpan + MinuteSpan + clockRateMargin // by then all have
	active := a.minute.active()
	own, _ := slices.BinarySearchFunc(active, count, func(at time.Duration, count int) int {
		return a.leftBy(now, at+MinuteSpan) - count
	})
	if own < len(active) {
		earliest = min(earliest, active[own]+MinuteSpan)
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

// leftBy returns how many requests of the present minute window will have left it by a later time.
func (a *Account) leftBy(now, later time.Duration) int {
	active := a.minute.active()
	sum, found := slices.BinarySearch(active, later-MinuteSpan)
	for found && sum < len(active) && active[sum] == later-MinuteSpan {
		sum++
	}
	for i := range a.nodeLeases {
		if s := &a.nodeLeases[i]; s.Node != a.node {
			sum += s.admittedMax(now) - s.admittedMax(later)
		}
	}
	return sum
}

// ApplyRemote changes the account by a durable event of another process: another node, or this one before a restart.
// now is when it arrived. Decisions that are being written here were made without it: their owner aborts them
// (AbortLease, AbortKey, AbortReturn) and decides again. A replay calls Apply for all events, and then Resume.
func (a *Account) ApplyRemote(event Event, now ClockReading) {
	switch e := event.(type) {
	case *KeyCreated:
		a.addKey(e.Key)
	case *Leased:
		if count := a.days.getOrCreate(e.Day); count != nil {
			count.leased += e.Count
			count.spent += e.Count
		}
		a.setNodeLease(LeaseState{
			Node: e.Node, Steady: now.Steady, RecentAdmitted: e.RecentAdmitted, Count: e.Unspent + e.Count + e.Refunded,
		})
		a.setKeyUses(KeyUse{e.KeyID, e.At})
	case *Returned:
		if count := a.days.find(e.Day); count != nil {
			unspent := min(e.Unspent, count.leased)
			count.leased -= unspent
			count.spent = max(0, count.spent-unspent)
		}
		a.setNodeLease(LeaseState{Node: e.Node, Steady: now.Steady, RecentAdmitted: e.RecentAdmitted})
		a.setKeyUses(e.Uses...)
	default:
		a.Apply(event)
	}
}
