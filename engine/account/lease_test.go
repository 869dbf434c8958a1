package account

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tasard/tasard/engine"
)

// newClusterTestAccount is an account on node 1 of a cluster, an hour after its process started.
func newClusterTestAccount(t *testing.T) *testAccount {
	now := ClockReading{Wall: noon, Monotonic: time.Hour}
	return &testAccount{t: t, account: newClusterAccount(1, now), now: now, policy: defaultPolicy}
}

// others leases for another node.
func (w *testAccount) others(recent, count int) {
	w.account.Apply(&Leased{Account: 1, Day: w.account.today(w.now), Count: count, KeyID: "k1", At: w.now.Wall, Node: 2, RecentAdmitted: recent}, w.now)
}

// pace makes the account one with requests of some time ago, and with a last lease of a size.
func (w *testAccount) pace(requests int, span time.Duration, size int) {
	at := w.now
	at.Monotonic -= span
	for range requests {
		w.account.minute.add(at)
	}
	w.account.lastLeaseSize = size
}

// next is the next lease for so many requests that wait.
func (w *testAccount) next(waiting int) *Leased {
	return w.account.NextLease(testKey, w.now, defaultPolicy, waiting)
}

// take takes a lease of a size and spends some of it.
func (w *testAccount) take(size, spent int) {
	w.t.Helper()
	lease := w.next(size)
	if lease == nil || lease.Count != size {
		w.t.Fatalf("%+v, want a lease of %d", lease, size)
	}
	w.account.Apply(lease, w.now)
	for range spent {
		if result, needsLease := w.account.Admit(testKey, w.now, defaultPolicy); needsLease || !result.Admitted {
			w.t.Fatalf("not admitted: %+v", result)
		}
	}
}

// A node leases what it needs, at most half, rounded up, of what other nodes leave of the minute, and void requests
// before new ones of the day.
func TestL1_L2_HowMuchANodeLeases(t *testing.T) {
	for name, c := range map[string]struct {
		before                 func(w *testAccount)
		waiting                int
		fresh, unspent, refund int // none at all: no lease
	}{
		"no other node":                     {waiting: 100, fresh: 60, before: func(*testAccount) {}},
		"few":                               {waiting: 3, fresh: 3, before: func(*testAccount) {}},
		"others have half":                  {waiting: 100, fresh: 15, before: func(w *testAccount) { w.others(10, 20) }},
		"others have one less":              {waiting: 100, fresh: 16, before: func(w *testAccount) { w.others(10, 19) }},
		"others have all but one":           {waiting: 100, fresh: 1, before: func(w *testAccount) { w.others(40, 19) }},
		"others have all":                   {waiting: 100, before: func(w *testAccount) { w.others(40, 20) }},
		"others have more":                  {waiting: 100, before: func(w *testAccount) { w.others(60, 10) }},
		"others' of a minute ago count":     {waiting: 100, fresh: 15, before: func(w *testAccount) { w.others(30, 0); w.advance(MinuteSpan) }},
		"and those of a slower clock":       {waiting: 100, fresh: 60, before: func(w *testAccount) { w.others(30, 0); w.advance(MinuteSpan + clockRateMargin) }},
		"others, and what was spent here":   {waiting: 100, fresh: 13, before: func(w *testAccount) { w.take(5, 5); w.others(10, 20) }},
		"others, and what is left here":     {waiting: 100, fresh: 10, unspent: 5, before: func(w *testAccount) { w.take(10, 5); w.others(10, 20) }},
		"what is void is taken up first":    {waiting: 5, unspent: 5, before: func(w *testAccount) { w.take(10, 2); w.advance(2 * time.Minute) }},
		"and something new behind it":       {waiting: 12, fresh: 4, unspent: 8, before: func(w *testAccount) { w.take(10, 2); w.advance(2 * time.Minute) }},
		"and refunds of others between":     {waiting: 12, fresh: 1, unspent: 8, refund: 3, before: refunded},
		"and no more refunds than wanted":   {waiting: 9, unspent: 8, refund: 1, before: refunded},
		"what was not returned after all":   {waiting: 5, fresh: 12, unspent: 8, before: aborted(false)},
		"not what may have been returned":   {waiting: 5, fresh: 20, before: aborted(true)},
		"ahead, after 4 in a minute":        {fresh: 4, before: func(w *testAccount) { w.pace(2, 30*time.Second, 16); w.pace(2, time.Second, 16) }},
		"not ahead, after 3 in a minute":    {before: func(w *testAccount) { w.pace(3, time.Second, 16) }},
		"ahead, at most twice the last":     {fresh: 6, before: func(w *testAccount) { w.pace(7, time.Second, 3) }},
		"ahead, as many as a fast one uses": {fresh: 40, before: func(w *testAccount) { w.pace(45, time.Second, 20) }},
		"ahead, at most those of a minute":  {fresh: 60, before: func(w *testAccount) { w.pace(70, time.Second, 40) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newClusterTestAccount(t)
			c.before(w)
			switch lease := w.next(c.waiting); {
			case lease == nil:
				if c.fresh+c.unspent+c.refund > 0 {
					t.Errorf("no lease, want %d new ones, %d from before, %d refunds", c.fresh, c.unspent, c.refund)
				}
			case lease.Count != c.fresh || lease.Unspent != c.unspent || lease.Refunded != c.refund || c.fresh+c.unspent+c.refund == 0:
				t.Errorf("%d new ones, %d from before, %d refunds, want %d, %d, %d", lease.Count, lease.Unspent, lease.Refunded, c.fresh, c.unspent, c.refund)
			}
		})
	}
}

// A leader grants at most half, rounded up, of what an ask and the other nodes leave of the minute, and nothing to an
// ask that is not newer than the node's newest event in the log.
func TestL1_L2_WhatALeaderGrants(t *testing.T) {
	const newest = time.Minute // the newest ask of the node in the log
	for name, c := range map[string]struct {
		ask    Leased
		others int
		want   int // new ones; 0: nothing is granted
		day    int // of the ask, from today on
	}{
		"no other node":               {Leased{Count: 60, Monotonic: newest + 1}, 0, 60, 0},
		"others have half":            {Leased{Count: 60, Monotonic: newest + 1}, 30, 15, 0},
		"others, and what was spent":  {Leased{Count: 60, Monotonic: newest + 1, RecentAdmitted: 4}, 30, 13, 0},
		"others, and what is unspent": {Leased{Count: 60, Monotonic: newest + 1, RecentAdmitted: 4, Unspent: 6}, 30, 10, 0},
		"the ask is the newest":       {Leased{Count: 60, Monotonic: newest}, 0, 0, 0},
		"its day is over":             {Leased{Count: 60, Monotonic: newest + 1}, 0, 60, -1},
		"more than the day has left":  {Leased{Count: 2 * defaultPolicy.DefaultQuota.Day, Monotonic: newest + 1}, 0, defaultPolicy.DefaultQuota.Day - 1, 0},
	} {
		w := newClusterTestAccount(t)
		w.account.Apply(&Leased{Account: 1, Day: w.account.today(w.now), Count: 1, Node: 3, Monotonic: newest}, w.now)
		if c.others > 0 {
			w.others(0, c.others)
		}
		today := w.account.today(w.now)
		c.ask.Account, c.ask.Node, c.ask.Day = 1, 3, today.AddDays(c.day)
		grant, _ := w.account.Grant(&c.ask, w.now, defaultPolicy).(*Leased)
		if (grant != nil) != (c.want > 0) || grant != nil && (grant.Count != c.want || grant.Day != today) {
			t.Errorf("%s: %+v, want %d of %s", name, grant, c.want, today)
		}
		back := &Returned{Account: 1, Node: 3, Day: c.ask.Day, Monotonic: c.ask.Monotonic}
		if refused := w.account.Grant(back, w.now, defaultPolicy) == nil; refused != (c.ask.Monotonic <= newest) {
			t.Errorf("%s: a return of that time is refused: %t", name, refused)
		}
	}
}

// aborted has a return of eight that failed, or may have failed.
func aborted(unknown bool) func(w *testAccount) {
	return func(w *testAccount) {
		w.take(10, 2)
		w.pace(18, time.Second, 10)
		w.account.Abort(w.account.Return(w.now), unknown)
	}
}

// refunded has eight void requests and three that were refunded.
func refunded(w *testAccount) {
	w.take(10, 2)
	w.advance(2 * time.Minute)
	w.account.days.find(w.account.today(w.now)).refunded = 3
}

// A node returns its lease once, after idleReturnAfter without requests; a spent lease only when it is large.
func TestL1_L2_WhenANodeReturns(t *testing.T) {
	for name, c := range map[string]struct {
		before  func(w *testAccount)
		returns bool
		unspent int
	}{
		"at once":                  {before: func(w *testAccount) { w.take(10, 2) }},
		"a moment before its time": {before: func(w *testAccount) { w.take(10, 2); w.advance(idleReturnAfter - 1) }},
		"at its time":              {before: func(w *testAccount) { w.take(10, 2); w.advance(idleReturnAfter) }, returns: true, unspent: 8},
		"after a younger lease":    {before: younger(idleReturnAfter - 1)},
		"when that is old as well": {before: younger(idleReturnAfter), returns: true, unspent: 18},
		"after a younger request": {before: func(w *testAccount) {
			w.take(10, 2)
			w.advance(idleReturnAfter)
			w.use()
			w.advance(idleReturnAfter - 1)
		}},
		"with a lease on its way": {before: func(w *testAccount) {
			w.take(10, 2)
			w.advance(idleReturnAfter)
			w.next(20)
			w.account.askedAt = 0
		}},
		"with a return on its way":    {before: func(w *testAccount) { w.take(10, 2); w.advance(idleReturnAfter); w.account.NextReturn(w.now) }},
		"with nothing left, and few":  {before: func(w *testAccount) { w.take(7, 7); w.advance(idleReturnAfter) }},
		"with nothing left, and many": {before: func(w *testAccount) { w.take(8, 8); w.advance(idleReturnAfter) }, returns: true},
		"of a single node":            {before: func(w *testAccount) { w.take(10, 2); w.advance(idleReturnAfter); w.account.SetNode(0) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newClusterTestAccount(t)
			c.before(w)
			back := w.account.NextReturn(w.now)
			if c.returns != (back != nil) || back != nil && back.Unspent != c.unspent {
				t.Errorf("%+v, want %t with %d", back, c.returns, c.unspent)
			}
		})
	}
}

// younger has a lease that was spent in part, one ten seconds later, and some time more.
func younger(rest time.Duration) func(w *testAccount) {
	return func(w *testAccount) {
		w.take(10, 2)
		w.advance(10 * time.Second)
		lease := w.next(18)
		w.account.Apply(lease, w.now)
		w.advance(rest)
	}
}

func (w *testAccount) use() {
	w.t.Helper()
	if result, _ := w.account.Admit(testKey, w.now, defaultPolicy); !result.Admitted {
		w.t.Fatalf("not admitted: %+v", result)
	}
}

// clusterDay is a cluster without faults.
type clusterDay struct {
	*quotaModel
	asked  int
	before int // records of the log before
}

func newClusterDay() *clusterDay {
	w := newQuotaModel(func(int) int { return 0 }, false, quotaBug{})
	w.policy = defaultPolicy
	return &clusterDay{quotaModel: w, before: len(w.log)}
}

// pass lets time pass in steps of a tenth of a second, which is how long a lease takes to reach all nodes. ask returns
// the nodes that have a request in a step.
func (d *clusterDay) pass(t *testing.T, span time.Duration, ask func(step int) []int) {
	t.Helper()
	for step := range int(span / (100 * time.Millisecond)) {
		d.real += 100 * time.Millisecond
		for _, i := range ask(step) {
			d.asked++
			d.nodes[i].request()
		}
		for _, n := range d.nodes {
			if n.commit(); step%50 == 0 {
				n.returnIdle()
			}
		}
		for _, n := range d.nodes {
			n.deliver(len(d.log))
		}
		if d.fault != "" {
			t.Fatal(d.fault)
		}
	}
}

// An account that uses one node gets its whole quota; one that uses several gets most of it.
func TestL2_AClusterAdmitsWhatItMay(t *testing.T) {
	const minutes = 10
	random := rand.New(rand.NewPCG(9, 0))
	for name, c := range map[string]struct {
		ask     func(step int) []int
		atLeast float64 // of what was asked for, or of the limit
		records float64 // for each request, at most
	}{
		"one node, as fast as it can":        {func(int) []int { return []int{0} }, 0.95, 0.3},
		"one node, once a second":            {func(step int) []int { return []int{0}[:when(step%10 == 0)] }, 0.95, 0.3},
		"one node, bursts":                   {func(step int) []int { return []int{0}[:when(step%600 < 50)] }, 0.95, 0.3},
		"one node, now and then":             {func(step int) []int { return []int{0}[:when(step%300 == 0)] }, 1, 1},
		"two nodes, as fast as they can":     {func(int) []int { return []int{0, 1} }, 0.5, 1.2},
		"three nodes, as fast as they can":   {func(int) []int { return []int{0, 1, 2} }, 0.5, 1.5},
		"two nodes in turn, 40 a minute":     {func(step int) []int { return []int{step / 15 % 2}[:when(step%15 == 0)] }, 0.9, 1.2},
		"three nodes by chance, 40 a minute": {func(step int) []int { return []int{random.IntN(3)}[:when(step%15 == 0)] }, 0.9, 1.2},
		"one node, then another": {func(step int) []int {
			return []int{when(step > 3000)}[:when(step%15 == 0)]
		}, 0.9, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			d := newClusterDay()
			d.pass(t, minutes*time.Minute, c.ask)
			most, records := min(d.asked, minutes*MinuteLimitDefault), len(d.log)-d.before
			t.Logf("%d asked, %d admitted of %d, %d records, %d void", d.asked, d.counts["admitted"], most, records, d.counts["void"])
			if float64(d.counts["admitted"]) < c.atLeast*float64(most) {
				t.Errorf("%d admitted of %d", d.counts["admitted"], most)
			}
			if float64(records) > c.records*float64(d.counts["admitted"]) {
				t.Errorf("%d records for %d requests", records, d.counts["admitted"])
			}
		})
	}
}

// A caller with enough requests gets the whole day's quota, on any number of nodes.
func TestL1_AClusterAdmitsTheWholeDay(t *testing.T) {
	random := rand.New(rand.NewPCG(10, 0))
	for name, ask := range map[string]func(step int) []int{
		"one node":    func(int) []int { return []int{0} },
		"two nodes":   func(int) []int { return []int{0, 1} },
		"three nodes": func(step int) []int { return []int{random.IntN(3)}[:when(step%7 == 0)] },
	} {
		t.Run(name, func(t *testing.T) {
			d := newClusterDay()
			d.pass(t, 30*time.Minute, ask)
			if d.counts["admitted"] != DayLimitDefault {
				t.Errorf("%d admitted", d.counts["admitted"])
			}
			if result, _ := d.nodes[2].account.Admit(testKey, d.nodes[2].now(), d.policy); result.DenyCode != engine.CodeQuotaExceeded {
				t.Errorf("another node says %+v", result)
			}
		})
	}
}

// newClusterAccount is an account with a key on a node of a cluster.
func newClusterAccount(node engine.NodeID, now ClockReading) *Account {
	account := newTestAccount(nil, now.Wall).account
	account.SetNode(node)
	account.Resume(now)
	return account
}

func later(now ClockReading, span time.Duration) ClockReading {
	now.Wall, now.Monotonic = now.Wall.Add(span), now.Monotonic+span
	return now
}

// The minute window agrees with a look at each later moment: Remaining is never more than what the node can know to be
// left, and rises at Reset, not before.
func TestL3_L5_ClusterMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := ClockReading{Wall: noon, Monotonic: time.Hour}
		a, limit := newClusterAccount(2, now), rapid.IntRange(1, 12).Draw(t, "limit")
		for range rapid.IntRange(1, 12).Draw(t, "facts") {
			now = later(now, time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds"))*time.Second)
			if a.minute.expire(now); rapid.Bool().Draw(t, "own") {
				a.minute.add(now)
				continue
			}
			a.setLease(LeaseState{
				Node:           engine.NodeID(rapid.IntRange(1, 4).Draw(t, "node")),
				RecentAdmitted: rapid.IntRange(0, 5).Draw(t, "recent"), Count: rapid.IntRange(0, 5).Draw(t, "tokens"),
			}, now)
		}
		plain := func(at ClockReading) int {
			counted := *a
			counted.minute.admitted = append([]time.Duration{}, a.minute.admitted...)
			counted.minute.expire(at)
			return max(0, limit-len(counted.minute.active())-counted.nodeLeases.othersAdmittedMax(counted.node, at.Monotonic))
		}
		w := a.clusterMinute(limit, now)
		if w.Remaining != plain(now) {
			t.Fatalf("%d remain, want %d", w.Remaining, plain(now))
		}
		wait := w.Reset.Sub(now.Wall)
		if used := len(a.minute.active()) + a.nodeLeases.othersAdmittedMax(a.node, now.Monotonic); used > 0 && plain(later(now, wait)) <= w.Remaining {
			t.Fatalf("after %s no more than %d remain", wait, w.Remaining)
		}
		for span := time.Duration(0); span < wait; span += time.Second {
			if plain(later(now, span)) > w.Remaining {
				t.Fatalf("more than %d remain after %s, not only after %s", w.Remaining, span, wait)
			}
		}
	})
}

// A node may spend a lease for LeaseSpan after it asked for it, by either clock and however late it was durable.
func TestL1_LeasesOfAClusterRunOut(t *testing.T) {
	now := ClockReading{Wall: noon, Monotonic: time.Hour}
	a := newClusterAccount(1, now)
	lease := a.NextLease(testKey, now, defaultPolicy, 5)
	if lease == nil || lease.Count != 5 || lease.Node != 1 {
		t.Fatalf("%+v", lease)
	}
	a.Apply(lease, now)
	last := later(now, LeaseSpan-time.Nanosecond)
	if v, needsLease := a.Admit(testKey, last, defaultPolicy); !v.Admitted || needsLease {
		t.Errorf("%+v, %v", v, needsLease)
	}
	slept := ClockReading{Wall: now.Wall.Add(LeaseSpan), Monotonic: now.Monotonic + time.Second}
	if _, needsLease := a.Admit(testKey, slept, defaultPolicy); !needsLease {
		t.Error("a lease is spent after its time by the wall clock: the machine may have slept")
	}
	setBack := ClockReading{Wall: now.Wall, Monotonic: now.Monotonic + LeaseSpan}
	if _, needsLease := a.Admit(testKey, setBack, defaultPolicy); !needsLease {
		t.Error("a lease is spent after its time by the monotonic clock: the wall clock was set back")
	}
	if _, needsLease := a.Admit(testKey, later(now, LeaseSpan), defaultPolicy); !needsLease {
		t.Fatal("a lease is spent after its time")
	}
	now.Wall = engine.NextMidnight(noon).Add(-time.Second)
	a = newClusterAccount(1, now)
	a.Apply(a.NextLease(testKey, now, defaultPolicy, 5), now)
	now = later(now, time.Second)
	a.Apply(&Leased{Account: 1, Day: now.today(), Count: 1, Node: 2}, now)
	if _, needsLease := a.Admit(testKey, now, defaultPolicy); !needsLease {
		t.Error("a lease is spent on the next day, which does not count it")
	}
}

// TestL1_RefundsStayInTheirDay: an ask from before midnight that is charged to the next day refunds nothing there.
func TestL1_RefundsStayInTheirDay(t *testing.T) {
	w := newClusterTestAccount(t)
	w.now.Wall = engine.NextMidnight(noon).Add(-2 * time.Second)
	w.take(5, 3)
	for range 3 {
		w.account.Refund(w.account.WithDay(w.now))
	}
	w.advance(time.Second)
	ask := w.next(10)
	w.advance(time.Second)
	w.others(0, 1)
	grant := w.account.Grant(ask, w.now, defaultPolicy).(*Leased)
	w.account.Apply(grant, w.now)
	admitted := 0
	for range DayLimitDefault {
		if result, needsLease := w.account.Admit(testKey, w.now, defaultPolicy); result.Admitted && !needsLease {
			admitted++
		}
	}
	if ask.Refunded != 3 || grant.Day != w.now.today() || admitted != grant.Count {
		t.Errorf("%d admitted of a lease of %d, with %d refunds of the day before", admitted, grant.Count, ask.Refunded)
	}
}

// TestL1_AbortOfAnEarlierAsk: an event that this process no longer waits for neither ends the newer ask nor gives
// requests back again.
func TestL1_AbortOfAnEarlierAsk(t *testing.T) {
	w := newClusterTestAccount(t)
	w.take(10, 2)
	earlier := []Event{w.account.Return(w.now)}
	w.account.Abort(earlier[0], false)
	w.advance(time.Second)
	earlier = append(earlier, w.next(20))
	w.account.Abort(earlier[1], false)
	w.advance(time.Second)
	w.next(20)
	for _, event := range earlier {
		w.account.Abort(event, false)
		if unspent := w.account.days.unspent(); unspent != 8 || !w.account.Asking() {
			t.Errorf("after the abort of an earlier %T %d are unspent; asking: %t", event, unspent, w.account.Asking())
		}
	}
}

// A log moves from a single node to a cluster and back: earlier leases count on both sides.
func TestL2_FromOneNodeToAClusterAndBack(t *testing.T) {
	now := ClockReading{Wall: noon, Monotonic: time.Hour}
	single := newClusterAccount(0, now)
	for range 3 {
		single.Apply(&Leased{Account: 1, Day: engine.DateOf(noon), Count: 10, Monotonic: now.Monotonic}, now)
	}
	member := Restore(single.State())
	member.SetNode(1)
	member.Resume(now)
	if left := member.Usage(now, defaultPolicy).Minute.Remaining; left != 30 {
		t.Errorf("%d remain of the minute after one node", left)
	}
	member.Apply(member.NextLease(testKey, now, defaultPolicy, 7), now)
	other := Restore(member.State())
	other.SetNode(2)
	started := later(now, time.Hour) // the log does not show the age of leases
	other.Resume(started)
	if left := other.Usage(started, defaultPolicy).Minute.Remaining; left != 30-7 {
		t.Errorf("%d remain of the minute on another node", left)
	}
	back := Restore(member.State())
	back.Resume(now)
	if v := back.Usage(now, defaultPolicy); v.Minute.Remaining != 30-7 || v.Day.Remaining != 1000-37 {
		t.Errorf("%+v back on one node", v)
	}
	if v := back.Usage(later(now, 122*time.Second), defaultPolicy); v.Minute.Remaining != 60 {
		t.Errorf("%+v two minutes later", v)
	}
	back.Apply(&Returned{Account: 1, Day: engine.DateOf(noon), RecentAdmitted: 4, Monotonic: now.Monotonic}, now)
	if state := back.State(); len(state.Leases) != 2 || state.Leases[0].Node != 0 {
		t.Errorf("%+v after a clean stop", state.Leases)
	}
}

// Remote events do not change what is pending.
func TestApplyKeepsPendingDecisions(t *testing.T) {
	now := ClockReading{Wall: noon, Monotonic: time.Hour}
	a := newClusterAccount(1, now)
	if _, err := a.CreateKey(KeyRecord{ID: "k2"}); err != nil {
		t.Fatal(err)
	}
	lease := a.NextLease(testKey, now, defaultPolicy, 1)
	a.Apply(&KeyCreated{1, KeyRecord{ID: "k3"}}, now)
	a.Apply(&Leased{Account: 1, Day: engine.DateOf(noon), Count: 4, Node: 2}, now)
	a.Apply(&Suspended{Account: 1, Reason: "abuse", At: noon}, now)
	if a.keysPending != 1 || !a.asking || lease == nil || a.Record().SuspendedAt.IsZero() {
		t.Errorf("%+v", a)
	}
}

// An admission in a cluster does not allocate.
func TestAdmissionInAClusterAllocatesNothing(t *testing.T) {
	now := ClockReading{Wall: noon, Monotonic: time.Hour}
	a, policy := newClusterAccount(1, now), QuotaPolicy{DefaultQuota: Quota{1 << 20, 1 << 20}, LeaseSize: 1 << 16}
	for node := range engine.NodeID(4) {
		a.Apply(&Leased{Account: 1, Day: engine.DateOf(noon), Count: 3, Node: node + 2, RecentAdmitted: 7}, now)
	}
	a.Apply(a.NextLease(testKey, now, policy, 1<<16), now)
	a.minute.admitted = make([]time.Duration, 0, 1<<13)
	if allocated := testing.AllocsPerRun(1000, func() {
		if v, _ := a.Admit(testKey, now, policy); !v.Admitted || a.NextLease(testKey, now, policy, 0) != nil {
			t.Fatalf("%+v", v)
		}
	}); allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}

func granted(day engine.Date, shard uint64, at time.Duration) DayGranted {
	return DayGranted{Shard: shard, Shards: 2, Day: day, Size: 16, Monotonic: at}
}

func TestL1_GrantsOfADay(t *testing.T) {
	const today = engine.Date(739_000)
	own := (&DayGrants{}).Apply(granted(today, 1, time.Hour), true)
	earlier := (&DayGrants{}).Apply(DayGranted{Shard: 3, Shards: 4, Day: today, Size: 16}, false)
	for name, c := range map[string]struct {
		grants         *DayGrants
		account        uint64
		day            engine.Date
		covers, usable bool
	}{
		"of this process":            {own, 7, today, true, true},
		"of another shard":           {own, 8, today, false, false},
		"of another day":             {own, 7, today + 1, false, false},
		"and of an earlier process":  {earlier.Apply(granted(today, 1, time.Hour), true), 7, today, true, false},
		"of an earlier process":      {own.Earlier(2 * time.Hour), 7, today, true, false},
		"behind a newer one":         {own.Apply(granted(today+1, 1, 2*time.Hour), true), 7, today, true, false},
		"the newer one":              {own.Apply(granted(today+1, 1, 2*time.Hour), true), 7, today + 1, true, true},
		"beside that of a shard":     {own.Apply(granted(today+1, 0, 2*time.Hour), true), 7, today, true, true},
		"while the node stops":       {own.End(), 7, today, true, false},
		"taken back":                 {own.Apply(DayGranted{Shard: 1, Shards: 2, Day: today, TakenBack: true}, true), 7, today, false, false},
		"another shard's taken back": {own.Apply(DayGranted{Shard: 0, Shards: 2, Day: today, TakenBack: true}, true), 7, today, true, true},
	} {
		if usable := c.grants.usable(c.account, c.day); c.grants.Covers(c.account, c.day) != c.covers || usable != c.usable {
			t.Errorf("%s: covers %t, usable %t", name, !c.covers, usable)
		}
	}
	if day := own.Newest(); day != today {
		t.Errorf("the newest is of %s", day)
	}
	const ended = 2 * time.Hour
	if spent := own.Earlier(ended).spentMax(7, &dayCounts{}, ended+MinuteSpan); spent != 0 {
		t.Errorf("a minute after the process %d of its grant still count", spent)
	}
	both := earlier.Apply(granted(today, 1, time.Hour), true)
	if first, second := both.OfShard(0, 2), both.OfShard(1, 2); len(first.Grants) != 1 || len(second.Grants) != 1 {
		t.Errorf("the shards of a snapshot have %+v and %+v", first, second)
	}
}

// Of more days than are kept the earliest is closed: an account without an event since might have spent its grant.
func TestL1_GrantsOfADay_DroppedDaysAreClosed(t *testing.T) {
	const first = engine.Date(739_000)
	grants := &DayGrants{}
	for i := range engine.Date(dayGrantsMax + 1) {
		grants = grants.Apply(granted(first+i, 1, time.Duration(i)), false)
	}
	if len(grants.Grants) != dayGrantsMax || grants.ClosedUntil != first {
		t.Fatalf("%+v", grants)
	}
	a, policy := New(1), defaultPolicy
	a.Apply(&KeyCreated{1, KeyRecord{ID: "k", Digest: testKey, CreatedAt: noon}}, ClockReading{})
	policy.Grants = grants
	now := ClockReading{Wall: first.Start().Add(time.Hour), Monotonic: time.Hour}
	if result, needsLease := a.Admit(testKey, now, policy); result.Admitted || needsLease || result.Day.Remaining != 0 {
		t.Errorf("%+v, needs a lease %t", result, needsLease)
	}
}

// The whole grant counts, also if the quota was lowered since: it may be raised again.
func TestL1_GrantsOfADay_CountUnderALowerQuota(t *testing.T) {
	a, policy := New(1), defaultPolicy
	policy.Grants = (&DayGrants{}).Apply(granted(engine.DateOf(noon), 1, 0), false)
	now := ClockReading{Wall: noon, Monotonic: time.Hour}
	for _, quota := range []Quota{{2, 2}, {20, 20}} {
		a.Apply(&QuotaSet{Account: 1, Quota: quota}, ClockReading{})
		if left := a.Usage(now, policy).Day.Remaining; left != max(0, quota.Day-16) {
			t.Errorf("%d remain of %d", left, quota.Day)
		}
	}
}

// Only the newest grant is spent without an event. Here the clock is set back across midnight and the grant of that day
// is made; on the later day the account, which has begun with it, must not go on without an event: after a crash the
// request would be missing in the minute.
func TestL1_GrantsOfADay_AnOlderOneNeedsAnEvent(t *testing.T) {
	a, policy := New(1), defaultPolicy
	a.Apply(&KeyCreated{1, KeyRecord{ID: "k", Digest: testKey, CreatedAt: noon}}, ClockReading{})
	today := engine.DateOf(noon)
	policy.Grants = (&DayGrants{}).Apply(granted(today, 1, 0), true)
	if result, _ := a.Admit(testKey, ClockReading{Wall: noon, Monotonic: time.Second}, policy); !result.Admitted {
		t.Fatalf("%+v", result)
	}
	policy.Grants = policy.Grants.Apply(granted(today-1, 1, time.Hour), true)
	later := ClockReading{Wall: noon, Monotonic: time.Hour + 30*time.Second}
	if _, needsLease := a.Admit(testKey, later, policy); !needsLease {
		t.Fatal("the older grant is spent without an event")
	}
	a.Apply(a.NextLease(testKey, later, policy, 1), ClockReading{})
	if result, _ := a.Admit(testKey, later, policy); !result.Admitted {
		t.Fatalf("%+v", result)
	}
	a.Resume(later) // as after a crash
	a.ResumeGrants(later, policy.Grants.Earlier(later.Monotonic))
	// The lease is of 17 and includes the older grant, so that only the newer one of 16 counts beside it.
	if left := a.Usage(later, policy).Minute.Remaining; left != MinuteLimitDefault-17-16 {
		t.Errorf("%d remain of the minute after the crash", left)
	}
}
