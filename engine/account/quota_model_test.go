package account

import (
	"reflect"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// quotaModel is one account on one node or on the nodes of a cluster, with true time, clocks that differ, the leader as
// the only writer of the log, asks that arrive late or never or in another order, slow delivery, partitions, crashes
// and restarts. It checks what callers of all nodes saw against the limits.
type quotaModel struct {
	model
	bug      quotaBug
	policy   QuotaPolicy
	log      []quotaRecord
	nodes    []*quotaNode
	leader   *quotaNode
	asks     []quotaAsk   // sent, in a cluster
	proposed *quotaRecord // decided by the leader, and perhaps lost with it
	taken    map[engine.Date]int

	granted   []quotaAdmission
	charged   map[engine.Date]int
	forfeited map[engine.Date]int  // by crashes of a single node
	leased    map[engine.Date]bool // days leased from
}

// quotaBug is a planted bug; nil functions do nothing.
type quotaBug struct {
	only      string // the faults that a control looks for; "" = all
	before    func(*Account)
	admit     func(*Account, ClockReading, QuotaPolicy) (QuotaResult, bool)
	offered   func(Event)
	arrives   func(n *quotaNode, event Event, apply func(ClockReading))
	resumed   func(*Account)
	ungranted bool // a restart forgets the grants
	forgetful bool // leases are granted and not logged
	refunds   bool // what was admitted before a lease is spent again without an event
	noBarrier bool // a leader decides before it has applied the log
}

// quotaAsk is a lease or a return on its way to the leader.
type quotaAsk struct {
	event    Event
	from, to *quotaNode
}

// quotaRecord is an event of the log.
type quotaRecord struct {
	event Event
	lost  bool // planted: no replay sees it
}

// modelGrant is a DayGranted in the log of the model.
type modelGrant struct{ DayGranted }

func (modelGrant) accountID() uint64 { return 1 }

// quotaAdmission is an admission as its caller saw it.
type quotaAdmission struct {
	real     time.Duration
	at       ClockReading
	day      engine.Date
	run      int
	refunded bool
}

// quotaNode is one node of the model.
type quotaNode struct {
	process
	model       *quotaModel
	id          engine.NodeID // 0 = single
	account     *Account
	place       int         // events of the log that it has
	grants      *DayGrants  // nil in a cluster
	latest      engine.Date // latest day leased from that it knows
	partitioned bool

	flight  []Event // decided, and pending: a lease or a return
	landed  int     // of them in the log
	waiting int
	widest  int // largest lease of this process

	askedAt time.Duration          // of its newest lease
	mayCost map[engine.Date][2]int // what a crash may cost by the newest lease of a day and the one before it
	refunds map[engine.Date]int    // of this process; the account itself forgets those of an earlier day
}

var testKey = SecretOf("the key of the world").Digest()

// newQuotaModel is one node, or a cluster of three or four.
func newQuotaModel(pick func(int) int, single bool, bug quotaBug) *quotaModel {
	starts := []string{"2026-06-17T16:00:00Z", "2026-06-17T03:58:50Z", "2000-10-29T05:59:00Z", "2000-12-03T05:30:00Z"}
	m := &quotaModel{
		model: model{pick: pick, only: bug.only, single: single, counts: map[string]int{}}, bug: bug,
		charged: map[engine.Date]int{}, forfeited: map[engine.Date]int{}, taken: map[engine.Date]int{}, leased: map[engine.Date]bool{},
	}
	count := 1
	if single {
		m.start = at(starts[pick(len(starts))])
		m.policy = QuotaPolicy{DefaultQuota: Quota{1 + pick(60), 1 + pick(9)}, LeaseSize: []int{1, 2, 3, 5, 16}[pick(5)]}
	} else {
		m.start = at([]string{starts[0], "2026-06-18T03:58:30Z"}[pick(2)])
		m.policy = QuotaPolicy{DefaultQuota: Quota{8 + pick(60) + 300*pick(2), 2 + pick(12) + 30*pick(2)}, LeaseSize: []int{1, 4, 16}[pick(3)]}
		count = 3 + pick(2)
	}
	m.log = []quotaRecord{
		{event: &Created{1, idOf("a@b.do"), m.start}}, {event: &KeyCreated{1, KeyRecord{ID: "k1", Digest: testKey, CreatedAt: m.start}}},
	}
	for i := range count {
		n := &quotaNode{process: process{world: &m.model}, model: m, place: len(m.log)}
		m.nodes = append(m.nodes, n)
		origin := time.Duration(0)
		if !single {
			n.id, n.wall = engine.NodeID(i+1), time.Duration(pick(3)-1)*time.Second
			origin = time.Duration(pick(4)*pick(3)) * 17 * time.Minute
		}
		n.begin(m.replay(nil, 0, n.place), origin)
	}
	m.leader = m.nodes[0]
	return m
}

// replay returns the account after some events, from a state or from the start.
func (m *quotaModel) replay(state *State, from, to int) *Account {
	account := New(1)
	if state != nil {
		account = Restore(*state)
	}
	newest := time.Duration(0)
	for i, record := range m.log[:to] {
		newest = max(newest, numberOf(record.event).at)
		if _, grant := record.event.(modelGrant); i >= from && !record.lost && !grant {
			account.Apply(record.event, ClockReading{Monotonic: newest})
		}
	}
	return account
}

// begin starts a process with a replayed account.
func (n *quotaNode) begin(account *Account, origin time.Duration) {
	m := n.model
	n.start(origin + time.Duration((m.runs+1)*when(!m.single))*time.Microsecond)                        // no two processes of a node ask at one time
	m.asks = slices.DeleteFunc(m.asks, func(ask quotaAsk) bool { return ask.from == n || ask.to == n }) // its connections end
	n.flight, n.landed, n.waiting, n.widest, n.latest, n.account, n.mayCost = nil, 0, 0, 0, 0, account, map[engine.Date][2]int{}
	n.refunds = map[engine.Date]int{}
	for i := range m.log[:n.place] {
		n.recordDay(&m.log[i])
	}
	account.SetNode(n.id)
	account.Resume(n.now())
	if m.single {
		n.grants = &DayGrants{}
		for _, record := range m.log[:n.place] {
			if grant, is := record.event.(modelGrant); is && !m.bug.ungranted {
				n.grants = n.grants.Apply(grant.DayGranted, false)
			}
		}
		account.ResumeGrants(n.now(), n.grants)
	}
	if m.bug.resumed != nil {
		m.bug.resumed(account)
	}
}

// recordDay notes the day of a lease: the day that counts is never before it.
func (n *quotaNode) recordDay(record *quotaRecord) {
	switch e := record.event.(type) {
	case *Leased:
		n.latest = max(n.latest, e.Day)
	case *Returned:
		if e.Granted > 0 {
			n.latest = max(n.latest, e.Day)
		}
	}
}

// lastMinute is what was charged in the last 60 seconds of true time, and when the first of it was admitted.
func (m *quotaModel) lastMinute() (sum int, first time.Duration) {
	for i := len(m.granted) - 1; i >= 0 && m.real-m.granted[i].real < time.Minute; i-- {
		if g := &m.granted[i]; !g.refunded {
			sum, first = sum+1, g.real
		}
	}
	return sum, first
}

// act returns the node's account, after the planted bug has acted.
func (n *quotaNode) act() *Account {
	if n.model.bug.before != nil {
		n.model.bug.before(n.account)
	}
	return n.account
}

// noteRefunds notes what the account can still spend of refunds. Call it before what may begin a day.
func (n *quotaNode) noteRefunds() { n.refunds[n.account.days.day] = n.account.days.refunded }

// policy is the policy of the model with the grants that the node knows.
func (n *quotaNode) policy() QuotaPolicy {
	policy := n.model.policy
	policy.Grants = n.grants
	return policy
}

func (n *quotaNode) admit(now ClockReading) (QuotaResult, bool) {
	if n.model.bug.admit != nil {
		return n.model.bug.admit(n.act(), now, n.policy())
	}
	return n.act().Admit(testKey, now, n.policy())
}

// ask makes one request; false when it has to wait for a lease.
func (n *quotaNode) ask() bool {
	m, now := n.model, n.now()
	n.noteRefunds()
	m.forfeitGrant(n, now)
	result, needsLease := n.admit(now)
	if needsLease {
		return false
	}
	day := max(engine.DateOf(now.Wall), n.latest)
	if result.Admitted {
		m.counts["admitted"]++
		m.charged[day]++
		n.latest = max(n.latest, day) // perhaps of a grant
		now.Day = day
		m.granted = append(m.granted, quotaAdmission{m.real, now, day, n.run, false})
	} else {
		m.counts["refused"]++
	}
	m.judge(n, &result, day)
	if result.Admitted {
		n.lease()
	}
	return true
}

// judge checks an answer against what callers were charged, including this request.
func (m *quotaModel) judge(n *quotaNode, result *QuotaResult, day engine.Date) {
	recent, first := m.lastMinute()
	if recent > m.policy.DefaultQuota.Minute {
		m.fail("%d admitted in a minute", recent)
	}
	if m.charged[day] > m.policy.DefaultQuota.Day {
		m.fail("%d admitted on %s", m.charged[day], day)
	}
	if m.only != "" {
		return
	}
	if result.Admitted != (result.DenyCode == "") || result.Admitted != (result.RetryAfter == 0) || result.RetryAfter < 0 {
		m.fail("%+v contradicts itself", result)
	}
	left := Quota{m.policy.DefaultQuota.Day - m.charged[day] - m.forfeited[day], m.policy.DefaultQuota.Minute - recent}
	if m.single {
		m.judgeExactly(n, result, day, left, first)
		return
	}
	if n.place == len(m.log) && (result.Day.Remaining > max(0, left.Day) || result.Minute.Remaining > max(0, left.Minute)) {
		m.fail("%+v remain, really %+v", result, left)
	}
}

// judgeExactly wants both windows of a single node to be exact, except in the first minute of a process.
func (m *quotaModel) judgeExactly(n *quotaNode, result *QuotaResult, day engine.Date, left Quota, first time.Duration) {
	year, month, date := day.Start().In(engine.Location()).Date()
	if midnight := time.Date(year, month, date+1, 0, 0, 0, 0, engine.Location()); !result.Day.Reset.Equal(midnight) {
		m.fail("the day ends at %s, really at %s", result.Day.Reset, midnight)
	}
	if left.Day = max(0, left.Day); result.Day.Remaining != left.Day { // a grant that counts may exceed the quota
		m.fail("%d remain of the day, really %d", result.Day.Remaining, left.Day)
	}
	if left.Day > 0 && result.DenyCode == engine.CodeQuotaExceeded {
		m.fail("quota exceeded with %d left", left.Day)
	}
	if n.run > 1 && m.real-n.began < time.Minute {
		return
	}
	reset := n.now().Wall.Add(time.Minute)
	if left.Minute < m.policy.DefaultQuota.Minute {
		reset = reset.Add(first - m.real)
	}
	if result.Minute.Remaining != left.Minute || !result.Minute.Reset.Equal(reset) {
		m.fail("%d remain of the minute until %s, really %d until %s", result.Minute.Remaining, result.Minute.Reset, left.Minute, reset)
	}
	if left.Minute > 0 && result.DenyCode == engine.CodeRateLimited {
		m.fail("rate limited with %d left", left.Minute)
	}
}

// lease proposes the lease that is needed.
func (n *quotaNode) lease() {
	if len(n.flight) > 0 {
		return
	}
	left := n.account.quota(n.model.policy).Day - n.account.days.get(n.account.today(n.now())).leased
	lease := n.act().NextLease(testKey, n.now(), n.policy(), n.waiting)
	switch {
	case lease != nil:
		n.widest = max(n.widest, lease.Count+lease.Refunded)
		n.mayCost[lease.Day] = [2]int{n.leaseBound(left), n.mayCost[lease.Day][0]}
		n.askedAt = n.now().Monotonic
		n.offer(lease)
	case n.waiting > 0:
		if n.serve(); n.waiting > 0 && len(n.flight) == 0 {
			n.model.fail("%d wait for a lease that nothing asks for", n.waiting)
			n.waiting = 0
		}
	}
}

// leaseBound is the largest lease that decision L1 allows now, with so many requests left of the day.
func (n *quotaNode) leaseBound(left int) int {
	size := n.model.policy.LeaseSize
	if len(n.mayCost) > 0 && n.now().Monotonic-n.askedAt < time.Second {
		return max(size, min(256, left/10))
	}
	return size
}

func isLease(event Event) bool {
	_, is := event.(*Leased)
	return is
}

func (n *quotaNode) offer(event Event) {
	if n.model.bug.offered != nil {
		n.model.bug.offered(event)
	}
	n.flight = append(n.flight, event)
	if !n.model.single {
		n.model.real++ // no two asks of a node at one time
		n.model.asks = append(n.model.asks, quotaAsk{event, n, n.model.leader})
	}
}

func (n *quotaNode) request() {
	if !n.ask() {
		n.waiting++
		n.lease()
	}
}

// serve repeats the requests that wait.
func (n *quotaNode) serve() {
	for n.waiting > 0 {
		if n.waiting--; !n.ask() {
			n.waiting++
			return
		}
	}
}

// commit appends the decided events of a single node to the log. In a cluster the leader decides on the node's asks.
func (n *quotaNode) commit() {
	m := n.model
	if !m.single {
		for i := 0; i < len(m.asks) && m.fault == ""; {
			if m.asks[i].from != n || !m.decide(i) {
				i++
			}
		}
		return
	}
	if n.place+n.landed < len(m.log) {
		return
	}
	for _, event := range n.flight[n.landed:] {
		m.log = append(m.log, quotaRecord{event, m.bug.forgetful && isLease(event)})
		if lease, is := event.(*Leased); is {
			m.leased[lease.Day] = true
		}
	}
	n.landed = len(n.flight)
}

// decide brings an ask to the node that led when it was sent; false when it is still on its way.
func (m *quotaModel) decide(i int) bool {
	ask, l := m.asks[i], m.leader
	if ask.to.partitioned || ask.from.partitioned {
		return false
	}
	if ask.to == l && !m.bug.noBarrier {
		m.append(true)
		l.deliver(len(m.log))
	}
	if i = slices.Index(m.asks, ask); i < 0 || m.fault != "" {
		return true // a lease that was applied before it has moved it
	}
	m.asks = slices.Delete(m.asks, i, i+1)
	granted := Event(nil)
	if ask.to == l {
		granted = l.account.Grant(ask.event, l.now(), m.policy)
	}
	if granted == nil {
		ask.from.abort(ask.event, false)
		return true
	}
	m.append(true)
	m.proposed = &quotaRecord{event: granted}
	m.append(false)
	return true
}

// append writes the leader's last decision to the log. It may wait, so that the leader can be lost with it.
func (m *quotaModel) append(now bool) {
	if m.proposed == nil || !now && m.pick(4) == 3 {
		return
	}
	m.log = append(m.log, *m.proposed)
	switch e := m.proposed.event.(type) {
	case *Leased:
		if m.taken[e.Day] += e.Count; m.taken[e.Day] > m.policy.DefaultQuota.Day {
			m.fail("%d leased on %s", m.taken[e.Day], e.Day)
		}
	case *Returned:
		m.taken[e.Day] -= e.Unspent
	}
	m.proposed = nil
}

// elect makes another node the leader, or the same one again. A decision that is not in the log may be lost.
func (m *quotaModel) elect() {
	m.counts["elected"]++
	if m.pick(2) == 0 {
		m.append(true)
	}
	m.leader, m.proposed = m.nodes[m.pick(len(m.nodes))], nil
}

// giveUp ends the wait for an answer. The ask may still arrive.
func (n *quotaNode) giveUp() {
	for _, event := range slices.Clone(n.flight) {
		n.abort(event, true)
	}
}

// abort takes back an ask that was refused or given up.
func (n *quotaNode) abort(event Event, unknown bool) {
	i := slices.Index(n.flight, event)
	if i < 0 {
		return
	}
	n.flight = slices.Delete(n.flight, i, i+1)
	before := n.account.State()
	n.account.Abort(event, unknown)
	n.model.counts["void"]++
	if !reflect.DeepEqual(before, n.account.State()) {
		n.model.fail("a void ask left a trace")
	}
	n.waiting = 0 // they are answered with an error
}

// arrive applies an event of the log in a cluster.
func (n *quotaNode) arrive(event Event) {
	apply := func(now ClockReading) { n.account.Apply(event, now) }
	if arrives := n.model.bug.arrives; arrives != nil {
		arrives(n, event, apply)
	} else {
		apply(n.now())
	}
	n.flight = slices.DeleteFunc(n.flight, func(e Event) bool { return numberOf(e) == numberOf(event) })
}

// numberOf is the node and the number of an ask.
func numberOf(event Event) (number struct {
	node engine.NodeID
	at   time.Duration
}) {
	switch e := event.(type) {
	case *Leased:
		number.node, number.at = e.Node, e.Monotonic
	case *Returned:
		number.node, number.at = e.Node, e.Monotonic
	}
	return number
}

// awaits reports whether an event is the lease that the node asked for last and waits for.
func (n *quotaNode) awaits(event Event) bool {
	e, is := event.(*Leased)
	return is && e.Node == n.id && n.account.asking && e.Monotonic == n.account.askedAt
}

// deliver applies so many events that the node has not seen.
func (n *quotaNode) deliver(count int) {
	for m := n.model; count > 0 && n.place < len(m.log) && !n.partitioned && m.fault == ""; count-- {
		record := &m.log[n.place]
		n.place++
		n.recordDay(record)
		n.noteRefunds()
		if m.single {
			n.account.Apply(record.event, n.now())
			n.flight, n.landed = n.flight[1:], n.landed-1
		} else {
			n.arrive(record.event)
		}
		n.serve()
		if n.waiting > 0 {
			n.lease()
		}
	}
}

// crash ends a process; its proposed event may be in the log. It costs a single node one lease at most.
func (n *quotaNode) crash() {
	m := n.model
	m.counts["crashed"]++
	if m.pick(2) == 0 {
		n.commit()
	}
	if !m.single && n == m.leader {
		m.elect()
	}
	n.noteRefunds()
	mayCost, widest, refunded := n.mayCost, n.widest, n.refunds
	m.pass()
	n.restart(nil, 0)
	m.forfeit(n, func(day engine.Date) int {
		if m.policy.LeaseSize == 1 {
			return refunded[day] + max(1, widest) // an exact lease is as large as what waits for it
		}
		return refunded[day] + max(m.policy.LeaseSize, mayCost[day][0], mayCost[day][1])
	})
}

// forfeit notes what the last process of a single node has not spent of each day, and compares it with what is allowed.
func (m *quotaModel) forfeit(n *quotaNode, allowed func(engine.Date) int) {
	if !m.single {
		return
	}
	c := n.account.days.dayCount
	lost := max(0, c.leased-m.charged[c.day]-m.forfeited[c.day])
	if lost > allowed(c.day) {
		m.fail("the end of a process cost %d of %s", lost, c.day)
	}
	m.forfeited[c.day] += lost
}

// forfeitGrant notes what an earlier process has not spent of the grant of a day, when the account counts the grant.
func (m *quotaModel) forfeitGrant(n *quotaNode, now ClockReading) {
	day := n.account.today(now)
	if !m.single || n.account.days.find(day) != nil {
		return
	}
	n.account.Usage(now, n.policy())
	c := n.account.days.find(day)
	if c == nil {
		return
	}
	lost := max(0, c.leased-m.charged[day]-m.forfeited[day])
	if m.counts["granted"]++; lost > m.policy.LeaseSize {
		m.fail("a grant cost %d of %s", lost, day)
	}
	m.forfeited[day] += lost
	n.latest = max(n.latest, day)
}

// restart starts a process from a state and the events after it; a snapshot on the way must not change the result.
func (n *quotaNode) restart(state *State, from int) {
	m := n.model
	newest := time.Duration(m.pick(2)) * n.now().Monotonic // of another account
	if state != nil {
		for _, lease := range state.Leases {
			newest = max(newest, lease.Monotonic)
		}
	}
	n.place = max(n.place, from)
	if m.single {
		n.place = len(m.log)
	}
	for _, record := range m.log[:n.place] {
		newest = max(newest, numberOf(record.event).at)
	}
	if whole := m.replay(nil, 0, n.place); state == nil && m.only == "" {
		at := m.pick(n.place)
		part := m.replay(nil, 0, at).State()
		if got := m.replay(&part, at, n.place).State(); !reflect.DeepEqual(got, whole.State()) {
			m.fail("a snapshot and the events behind it give %+v, all events %+v", got, whole.State())
		}
	}
	n.begin(m.replay(state, from, n.place), newest)
}

// join restarts a process from the state of another node.
func (n *quotaNode) join() {
	other := n.model.nodes[n.model.pick(len(n.model.nodes))]
	state := other.account.State()
	n.model.pass()
	n.restart(&state, other.place)
}

// stop ends a process when nothing is pending. It costs a single node nothing.
func (n *quotaNode) stop() {
	m := n.model
	for m.single && len(n.flight) > 0 && m.fault == "" {
		n.commit()
		n.deliver(len(m.log))
	}
	if n.deliver(len(m.log)); len(n.flight) > 0 || n.partitioned || n.place < len(m.log) {
		return
	}
	m.sameAsLog(n)
	today := max(engine.DateOf(n.now().Wall), n.latest)
	if event := n.act().Return(n.now()); event != nil {
		n.offer(event)
		n.commit()
		n.deliver(1)
	}
	if m.single && n.grants.Newest() != 0 {
		day := n.grants.Newest()
		m.counts["taken back"]++
		m.log = append(m.log, quotaRecord{event: modelGrant{DayGranted{Shards: 1, Day: day, Monotonic: n.now().Monotonic, TakenBack: true}}})
		n.place++
	}
	m.pass()
	n.restart(nil, 0)
	m.forfeit(n, func(day engine.Date) int {
		if day == today {
			return 0
		}
		return m.policy.DefaultQuota.Day
	})
}

// grantDay makes a grant, as another account of the shard asks for one.
func (n *quotaNode) grantDay() {
	m, day := n.model, engine.DateOf(n.now().Wall)
	if n.landed > 0 || n.place < len(m.log) || m.policy.LeaseSize == 1 || n.grants.Covers(1, day) {
		return
	}
	grant := DayGranted{Shards: 1, Day: day, Size: m.policy.LeaseSize, Monotonic: n.now().Monotonic}
	m.log = append(m.log, quotaRecord{event: modelGrant{grant}})
	n.place++
	n.grants = n.grants.Apply(grant, true)
}

// returnIdle returns an idle lease of a cluster node.
func (n *quotaNode) returnIdle() {
	if event := n.act().NextReturn(n.now()); event != nil {
		n.model.counts["returned"]++
		n.offer(event)
	}
}

// refund takes back some recent admissions of this process.
func (n *quotaNode) refund() {
	m := n.model
	left := 1 + m.pick(6)
	for i := len(m.granted) - 1 - m.pick(4); i >= 0 && left > 0 && m.real-m.granted[i].real < 90*time.Second; i-- {
		if g := &m.granted[i]; g.run == n.run && !g.refunded {
			g.refunded = true
			m.charged[g.day]--
			if g.day < n.account.days.day {
				n.refunds[g.day]++
			}
			asked := n.account.askedAt
			if m.bug.refunds {
				n.account.askedAt = -1
			}
			n.account.Refund(g.at)
			n.account.askedAt = asked
			left--
		}
	}
}

// pass lets true time pass.
func (m *quotaModel) pass() {
	m.passOneOf(
		0, time.Millisecond, 300*time.Millisecond, time.Second, time.Second, time.Second, 3*time.Second, 7*time.Second, 7*time.Second,
		16*time.Second, 16*time.Second, 29*time.Second, 31*time.Second, time.Minute-time.Millisecond, time.Minute, 61*time.Second,
		62*time.Second, 121*time.Second, 122*time.Second, 10*time.Minute, 13*time.Hour,
	)
}

// sleep lets time pass that the monotonic clock of the node does not count: its machine is suspended.
func (n *quotaNode) sleep() {
	before := n.model.real
	n.model.pass()
	n.began += n.model.real - before
}
