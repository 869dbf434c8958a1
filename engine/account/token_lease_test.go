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
	w.account.Apply(lease)
	for range spent {
		if result, needsLease := w.account.Admit(testKey, w.now, defaultPolicy); needsLease || !result.Admitted {
			w.t.Fatalf("not admitted: %+v", result)
		}
	}
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
			w.account.leaseAskedAt = 0
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
		w.account.Apply(lease)
		w.advance(rest)
	}
}

func (w *testAccount) use() {
	w.t.Helper()
	if result, _ := w.account.Admit(testKey, w.now, defaultPolicy); !result.Admitted {
		w.t.Fatalf("not admitted: %+v", result)
	}
}
