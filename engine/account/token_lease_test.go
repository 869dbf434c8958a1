package account

import (
	"testing"
	"time"
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

// pace makes the account one with requests in the last minute, which has spent a number of its last lease in some time.
func (w *testAccount) pace(minute int, span time.Duration, size, spent int) {
	for range minute {
		w.account.minute.add(w.now)
	}
	w.account.tokens().rate = spendRate{w.now.Monotonic - span, size, spent}
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
		"others, and what was spent here":   {waiting: 100, fresh: 13, before: func(w *testAccount) { w.take(5, 5); w.others(10, 20) }},
		"others, and what is left here":     {waiting: 100, fresh: 10, unspent: 5, before: func(w *testAccount) { w.take(10, 5); w.others(10, 20) }},
		"what is void is taken up first":    {waiting: 5, unspent: 5, before: func(w *testAccount) { w.take(10, 2); w.advance(2 * time.Minute) }},
		"and something new behind it":       {waiting: 12, fresh: 4, unspent: 8, before: func(w *testAccount) { w.take(10, 2); w.advance(2 * time.Minute) }},
		"and refunds of others between":     {waiting: 12, fresh: 1, unspent: 8, refund: 3, before: refunded},
		"and no more refunds than wanted":   {waiting: 9, unspent: 8, refund: 1, before: refunded},
		"ahead, after 4 in a minute":        {fresh: 4, before: func(w *testAccount) { w.pace(4, leaseTargetSpan, 16, 4) }},
		"not ahead, after 3 in a minute":    {before: func(w *testAccount) { w.pace(3, time.Second, 16, 16) }},
		"ahead, at most twice the last":     {fresh: 6, before: func(w *testAccount) { w.pace(4, time.Second, 3, 3) }},
		"ahead, as many as a fast one uses": {fresh: 40, before: func(w *testAccount) { w.pace(4, time.Second, 20, 20) }},
		"ahead, at most those of a minute":  {fresh: 60, before: func(w *testAccount) { w.pace(4, time.Second, 40, 40) }},
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
