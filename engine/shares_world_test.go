package engine

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// clusterWorld is one account on several nodes, with true time, clocks of different origins, one log in which a record that was decided
// without the one before it has no place, delivery that takes its time, nodes that are cut off, crash and come back, and chance. It holds
// what callers saw on all nodes together against the limits; what it finds first stands in fault.
type clusterWorld struct {
	pick     func(n int) int // below n
	bug      clusterBug
	terms    Terms
	start    time.Time
	real     time.Duration
	log      []clusterRecord
	nodes    []*clusterNode
	granted  []clusterGrant
	runs     int
	fault    string
	admitted int
	void     int // offers that lost their place
	crashes  int
	returned int
	aside    int
}

// clusterBug is planted; nil functions plant nothing.
type clusterBug struct {
	only    string // faults of the control
	before  func(*Account)
	offered func(AccountEvent)
	arrives func(AccountEvent, Moment) Moment
	resumed func(*Account)
	stale   bool // what was decided without the last record has its place all the same
}

type clusterRecord struct {
	event AccountEvent
	run   int // that decided it
}

type clusterGrant struct {
	real     time.Duration
	at       Moment
	day      Date
	run      int
	refunded bool
}

// clusterNode is a node of the world.
type clusterNode struct {
	world   *clusterWorld
	id      NodeID
	run     int
	wall    time.Duration // how far its clock is ahead
	began   time.Duration // of this process, true time
	origin  time.Duration // of its steady time
	account *Account
	place   int // records of the log that were delivered
	cut     bool

	flight  []AccountEvent // decided and not heard of: a return, then a lease
	landed  int            // of them in the log
	waiting int
}

// leasing reports that a lease is on its way.
func (n *clusterNode) leasing() bool {
	return slices.ContainsFunc(n.flight, func(event AccountEvent) bool { _, is := event.(*Leased); return is })
}

func newClusterWorld(pick func(int) int, bug clusterBug) *clusterWorld {
	starts := []string{"2026-06-17T16:00:00Z", "2026-06-18T03:58:30Z"}
	w := &clusterWorld{
		pick: pick, bug: bug, start: at(starts[pick(len(starts))]),
		terms: Terms{Allowance{8 + pick(60) + 300*pick(2), 2 + pick(12) + 30*pick(2)}, []int{1, 4, 16}[pick(3)]},
	}
	w.log = []clusterRecord{
		{event: &AccountCreated{1, idOf("a@b.do"), w.start}}, {event: &KeyCreated{1, KeyRecord{ID: "k1", Digest: worldKey, CreatedAt: w.start}}},
	}
	for id := range 3 + pick(2) {
		n := &clusterNode{world: w, id: NodeID(id + 1), wall: time.Duration(pick(3)-1) * time.Second, place: len(w.log)}
		n.origin = time.Duration(pick(4)) * time.Duration(pick(3)) * 17 * time.Minute
		w.nodes = append(w.nodes, n)
		n.begin(w.replay(nil, 0, n.place), n.origin)
	}
	return w
}

func (w *clusterWorld) fail(format string, args ...any) {
	if w.fault == "" && strings.Contains(format, w.bug.only) {
		w.fault = fmt.Sprintf("at %s, terms %v, %d nodes: ", w.real, w.terms, len(w.nodes)) + fmt.Sprintf(format, args...)
	}
}

// replay is the account after the records up to a place, from a state after some of them.
func (w *clusterWorld) replay(state *AccountState, from, to int) *Account {
	account := NewAccount(1)
	if state != nil {
		account = RestoreAccount(*state)
	}
	for _, record := range w.log[from:to] {
		account.Apply(record.event)
	}
	return account
}

func (n *clusterNode) now() Moment {
	w := n.world
	return Moment{Wall: w.start.Add(w.real + n.wall), Steady: n.origin + w.real - n.began}
}

// begin is a new process with an account that a replay made.
func (n *clusterNode) begin(account *Account, origin time.Duration) {
	n.world.runs++
	n.run, n.began, n.origin = n.world.runs, n.world.real, origin
	n.flight, n.landed, n.waiting, n.account = nil, 0, 0, account
	account.SetNode(n.id)
	account.Resume(n.now())
	if bug := n.world.bug.resumed; bug != nil {
		bug(account)
	}
}

// charged counts what callers were charged for since a moment, of a day or of all.
func (w *clusterWorld) charged(since time.Duration, day Date) int {
	sum := 0
	for i := len(w.granted) - 1; i >= 0 && w.granted[i].real > since; i-- {
		if g := &w.granted[i]; !g.refunded && (day == 0 || g.day == day) {
			sum++
		}
	}
	return sum
}

// act is what a node does on its own account; a planted bug comes first.
func (n *clusterNode) act() *Account {
	if bug := n.world.bug.before; bug != nil {
		bug(n.account)
	}
	return n.account
}

// ask is one request; false when it has to wait for a lease.
func (n *clusterNode) ask() bool {
	w, now := n.world, n.now()
	verdict, need := n.act().Admit(worldKey, now, w.terms)
	if need == LeaseNeeded {
		return false
	}
	day := n.account.today(now)
	if n.place == len(w.log) && w.bug.only == "" {
		w.judgeWindows(verdict, day)
	}
	if !verdict.Admitted {
		if verdict.RetryAfter <= 0 {
			w.fail("refused with %+v", verdict)
		}
		return true
	}
	w.admitted++
	w.granted = append(w.granted, clusterGrant{w.real, n.account.Dated(now), day, n.run, false})
	if sum := w.charged(w.real-time.Minute, 0); sum > w.terms.Allowance.Minute {
		w.fail("%d admitted in a minute", sum)
	}
	if sum := w.charged(-1, day); sum > w.terms.Allowance.Day {
		w.fail("%d admitted on %s", sum, day)
	}
	n.lease()
	return true
}

// judgeWindows wants of a node that has heard everything that it promises no more than is left.
func (w *clusterWorld) judgeWindows(verdict Verdict, day Date) {
	charge := 0
	if verdict.Admitted {
		charge = 1
	}
	if left := w.terms.Allowance.Minute - w.charged(w.real-time.Minute, 0) - charge; verdict.Minute.Remaining > max(0, left) {
		w.fail("%d remain of the minute, really %d", verdict.Minute.Remaining, left)
	}
	if left := w.terms.Allowance.Day - w.charged(-1, day) - charge; verdict.Day.Remaining > max(0, left) {
		w.fail("%d remain of the day, really %d", verdict.Day.Remaining, left)
	}
}

// lease offers the lease that is needed.
func (n *clusterNode) lease() {
	if n.leasing() {
		return
	}
	lease := n.act().NextLease(worldKey, n.now(), n.world.terms, n.waiting)
	switch {
	case lease != nil:
		n.offer(lease)
	case n.waiting > 0:
		if n.serve(); n.waiting > 0 && !n.leasing() {
			n.world.fail("%d wait for a lease that nobody asks for", n.waiting)
			n.waiting = 0
		}
	}
}

func (n *clusterNode) offer(event AccountEvent) {
	if bug := n.world.bug.offered; bug != nil {
		bug(event)
	}
	n.flight = append(n.flight, event)
}

func (n *clusterNode) request() {
	if !n.ask() {
		n.waiting++
		n.lease()
	}
}

// serve asks again for those that wait.
func (n *clusterNode) serve() {
	for n.waiting > 0 {
		if n.waiting--; !n.ask() {
			n.waiting++
			return
		}
	}
}

// land gives what a node offers its place, unless another record has it.
func (n *clusterNode) land() {
	w := n.world
	if n.cut || n.place+n.landed < len(w.log) && !w.bug.stale {
		return
	}
	for _, event := range n.flight[n.landed:] {
		w.log = append(w.log, clusterRecord{event, n.run})
	}
	n.landed = len(n.flight)
}

// deliver brings a node so many records that it has not heard yet.
func (n *clusterNode) deliver(count int) {
	for w := n.world; count > 0 && n.place < len(w.log) && !n.cut && w.fault == ""; count-- {
		record := w.log[n.place]
		n.place++
		if record.run == n.run {
			n.account.Apply(record.event)
			n.flight, n.landed = n.flight[1:], n.landed-1
		} else {
			arrival := n.now()
			if w.bug.arrives != nil {
				arrival = w.bug.arrives(record.event, arrival)
			}
			n.account.Learn(record.event, arrival)
			if !w.bug.stale {
				n.lost()
			}
		}
		n.serve()
		if n.waiting > 0 {
			n.lease()
		}
	}
}

// lost ends a lease that has no place any more, and a return or not: what it says stands whatever others say. It leaves no trace in what
// the log knows.
func (n *clusterNode) lost() {
	before := n.account.State()
	n.flight = slices.DeleteFunc(n.flight, func(event AccountEvent) bool {
		switch e := event.(type) {
		case *Leased:
			n.account.LeaseLost()
		case *Returned:
			if n.world.pick(2) == 0 {
				return false
			}
			n.account.ReturnLost(e)
		}
		n.world.void++
		return true
	})
	if !reflect.DeepEqual(before, n.account.State()) {
		n.world.fail("a void offer left a trace")
	}
}

// crash ends a process; what it offered may have its place or get one later.
func (n *clusterNode) crash() {
	w := n.world
	w.crashes++
	if w.pick(2) == 0 {
		n.land()
	}
	w.pass()
	n.restart(nil, 0)
}

// restart begins a process from a state after so many records, and those that the node had heard.
func (n *clusterNode) restart(state *AccountState, from int) {
	newest := time.Duration(n.world.pick(2)) * n.now().Steady // of another account
	if state != nil {
		for _, lease := range state.Leases {
			newest = max(newest, lease.Steady)
		}
	}
	n.place = max(n.place, from)
	for _, record := range n.world.log[:n.place] {
		switch e := record.event.(type) {
		case *Leased:
			newest = max(newest, e.Steady)
		case *Returned:
			newest = max(newest, e.Steady)
		}
	}
	n.begin(n.world.replay(state, from, n.place), newest)
}

// join ends a process and begins it from what another node keeps.
func (n *clusterNode) join() {
	other := n.world.nodes[n.world.pick(len(n.world.nodes))]
	state := other.account.State()
	n.world.pass()
	n.restart(&state, other.place)
}

// stop ends a process in order, when nothing is on its way.
func (n *clusterNode) stop() {
	w := n.world
	if n.deliver(len(w.log)); len(n.flight) > 0 || n.cut || n.place < len(w.log) {
		return
	}
	if event := n.act().Return(n.now()); event != nil {
		n.offer(event)
		n.land()
		n.deliver(1)
	}
	w.pass()
	n.restart(nil, 0)
}

// rest returns what a node does not need.
func (n *clusterNode) rest() {
	if event := n.act().NextReturn(n.now()); event != nil {
		n.world.returned++
		n.offer(event)
	}
}

// putAside takes an idle account out of memory and back in; meanwhile it may learn what others decided.
func (n *clusterNode) putAside() {
	w := n.world
	if len(n.flight) > 0 || !n.account.Idle(n.now()) {
		return
	}
	w.aside++
	state, aside := n.account.State(), n.account.PutAside()
	for range w.pick(2) {
		if n.place < len(w.log) && !n.cut {
			asleep := RestoreAccount(state)
			asleep.TakeUp(aside)
			asleep.Learn(w.log[n.place].event, n.now())
			n.place++
			state, aside = asleep.State(), asleep.PutAside()
		}
	}
	n.account = RestoreAccount(state)
	n.account.SetNode(n.id)
	n.account.TakeUp(aside)
}

// refund takes back some young admissions of this process.
func (n *clusterNode) refund() {
	w := n.world
	left := 1 + w.pick(6)
	for i := len(w.granted) - 1 - w.pick(4); i >= 0 && left > 0 && w.real-w.granted[i].real < 90*time.Second; i-- {
		if g := &w.granted[i]; g.run == n.run && !g.refunded {
			g.refunded = true
			n.act().Refund(g.at)
			left--
		}
	}
}

func (w *clusterWorld) pass() {
	spans := []time.Duration{
		0, time.Millisecond, 300 * time.Millisecond, time.Second, time.Second, time.Second, 3 * time.Second, 7 * time.Second, 7 * time.Second,
		16 * time.Second, 16 * time.Second, 29 * time.Second, 31 * time.Second, time.Minute - time.Millisecond, time.Minute, 61 * time.Second,
		62 * time.Second, 121 * time.Second, 122 * time.Second, 10 * time.Minute, 13 * time.Hour,
	}
	w.real += spans[w.pick(len(spans))]
}

// sleep lets time go by of which the steady clock of a node knows nothing: its machine stands still.
func (n *clusterNode) sleep() {
	before := n.world.real
	n.world.pass()
	n.began += n.world.real - before
}

func (w *clusterWorld) step() {
	n := w.nodes[w.pick(len(w.nodes))]
	switch kind := w.pick(100); {
	case kind < 32:
		for range 1 + w.pick(9) {
			n.request()
		}
	case kind < 50:
		n.land()
	case kind < 76:
		n.deliver(1 + w.pick(3))
	case kind < 86:
		w.pass()
	case kind == 86:
		n.sleep()
	case kind < 91:
		n.refund()
	case kind < 93:
		n.cut = !n.cut
	case kind < 97:
		n.rest()
		n.putAside()
	case kind == 97:
		n.crash()
	case kind == 98:
		n.stop()
	default:
		n.join()
	}
}

// live runs so many steps or to the first fault. At the end all nodes hear everything and know the same.
func (w *clusterWorld) live(steps int) string {
	for range steps {
		if w.step(); w.fault != "" {
			return w.fault
		}
	}
	for _, n := range w.nodes {
		n.cut = false
	}
	for i := 0; i < 2*len(w.nodes); i++ {
		for _, n := range w.nodes {
			n.deliver(len(w.log))
		}
	}
	plain := w.replay(nil, 0, len(w.log)).State()
	for _, n := range w.nodes {
		if w.bug.only == "" && n.place == len(w.log) && !sameOnAll(n.account.State(), plain) {
			w.fail("node %d knows %+v, the log says %+v", n.id, n.account.State(), plain)
		}
	}
	return w.fault
}

// sameOnAll compares states but for their steady times, which each process has of its own.
func sameOnAll(a, b AccountState) bool {
	for _, state := range []*AccountState{&a, &b} {
		state.Leases = slices.Clone(state.Leases)
		for i := range state.Leases {
			state.Leases[i].Steady = 0
		}
	}
	return reflect.DeepEqual(a, b)
}
