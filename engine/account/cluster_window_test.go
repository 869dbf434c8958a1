package account

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tasard/tasard/engine"
)

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

// A request for which other nodes leave no room is refused without a lease, until their leases are old enough.
func TestL5_OthersLeaveNoRoom(t *testing.T) {
	now := ClockReading{Wall: noon, Monotonic: time.Hour}
	a := newClusterAccount(1, now)
	a.Apply(&Leased{Account: 1, Day: engine.DateOf(noon), Count: 20, Unspent: 10, Monotonic: 900 * time.Hour, Node: 2, RecentAdmitted: 30}, now)
	for _, c := range []struct {
		after, retry time.Duration
		remaining    int
	}{{0, 61 * time.Second, 0}, {60 * time.Second, time.Second, 0}, {61 * time.Second, 0, 30}, {120 * time.Second, 0, 30}, {121 * time.Second, 0, 60}} {
		at := later(now, c.after)
		if lease := a.NextLease(testKey, at, defaultPolicy, 0); lease != nil {
			t.Errorf("after %s %+v is leased", c.after, lease)
		}
		v := a.Usage(at, defaultPolicy)
		if v.Minute.Remaining != c.remaining || v.Day.Remaining != 1000-20 || v.RetryAfter != c.retry || v.Admitted != (c.remaining > 0) {
			t.Errorf("after %s %+v, want %d, %s", c.after, v, c.remaining, c.retry)
		}
	}
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
	if _, needsLease := a.Admit(testKey, later(now, LeaseSpan), defaultPolicy); !needsLease {
		t.Fatal("a lease is spent after its time")
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
	other.Resume(now)
	if left := other.Usage(now, defaultPolicy).Minute.Remaining; left != 30-7 {
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

// Remote events do not change the counts of pending decisions.
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
	r := NewRegistry([32]byte{1})
	r.ShareCodes()
	from := clientAddress(0)
	issued, err := r.RequestCode(idOf("a@b.do"), from, now)
	must(t, err)
	r.ApplyRemote(&CodeIssued{Email: idOf("t@b.do"), At: noon, Mailed: true, Sealed: CodeSeal{1}}, now)
	failed, _ := r.TryCode(idOf("t@b.do"), "12345678", digestOf("t"), from, now)
	r.ApplyRemote(&CodeIssued{Email: idOf("c@d.do"), At: noon}, now)
	r.ApplyRemote(&CodeFailed{Email: idOf("t@b.do"), At: noon}, now)
	if r.codesPending != 1 || r.triesPending != 1 || r.attemptCopy(idOf("t@b.do")).triesPending != 1 {
		t.Errorf("%d codes, %d tries", r.codesPending, r.triesPending)
	}
	r.Abort(failed)
	r.Abort(issued)
	if r.codesPending != 0 || r.triesPending != 0 {
		t.Errorf("%d codes, %d tries when all is void", r.codesPending, r.triesPending)
	}
	if _, err := r.requestCode(idOf("a@b.do"), from, now); err != nil {
		t.Errorf("a code that was void is refused: %v", err)
	}
	if codes := r.clients.get(ClientPrefix(from.Address)).codes.total(now.Monotonic); codes != 1 {
		t.Errorf("the client has asked %d times", codes)
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
