package account

import (
	"slices"
	"sort"
	"time"

	"github.com/tasard/tasard/engine"
)

// A quota lease is a part of an account's daily quota. One node takes it with one event in the log and spends it in
// memory. A node asks the leader for a lease (NextLease); the leader decides its size (Grant) and writes it to the
// log; the node has it when it applies that event (Apply). Monotonic time is ClockReading.Monotonic. Quota leases
// in a cluster follow four rules:
//
//  1. A node spends only its own leases. It spends a lease for at most LeaseSpan after it asked for the lease, in wall
//     clock time and in monotonic time.
//  2. The newest Leased event (takes a lease) or Returned event (gives the rest of a lease back) of a node says how
//     many requests the node admitted in the minute before, and how many it could spend from then on. From this event
//     the other nodes calculate how many requests that node may have admitted.
//  3. A node admits a request only if the limit of the minute is greater than this sum: its own requests of the last 60
//     seconds, and all requests that the other nodes may have admitted.
//  4. The time at which a node asked (Leased.Monotonic) is the number of the ask. The leader refuses an ask that is not
//     newer than the node's newest event in the log, and a node accepts only the lease that it asked for last and still
//     waits for. Otherwise an old event could replace a newer one, and rule 2 would be broken.
//
// A node spends on while it waits. These requests are a part of Leased.Unspent in its ask, and are taken from
// the lease when it arrives.
//
// Therefore any 60 seconds have at most as many requests as the limit. Proof: take all leases from which requests were
// spent in those seconds. One of these leases is the last in the log, and its node had applied all the others. When
// that node admitted its last request in those seconds, it counted its own requests and all requests that the other
// nodes may have admitted.
//
// The leader decides only when it has applied all events in the log, and its own earlier decision is in the log or
// void. Therefore a lease counts from its decision, and the leases of a day never exceed its quota.
const (
	// LeaseSpan is the maximum time for spending a lease in a cluster.
	LeaseSpan = time.Minute
	// clockRateMargin lengthens the time for which other nodes count a lease, because clocks run at slightly different
	// rates.
	clockRateMargin = time.Second
)

// recentUntil returns the monotonic time until which other nodes count RecentAdmitted (requests admitted before the
// event).
func (s *LeaseState) recentUntil() time.Duration { return s.Monotonic + MinuteSpan + clockRateMargin }

// countUntil returns the monotonic time until which other nodes count Count (requests that could be spent after the
// event).
func (s *LeaseState) countUntil() time.Duration {
	return s.Monotonic + LeaseSpan + MinuteSpan + clockRateMargin
}

// admittedMax returns an upper bound of the requests that the node may have admitted in the last minute or may still
// admit.
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

// SetNode sets this process's node of the cluster. Call it after Resume.
func (a *Account) SetNode(node engine.NodeID) { a.node = node }

// lease returns the LeaseState of a node; 0 is this node without a cluster.
func (a *Account) lease(node engine.NodeID) LeaseState {
	if node == 0 {
		return a.single
	}
	return a.nodeLeases.of(node)
}

// setLease replaces a node's LeaseState by one that arrives now, or removes it if lease is empty. A LeaseState in a
// cluster also removes that from before the cluster, because its unspent requests are part of the first lease in the
// cluster.
func (a *Account) setLease(lease LeaseState, now ClockReading) {
	empty := lease.RecentAdmitted == 0 && lease.Count == 0
	a.single, lease.Monotonic = LeaseState{}, now.Monotonic
	if lease.Node == 0 {
		if lease.Monotonic = lease.asked; !empty {
			a.single = lease
		}
		return
	}
	i, found := slices.BinarySearchFunc(a.nodeLeases, lease.Node, func(s LeaseState, node engine.NodeID) int { return int(s.Node) - int(node) })
	switch {
	case found && empty:
		a.nodeLeases = slices.Delete(a.nodeLeases, i, i+1)
	case found:
		a.nodeLeases[i] = lease
	case !empty:
		a.nodeLeases = slices.Insert(a.nodeLeases, i, lease)
	}
}

// Grant decides on a lease or a return that a node asked for with NextLease or Return: at the leader of a cluster, also
// for the leader itself, or at a node without a cluster. It returns the event to write to the log. It returns nil if
// nothing is left, or a newer event of the node is in the log. Danger: the leader must first apply all events in the
// log, and must not call it while an earlier lease or return of the account is being written.
func (a *Account) Grant(ask Event, now ClockReading, policy QuotaPolicy) Event {
	switch e := ask.(type) {
	case *Leased:
		if e.Node == 0 {
			return e
		}
		if grant := a.grantLease(e, now, policy); grant != nil {
			return grant
		}
	case *Returned:
		if e.Node == 0 || a.nodeLeases.isNewestAsk(e.Node, e.Monotonic) {
			return e
		}
	}
	return nil
}

func (a *Account) grantLease(ask *Leased, now ClockReading, policy QuotaPolicy) *Leased {
	day := max(ask.Day, a.days.newest())
	if !a.nodeLeases.isNewestAsk(ask.Node, ask.Monotonic) || a.closedDay(day, policy) {
		return nil
	}
	limits, grant := a.quota(policy), *ask
	grant.Day = day
	grant.Count = max(0, min(ask.Count, limits.Day-a.days.get(day).leased))
	if others := a.nodeLeases.othersAdmittedMax(ask.Node, now.Monotonic); others > 0 {
		grant.Count = min(grant.Count, fairShare(limits.Minute-ask.RecentAdmitted-others-ask.Unspent))
	}
	if grant.Count+grant.Unspent+grant.Refunded == 0 {
		return nil
	}
	return &grant
}

// fairShare returns how many of the minute's remaining requests one node may lease while other nodes have leases.
func fairShare(left int) int { return (max(0, left) + 1) / 2 }

// nodeLeases are the leases of all nodes of a cluster, sorted by node.
type nodeLeases []LeaseState

func (l nodeLeases) of(node engine.NodeID) LeaseState {
	for i := range l {
		if l[i].Node == node {
			return l[i]
		}
	}
	return LeaseState{Node: node}
}

func (l nodeLeases) isNewestAsk(node engine.NodeID, asked time.Duration) bool {
	return asked > l.of(node).asked
}

// othersAdmittedMax returns the sum of admittedMax of all nodes but one.
func (l nodeLeases) othersAdmittedMax(node engine.NodeID, now time.Duration) int {
	sum := 0
	for i := range l {
		if l[i].Node != node {
			sum += l[i].admittedMax(now)
		}
	}
	return sum
}

// resumeNodeLeases completes a replay for the leases in a cluster. The log does not show their age. Therefore other
// nodes' leases count as taken now, and this node's possibly admitted requests count as admitted now.
func (a *Account) resumeNodeLeases(now ClockReading) {
	for i := range a.nodeLeases {
		s := &a.nodeLeases[i]
		s.Monotonic = max(s.Monotonic, now.Monotonic) // Apply may have set a later time
		if s.Node == a.node {
			a.minute.restored += s.RecentAdmitted + s.Count
		}
	}
}

// clusterMinute returns the limit of a minute and its current use, including requests of other nodes.
func (a *Account) clusterMinute(limit int, now ClockReading) Window {
	w := a.minute.window(limit, now)
	others := a.nodeLeases.othersAdmittedMax(a.node, now.Monotonic)
	if others == 0 {
		return w
	}
	used := a.minute.count() + others
	w.Remaining = max(0, limit-used)
	w.Reset = now.Wall.Add(a.leaveTime(max(1, used-limit+1), now.Monotonic) - now.Monotonic)
	return w
}

// leaveTime returns the monotonic time at which count requests will have left the minute window (the last 60 seconds).
func (a *Account) leaveTime(count int, now time.Duration) time.Duration {
	earliest := now + LeaseSpan + MinuteSpan + clockRateMargin // by then all requests have left
	if i := sort.Search(a.minute.count(), func(i int) bool { return a.leftBy(now, a.minute.at(i)+MinuteSpan) >= count }); i < a.minute.count() {
		earliest = min(earliest, a.minute.at(i)+MinuteSpan)
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

// leftBy returns the number of requests in the current minute window that will have left it by a later time.
func (a *Account) leftBy(now, later time.Duration) int {
	sum := a.minute.leftBy(later)
	for i := range a.nodeLeases {
		if s := &a.nodeLeases[i]; s.Node != a.node {
			sum += s.admittedMax(now) - s.admittedMax(later)
		}
	}
	return sum
}
