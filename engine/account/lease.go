package account

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/tasard/tasard/engine"
)

// awaits reports whether this process waits for the lease or return that a node asked for at a monotonic time.
func (a *Account) awaits(node engine.NodeID, asked time.Duration) bool {
	return a.asking && node == a.node && asked == a.askedAt
}

// Asking reports whether this process waits for a lease, or for its return, to be in the log.
func (a *Account) Asking() bool { return a.asking }

func (a *Account) applyLease(e *Leased, now ClockReading) {
	own, added := a.awaits(e.Node, e.Monotonic), a.days.log(e.Day, e.Count)
	if count := a.days.find(e.Day); count != nil {
		if own {
			refunded := min(e.Refunded, count.refunded)
			count.refunded -= refunded
			count.spent -= refunded
		} else {
			count.spent += added
		}
	}
	if own {
		a.asking = false
		a.addTokens(e, added)
	}
	lease := LeaseState{Node: e.Node, RecentAdmitted: e.RecentAdmitted, Count: e.Unspent + e.Count + e.Refunded, asked: e.Monotonic}
	if e.Node == 0 && e.RecentAdmitted == 0 { // earlier versions did not write it
		lease.RecentAdmitted = a.single.admittedBefore(e.Monotonic, e.Unspent)
	}
	a.setLease(lease, now)
	a.keys.setUses(KeyUse{e.KeyID, e.At})
}

// applyReturn gives unspent requests back to the day. Requests that the node admitted in the last minute still count
// until they are a minute old.
func (a *Account) applyReturn(e *Returned, now ClockReading) {
	if e.Granted > 0 || e.Day == a.days.logged.Day {
		change := a.days.log(e.Day, e.Granted-e.Unspent)
		if count := a.days.find(e.Day); count != nil {
			count.spent = max(0, count.spent+change)
		}
	}
	if a.awaits(e.Node, e.Monotonic) {
		a.asking = false
	}
	if e.Node == 0 {
		a.nodeLeases = nil
	}
	a.setLease(LeaseState{Node: e.Node, RecentAdmitted: e.RecentAdmitted, asked: e.Monotonic}, now)
	a.keys.setUses(e.Uses...)
}

// Resume completes a replay, after the newest event of the log. now.Monotonic is the newest monotonic time in the log.
// All leases count as spent, and all requests possibly admitted in the last minute count as admitted now. So the limits
// hold even after a crash.
func (a *Account) Resume(now ClockReading) {
	a.days.spendAll()
	a.asking, a.keysPending, a.askedAt, a.lastLeaseSize, a.ownTokens = false, 0, now.Monotonic, 0, nil
	a.minute = minuteWindow{admitted: a.firstAdmitted[:0], restored: a.single.admittedSingle(now.Monotonic), restoredAt: now.Monotonic}
	// The log does not show the age of leases in a cluster. Therefore other nodes' leases count as taken now, and this
	// node's possibly admitted requests count as admitted now.
	for i := range a.nodeLeases {
		s := &a.nodeLeases[i]
		s.Monotonic = max(s.Monotonic, now.Monotonic) // Apply may have set a later time
		if s.Node == a.node {
			a.minute.restored += s.RecentAdmitted + s.Count
		}
	}
}

// NextLease returns the event of the next lease, or nil if none is needed or possible. waiting is the number of
// requests that wait for a lease. A lease is needed when requests wait, or when at most half of a lease is unspent.
// Requests of leases that this node may no longer spend are leased again first, without another charge to the day. The
// leases of a day never exceed the day's quota. In a cluster the event asks the leader, which calls Grant. The caller
// must then call Apply or Abort.
func (a *Account) NextLease(digest Digest, now ClockReading, policy QuotaPolicy, waiting int) *Leased {
	day := a.today(now)
	if a.asking || a.closedDay(day, policy) {
		return nil
	}
	count := a.days.get(day)
	spendable := a.spendable(count, now)
	if waiting == 0 && (policy.LeaseSize <= 1 || a.node == 0 && spendable > max(policy.LeaseSize, a.lastLeaseSize)/2) {
		return nil
	}
	a.minute.expire(now)
	limits, others := a.quota(policy), a.nodeLeases.othersAdmittedMax(a.node, now.Monotonic)
	free := limits.Minute - a.minute.count() - others
	size := a.leaseSize(limits, limits.Day-count.leased, min(waiting, free), now, policy)
	if waiting == 0 && a.node != 0 && (spendable > size/2 || a.minute.count() < earlyRenewalMin) {
		return nil
	}
	total := size - spendable
	if others > 0 {
		total = min(total, fairShare(free-spendable))
	}
	void := max(0, min(total, count.unspent()-spendable))
	refunded := max(0, min(total-void, count.refunded))
	added := max(0, min(total-void-refunded, limits.Day-count.leased))
	if void+added == 0 && (waiting == 0 || refunded == 0 && count.granted == 0) {
		return nil
	}
	unspent := void + a.renewTokens(now)
	if a.node == 0 && count.granted > 0 {
		unspent -= count.unspent() // included in Count
	}
	a.lastLeaseSize, a.asking, a.askedAt = size, true, now.Monotonic
	lease := &Leased{
		Account: a.id, Day: day, Count: added + count.granted, Refunded: refunded, Unspent: unspent, Monotonic: now.Monotonic,
		At: engine.PlainUTC(now.Wall), Node: a.node, RecentAdmitted: a.minute.count(),
	}
	if key := a.keys.byDigest(digest); key != nil {
		lease.KeyID = key.id
	}
	return lease
}

// leaseSize returns the intended number of spendable requests after the next lease. left is the rest of the day's
// quota. With a LeaseSize of 1 each request is written to the log. In a cluster it is the number of requests
// in leaseTargetSpan at the present rate, but at most twice the last lease.
func (a *Account) leaseSize(limits Quota, left, waiting int, now ClockReading, policy QuotaPolicy) int {
	switch {
	case policy.LeaseSize <= 1:
		return max(1, waiting)
	case a.node == 0:
		return a.nextLeaseSize(policy.LeaseSize, now, left)
	}
	maximum := max(policy.LeaseSize, limits.Minute) // so that a fast account has a lease when the log has no leader for a few seconds
	recent := a.minute.count() - a.minute.leftBy(now.Monotonic-leaseTargetSpan/2+MinuteSpan)
	return max(1, waiting, min(2*recent, 2*a.lastLeaseSize, maximum))
}

// LeaseLow reports whether requests will soon have to wait for a lease: at most an eighth of the newest is unspent.
func (a *Account) LeaseLow(now ClockReading) bool {
	return a.spendable(a.days.get(a.today(now)), now) <= a.lastLeaseSize/8
}

// LeaseGrownMax is the maximum size of a grown lease (decision L1).
const LeaseGrownMax = 256

// nextLeaseSize returns the size of the next lease: twice the newest one if that was requested within the last second,
// otherwise initial. So an account with many requests seldom waits for the log, and a crash still costs at most one
// lease (decision L1). A grown lease is at most a tenth of the day's remaining requests.
func (a *Account) nextLeaseSize(initial int, now ClockReading, left int) int {
	if a.lastLeaseSize == 0 || now.Monotonic-a.askedAt >= time.Second {
		return initial
	}
	return max(initial, min(2*a.lastLeaseSize, LeaseGrownMax, left/10))
}

// Abort must be called if the event of NextLease or Return will not become durable. unknown tells that it may still
// become durable, although the caller no longer waits for it: what it returns then stays spent. Events that this
// process no longer waits for have no effect.
func (a *Account) Abort(event Event, unknown bool) {
	switch e := event.(type) {
	case *Leased:
		if a.awaits(e.Node, e.Monotonic) {
			a.asking = false
		}
	case *Returned:
		if !a.awaits(e.Node, e.Monotonic) {
			return
		}
		if count := a.days.find(e.Day); count != nil && !unknown {
			count.spent = max(0, count.spent-e.Unspent)
		}
		a.asking = false
	}
}

// Refund takes back one request. admittedAt is the clock reading of its admission, from WithDay. A request admitted
// before the newest NextLease can be spent again only after the next lease, which writes the refund to the log.
// Otherwise more requests could be admitted in a minute than the log shows.
func (a *Account) Refund(admittedAt ClockReading) {
	a.minute.refund(admittedAt)
	switch count := a.days.find(admittedAt.today()); {
	case count == nil || count.charged() <= 0:
	case admittedAt.Monotonic > a.askedAt:
		count.spent--
		if a.node != 0 {
			a.tokens().tokens++
		}
	default:
		count.refunded++
	}
}

// Return returns the event that gives back unspent requests, or nil if there is nothing to record. The next request
// then needs another lease. The caller must call Apply or Abort. Danger: a lease being written to the log is not given
// back; wait for it first.
func (a *Account) Return(now ClockReading) *Returned {
	a.minute.expire(now)
	day := a.today(now)
	if a.days.granted > 0 {
		day = a.days.day // so that its grant can be taken back
	}
	event := &Returned{
		Account: a.id, Day: day, RecentAdmitted: a.minute.count(), Monotonic: now.Monotonic,
		Uses: a.keys.newUses(), Node: a.node,
	}
	if count := a.days.find(event.Day); count != nil {
		event.Unspent, event.Granted = count.leased-count.charged(), count.granted
	}
	a.days.spendAll()
	if a.ownTokens != nil {
		a.ownTokens.tokens = 0
	}
	if event.Unspent == 0 && event.Granted == 0 && len(event.Uses) == 0 && a.lease(a.node).Count == 0 {
		return nil
	}
	a.asking, a.askedAt = true, now.Monotonic
	return event
}

// NextReturn returns the event that gives back the lease of an idle account, so that other nodes can lease the
// requests. It returns nil if there is no need. Call it every few seconds in a cluster, and then call Apply or
// Abort.
func (a *Account) NextReturn(now ClockReading) *Returned {
	if a.node == 0 || a.asking || now.Monotonic-a.askedAt < idleReturnAfter {
		return nil
	}
	a.minute.expire(now)
	if n := a.minute.count(); n > 0 && now.Monotonic-a.minute.at(n-1) < idleReturnAfter {
		return nil
	}
	if count := a.days.get(a.today(now)); count.leased == count.charged() && a.lease(a.node).Count < spentReturnMin {
		return nil
	}
	return a.Return(now)
}

// Parameters of leases (reserved parts of a daily quota) in a cluster.
const (
	// leaseTargetSpan is the intended duration of a lease at the account's request rate.
	leaseTargetSpan = 20 * time.Second
	// From earlyRenewalMin requests in the last minute on, a lease is renewed before it is used up. Without early
	// renewal a request has to wait for the log, and is rejected while the log has no leader. With fewer requests,
	// idleReturnAfter would pass before the next request, and the new lease would be returned unused.
	earlyRenewalMin = int(MinuteSpan / idleReturnAfter)
	// idleReturnAfter is the time without requests after which the node returns the unspent part of an account's lease.
	idleReturnAfter = 15 * time.Second
	// A used-up lease of at least spentReturnMin requests is returned too, so that other nodes stop counting it.
	spentReturnMin = 8
)

// tokenLease is the part of an account's leases that this node of a cluster may spend. A token is one request.
type tokenLease struct {
	tokens    int
	until     time.Duration // monotonic time (ClockReading.Monotonic) after which the tokens are void
	untilWall time.Time     // the same in wall clock time, because monotonic time stops while the machine is suspended
	renewing  int           // unspent tokens included in the lease being written to the log
}

// tokens returns the account's tokenLease, and creates it if necessary. Call it only in a cluster.
func (a *Account) tokens() *tokenLease {
	if a.ownTokens == nil {
		a.ownTokens = new(tokenLease)
	}
	return a.ownTokens
}

// spendable returns the number of a day's requests that may be admitted without another lease.
func (a *Account) spendable(count dayCount, now ClockReading) int {
	switch {
	case a.node == 0:
		return count.unspent()
	case now.Monotonic >= a.tokens().until || !now.Wall.Before(a.tokens().untilWall):
		return 0
	}
	return min(a.tokens().tokens, count.unspent())
}

// renewTokens begins a lease, and returns the unspent requests of earlier leases that it includes.
func (a *Account) renewTokens(now ClockReading) int {
	if a.node == 0 {
		return a.days.unspent()
	}
	t := a.tokens()
	t.renewing = a.spendable(a.days.dayCount, now)
	t.tokens = t.renewing
	return t.renewing
}

// addTokens adds the requests of a lease to the tokens of this node, when the lease is in the log. added is the part of
// Leased.Count that does not count as spent already (chargeEarlierGrant).
func (a *Account) addTokens(e *Leased, added int) {
	if a.node == 0 {
		return
	}
	t := a.tokens()
	t.tokens += e.Unspent - t.renewing + added + e.Refunded
	t.until, t.untilWall = e.Monotonic+LeaseSpan, e.At.Add(LeaseSpan)
}

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
	a.nodeLeases = slices.DeleteFunc(a.nodeLeases, func(s LeaseState) bool { return s.Node == lease.Node })
	if !empty {
		a.nodeLeases = append(a.nodeLeases, lease)
		slices.SortFunc(a.nodeLeases, func(a, b LeaseState) int { return cmp.Compare(a.Node, b.Node) })
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
	day := max(ask.Day, a.days.day)
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

// DayGranted is the event of a grant: it gives each account of a shard its first lease of a day. (A lease is a reserved
// part of the daily quota.) An account spends this lease without an event of its own. The account's next event of the
// day includes the grant, in Leased.Count or Returned.Granted. After a crash the grant counts as spent for each account
// without such an event, even if the account is created later that day: the log does not tell which accounts had the
// grant.
type DayGranted struct {
	Shard, Shards uint64 // the accounts whose number modulo Shards is Shard
	Day           engine.Date
	Size          int           // number of requests for each account
	Monotonic     time.Duration // monotonic time of the decision (ClockReading.Monotonic)
	// TakenBack ends the grant at a clean stop, after each account that used the grant has an event that includes it.
	TakenBack bool
}

// DayGrant is a DayGranted that was not taken back.
type DayGrant struct {
	Shard, Shards uint64
	Day           engine.Date
	Size          int
	Until         time.Duration // monotonic time of the next grant for the same accounts; 0 = none yet
	own           bool          // this process decided it; these are the newest
}

// DayGrants are the grants of a log. The value is immutable. Only grants of this process can be used, because grants of
// earlier processes may have been spent.
type DayGrants struct {
	Grants      []DayGrant  // in the order of the log
	ClosedUntil engine.Date // grants of this day and earlier days may have been dropped
	ended       bool        // accounts may no longer begin to use a grant
}

// dayGrantsMax is the maximum number of grants that are kept for one shard.
const dayGrantsMax = 8

// Apply returns the grants after an event. own tells whether this process decided the event.
func (d *DayGrants) Apply(e DayGranted, own bool) *DayGrants {
	after, days, oldest := d.clone(), 0, engine.Date(0)
	for i := range after.Grants {
		if g := &after.Grants[i]; g.Shard == e.Shard && g.Shards == e.Shards {
			if days++; days == 1 || g.Day < oldest {
				oldest = g.Day
			}
			if g.Until == 0 {
				g.Until = e.Monotonic
			}
		}
	}
	obsolete := engine.Date(0)
	if e.TakenBack {
		obsolete = e.Day
	} else if days >= dayGrantsMax { // the day is then closed for accounts without an event of it
		obsolete, after.ClosedUntil = oldest, max(after.ClosedUntil, oldest)
	}
	after.Grants = slices.DeleteFunc(after.Grants, func(g DayGrant) bool {
		return g.Shard == e.Shard && g.Shards == e.Shards && g.Day == obsolete
	})
	if !e.TakenBack {
		after.Grants = append(after.Grants, DayGrant{Shard: e.Shard, Shards: e.Shards, Day: e.Day, Size: e.Size, own: own})
	}
	return after
}

func (d *DayGrants) clone() *DayGrants {
	return &DayGrants{Grants: slices.Clone(d.Grants), ClosedUntil: d.ClosedUntil, ended: d.ended}
}

// Covers reports whether an account may have had a grant of a day, from any process. The grant may have been dropped.
func (d *DayGrants) Covers(account uint64, day engine.Date) bool {
	size, _ := d.find(account, day)
	return size > 0 || day <= d.ClosedUntil
}

// find returns the size of the grant of a day for an account, and whether only this process made grants of that day for
// it. If processes with different numbers of shards made grants of the day, the size is that of the largest.
func (d *DayGrants) find(account uint64, day engine.Date) (size int, own bool) {
	own = true
	for i := range d.Grants {
		if g := &d.Grants[i]; g.Day == day && account%g.Shards == g.Shard {
			size, own = max(size, g.Size), own && g.own
		}
	}
	return size, own
}

// usable reports whether an account may begin to use the grant of a day.
func (d *DayGrants) usable(account uint64, day engine.Date) bool {
	_, own := d.find(account, day)
	return own && !d.ended && d.isNewest(account, day)
}

// isNewest reports whether the newest grant for an account is of this day. An older grant is still in use if the clock
// was set back across midnight. To spend from an older grant the account needs an event, because after a crash spentMax
// counts only grants that were the newest in the last minute.
func (d *DayGrants) isNewest(account uint64, day engine.Date) bool {
	for i := len(d.Grants) - 1; i >= 0; i-- {
		if g := &d.Grants[i]; account%g.Shards == g.Shard {
			return g.Day == day
		}
	}
	return false
}

// Earlier returns the grants as those of an earlier process, which ended at a monotonic time.
func (d *DayGrants) Earlier(ended time.Duration) *DayGrants {
	earlier := d.clone()
	for i := range earlier.Grants {
		g := &earlier.Grants[i]
		if g.own = false; g.Until == 0 {
			g.Until = ended
		}
	}
	return earlier
}

// End returns the grants for a stop: accounts can no longer begin to use them.
func (d *DayGrants) End() *DayGrants {
	after := d.clone()
	after.ended = true
	return after
}

// Newest returns the day of this process's newest grant, or 0. The grant can be taken back after End, when all accounts
// have returned their leases (Account.Return).
func (d *DayGrants) Newest() engine.Date {
	if n := len(d.Grants); n > 0 && d.Grants[n-1].own {
		return d.Grants[n-1].Day
	}
	return 0
}

// OfShard returns the part of the grants that a shard stores in a snapshot: its own grants. The first shard also stores
// the grants of earlier processes with another number of shards.
func (d *DayGrants) OfShard(shard, shards uint64) DayGrants {
	return DayGrants{ClosedUntil: d.ClosedUntil, Grants: slices.DeleteFunc(slices.Clone(d.Grants), func(g DayGrant) bool {
		return g.Shards == shards && g.Shard != shard || g.Shards != shards && shard != 0
	})}
}

// spentMax returns an upper bound of the requests that an account has spent from grants in the last minute. The
// newest day with an event of the account does not count, because that event includes the grant.
func (d *DayGrants) spentMax(account uint64, days *dayCounts, now time.Duration) (sum int) {
	for _, g := range d.Grants {
		if account%g.Shards == g.Shard && days.find(g.Day) == nil && (g.Until == 0 || now-g.Until < MinuteSpan) {
			sum += g.Size
		}
	}
	return sum
}

// chargeEarlierGrant counts an earlier process's grant of a day as spent, unless the account has an event of that day
// or a later day. It counts the whole grant, because the quota may have been larger when the account spent the grant.
func (a *Account) chargeEarlierGrant(day engine.Date, policy QuotaPolicy) {
	grants := policy.Grants
	if grants == nil || a.days.day >= day {
		return
	}
	if size, own := grants.find(a.id, day); !own {
		a.days.dayCount = dayCount{day: day, leased: size, granted: size, spent: size}
	}
}

// takeGrant lets the account use the grant of a day, if there is one and the account may begin to use it.
func (a *Account) takeGrant(day engine.Date, policy QuotaPolicy) {
	grants := policy.Grants
	if grants == nil || a.node != 0 || a.days.day >= day || a.asking {
		return
	}
	if grants.usable(a.id, day) && day > grants.ClosedUntil {
		size, _ := grants.find(a.id, day)
		size = min(size, a.quota(policy).Day)
		a.days.dayCount = dayCount{day: day, leased: size, granted: size}
	}
}

// closedDay reports whether a day does not accept charges: it is outside the calendar, or its grants were dropped.
func (a *Account) closedDay(day engine.Date, policy QuotaPolicy) bool {
	return day == 0 || policy.Grants != nil && day <= policy.Grants.ClosedUntil && a.days.day < day
}

// ResumeGrants completes Resume: the minute window then includes the requests that the account may have spent from
// grants.
func (a *Account) ResumeGrants(now ClockReading, grants *DayGrants) {
	a.minute.restored += grants.spentMax(a.id, &a.days, now.Monotonic)
}
