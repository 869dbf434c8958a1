package account

import (
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

func granted(day engine.Date, shard uint64, at time.Duration) DayGranted {
	return DayGranted{Shard: shard, Shards: 2, Day: day, Size: 16, Monotonic: at}
}

func TestL1_GrantsOfADay(t *testing.T) {
	const today = engine.Date(739_000)
	own := (&DayGrants{}).Apply(granted(today, 1, time.Hour), true)
	for name, c := range map[string]struct {
		grants         *DayGrants
		account        uint64
		day            engine.Date
		covers, usable bool
	}{
		"of this process":            {own, 7, today, true, true},
		"of another shard":           {own, 8, today, false, false},
		"of another day":             {own, 7, today + 1, false, false},
		"of an earlier process":      {own.Earlier(2 * time.Hour), 7, today, true, false},
		"behind a newer one":         {own.Apply(granted(today+1, 1, 2*time.Hour), true), 7, today, true, false},
		"the newer one":              {own.Apply(granted(today+1, 1, 2*time.Hour), true), 7, today + 1, true, true},
		"beside that of a shard":     {own.Apply(granted(today+1, 0, 2*time.Hour), true), 7, today, true, true},
		"while the node stops":       {own.End(), 7, today, true, false},
		"taken back":                 {own.Apply(DayGranted{Shard: 1, Shards: 2, Day: today, TakenBack: true}, true), 7, today, false, false},
		"another shard's taken back": {own.Apply(DayGranted{Shard: 0, Shards: 2, Day: today, TakenBack: true}, true), 7, today, true, true},
	} {
		if _, usable := c.grants.find(c.account, c.day); c.grants.Covers(c.account, c.day) != c.covers || usable != c.usable {
			t.Errorf("%s: covers %t, usable %t", name, !c.covers, usable)
		}
	}
	if day := own.Newest(); day != today {
		t.Errorf("the newest is of %s", day)
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

// A grant that an earlier process made counts as spent, also in the first event of the account: a second crash must
// not forget it.
func TestL1_GrantsOfADay_TheNextLeaseIncludesTheGrant(t *testing.T) {
	a, policy := New(1), defaultPolicy
	a.Apply(&KeyCreated{1, KeyRecord{ID: "k", Digest: testKey, CreatedAt: noon}}, ClockReading{})
	today := engine.DateOf(noon)
	policy.Grants = (&DayGrants{}).Apply(granted(today, 1, 0), false)
	now := ClockReading{Wall: noon, Monotonic: time.Hour}
	if _, needsLease := a.Admit(testKey, now, policy); !needsLease {
		t.Fatal("admitted from the grant of an earlier process")
	}
	lease := a.NextLease(testKey, now, policy, 1)
	if lease == nil || lease.Count != 32 || lease.Unspent != 0 {
		t.Fatalf("%+v", lease)
	}
	a.Apply(lease, ClockReading{})
	if spent := 1000 - a.Usage(now, policy).Day.Remaining; spent != 16 || a.days.get(today).unspent() != 16 {
		t.Errorf("%d spent, %d unspent", spent, a.days.get(today).unspent())
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
	later := ClockReading{Wall: noon, Monotonic: 2 * time.Hour}
	if _, needsLease := a.Admit(testKey, later, policy); !needsLease {
		t.Fatal("the older grant is spent without an event")
	}
	a.Apply(a.NextLease(testKey, later, policy, 1), ClockReading{})
	if result, _ := a.Admit(testKey, later, policy); !result.Admitted {
		t.Fatalf("%+v", result)
	}
	a.Resume(later) // as after a crash
	a.ResumeGrants(later, policy.Grants.Earlier(later.Monotonic))
	if left := a.Usage(later, policy).Minute.Remaining; left > MinuteLimitDefault-1 {
		t.Errorf("%d remain of the minute after the crash", left)
	}
}
