package account

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

func digestOf(text string) Digest { return SecretOf(text).Digest() }

// create adds a durable key.
func create(t *testing.T, account *Account, id string) {
	t.Helper()
	event, err := account.CreateKey(KeyRecord{ID: id, Digest: digestOf(id), CreatedAt: noon})
	must(t, err)
	account.Written(event)
	account.Apply(event, ClockReading{})
}

func revoke(t *testing.T, account *Account, id string) {
	t.Helper()
	event, err := account.RevokeKey(id, "owner", noon)
	if err != nil || event == nil {
		t.Fatalf("revoke %s: %v, %v", id, event, err)
	}
	account.Apply(event, ClockReading{})
}

func TestK5_TwoActiveKeys(t *testing.T) {
	account := New(1)
	create(t, account, "a")
	if _, err := account.CreateKey(KeyRecord{ID: "lost"}); err != nil {
		t.Errorf("a second key on its way: %v", err)
	}
	if _, err := account.CreateKey(KeyRecord{ID: "c"}); codeOf(err) != engine.CodeKeyLimitReached {
		t.Errorf("a third key: %v", err)
	}
	account.Written(&KeyCreated{})
	create(t, account, "b")
	if _, err := account.CreateKey(KeyRecord{ID: "c"}); codeOf(err) != engine.CodeKeyLimitReached {
		t.Errorf("a third key: %v", err)
	}
	revoke(t, account, "a")
	create(t, account, "c")
	if event, err := account.RevokeKey("a", "owner", noon.Add(time.Hour)); event != nil || err != nil {
		t.Errorf("revoked again: %v, %v", event, err)
	}
	account.Apply(&KeyRevoked{1, "a", noon.Add(time.Hour), "owner"}, ClockReading{}) // two revocations side by side
	if _, err := account.RevokeKey("x", "owner", noon); codeOf(err) != engine.CodeNotFound {
		t.Errorf("an unknown key: %v", err)
	}
	record := account.Record()
	if len(record.Keys) != 3 || record.Keys[0].Active() || !record.Keys[0].RevokedAt.Equal(noon) || !record.Keys[1].Active() || !record.Keys[2].Active() {
		t.Errorf("%+v", record.Keys)
	}
}

func TestK5_RevokedKeysLeaveTheListAndStayRefused(t *testing.T) {
	account := New(1)
	create(t, account, "active")
	for i := range 3 * keysMax {
		create(t, account, fmt.Sprint(i))
		revoke(t, account, fmt.Sprint(i))
	}
	record := account.Record()
	if len(record.Keys) != keysMax || record.Keys[0].ID != "active" || record.Keys[keysMax-1].ID != fmt.Sprint(3*keysMax-1) {
		t.Errorf("%d keys, from %s", len(record.Keys), record.Keys[0].ID)
	}
	for i := range 3 * keysMax {
		result, needsLease := account.Admit(digestOf(fmt.Sprint(i)), ClockReading{Wall: noon}, defaultPolicy)
		if needsLease || result.Admitted || result.DenyCode != engine.CodeInvalidKey && result.DenyCode != engine.CodeRevokedKey {
			t.Errorf("key %d: %+v", i, result)
		}
	}
}

// A log with more active keys than allowed is applied as it is.
func TestAccountForgetsNoActiveKey(t *testing.T) {
	account := New(1)
	for i := range 2 * keysMax {
		account.Apply(&KeyCreated{1, KeyRecord{ID: fmt.Sprint(i)}}, ClockReading{})
	}
	if n := len(account.Record().Keys); n != 2*keysMax {
		t.Errorf("%d keys", n)
	}
}

func TestK6_WhyAKeyIsRefused(t *testing.T) {
	o := newTestAccount(t, noon)
	create(t, o.account, "other")
	revoke(t, o.account, "other")
	check := func(digest Digest, want engine.Code) {
		t.Helper()
		result, needsLease := o.account.Admit(digest, o.now, o.policy)
		if want == "" && (result.DenyCode != "" || !needsLease) || want != "" && (result.DenyCode != want || result.Admitted) {
			t.Errorf("%+v, want %q", result, want)
		}
	}
	check(testKey, "")
	check(Digest{}, engine.CodeInvalidKey)
	check(digestOf("other"), engine.CodeRevokedKey)
	o.account.Apply(&Suspended{1, "resale", noon, "ana"}, o.now)
	check(testKey, engine.CodeAccountSuspended)
	check(digestOf("other"), engine.CodeRevokedKey)
	if _, err := o.account.CreateKey(KeyRecord{ID: "more"}); engine.CodeOf(err) != engine.CodeAccountSuspended {
		t.Errorf("a suspended account gets a key: %v", err)
	}
	if record := o.account.Record(); record.Reason != "resale" || !record.SuspendedAt.Equal(noon) {
		t.Errorf("%+v", record)
	}
	o.account.Apply(&Restored{1, noon, "ana"}, o.now)
	check(testKey, "")
	if state := o.account.State(); len(state.Days) != 0 || state.Record.Reason != "" {
		t.Errorf("refusals left %+v", state)
	}
}

func TestKeysShareOneQuota(t *testing.T) {
	o := newTestAccount(t, noon)
	create(t, o.account, "other")
	o.admit(30)
	for range 30 {
		if v, needsLease := o.account.Admit(digestOf("other"), o.now, o.policy); needsLease {
			o.lease(1)
			_, _ = o.account.Admit(digestOf("other"), o.now, o.policy)
		} else if !v.Admitted {
			t.Fatalf("%+v", v)
		}
	}
	o.refuse(engine.CodeRateLimited, time.Minute)
}

// LastUsed is exact until a crash, and then as old as the last lease.
func TestK1_LastUsed(t *testing.T) {
	o := newTestAccount(t, noon)
	lastUsed := func(account *Account) time.Time { return account.Record().Keys[0].LastUsed }
	if !lastUsed(o.account).IsZero() {
		t.Error("used before the first request")
	}
	o.admit(1)
	o.advance(time.Hour)
	o.admit(3)
	if !lastUsed(o.account).Equal(noon.Add(time.Hour)) {
		t.Errorf("live %s", lastUsed(o.account))
	}
	if crashed := Restore(o.account.State()); !lastUsed(crashed).Equal(noon) {
		t.Errorf("after a crash %s", lastUsed(crashed))
	}
	o.restart()
	if !lastUsed(o.account).Equal(noon.Add(time.Hour)) {
		t.Errorf("after a stop %s", lastUsed(o.account))
	}
	if valid, unknown := o.account.Authenticate(testKey), o.account.Authenticate(Digest{}); valid != "" || unknown != engine.CodeInvalidKey {
		t.Errorf("a valid key is denied with %q, an unknown one with %q", valid, unknown)
	}
}

func TestAccountRecordIsACopy(t *testing.T) {
	o := newTestAccount(t, noon)
	before := o.account.Record()
	copied := o.account.Record()
	o.admit(5)
	revoke(t, o.account, "k1")
	if !reflect.DeepEqual(before, copied) {
		t.Errorf("a record changed: %+v", copied)
	}
	copied.Keys[0].ID = "changed"
	if o.account.Record().Keys[0].ID != "k1" {
		t.Error("a caller changed the account")
	}
}

func TestReturnSaysNothingTwice(t *testing.T) {
	o := newTestAccount(t, noon)
	if event := o.account.Return(o.now); event != nil {
		t.Errorf("nothing happened, and %+v", event)
	}
	o.admit(5)
	event := o.account.Return(o.now)
	if event.Unspent != LeaseSizeDefault-5 || event.RecentAdmitted != 5 || event.Day != engine.DateOf(noon) {
		t.Errorf("%+v", event)
	}
	if _, needsLease := o.account.Admit(testKey, o.now, o.policy); !needsLease {
		t.Error("what was given back is spent")
	}
	o.account.Apply(event, o.now)
	if event := o.account.Return(o.now); event != nil {
		t.Errorf("again %+v", event)
	}
}

// After a crash the requests of the last minute count, and at most one lease more.
func TestL2_ACrashCountsTheMinuteAndALease(t *testing.T) {
	for size := 1; size <= LeaseSizeDefault; size++ {
		o := newTestAccount(t, noon)
		o.policy = QuotaPolicy{DefaultQuota: Quota{1 << 30, 60}, LeaseSize: size}
		for range 1000 {
			o.admit(1)
			o.advance(time.Second)
		}
		crashed := Restore(o.account.State())
		crashed.Resume(o.now)
		if n := crashed.minute.count(); n < 59 || n > 60+size {
			t.Errorf("leases of %d: %d may have been admitted in the last minute, 59 were", size, n)
		}
	}
}

// Logs and snapshots of earlier versions do not say what was admitted before a lease; all leases of a minute count.
func TestL2_LeasesOfEarlierVersions(t *testing.T) {
	leased := func(second time.Duration, unspent, count int) *Leased {
		return &Leased{Account: 1, Day: engine.DateOf(noon), Count: count, Unspent: unspent, Monotonic: second * time.Second}
	}
	log := []*Leased{leased(100, 0, 16), leased(170, 4, 12), leased(180, 8, 8), leased(190, 0, 16)}
	a := New(1)
	for _, e := range log {
		a.Apply(e, ClockReading{Monotonic: e.Monotonic})
	}
	stored := Restore(State{Leases: []LeaseState{
		{Monotonic: 100 * time.Second, Count: 16}, {Monotonic: 170 * time.Second, Unspent: 4, Count: 12},
		{Monotonic: 180 * time.Second, Unspent: 8, Count: 8}, {Monotonic: 190 * time.Second, Count: 16},
	}})
	for second, want := range map[time.Duration]int{190: 52, 249: 52, 250: 16, 1000: 16} {
		for name, a := range map[string]*Account{"log": a, "snapshot": stored, "copy": Restore(stored.State())} {
			a.Resume(ClockReading{Wall: noon, Monotonic: second * time.Second})
			if n := a.minute.count(); n != want {
				t.Errorf("%s, second %d: %d count, want %d", name, second, n, want)
			}
		}
	}
}

func TestK7_NoticeIsFourteenDays(t *testing.T) {
	now := noon.Add(300 * time.Millisecond)
	tests := []struct {
		name string
		at   time.Time
		ok   bool
	}{
		{"14 days after the second that began", noon.Add(KeyNoticeMin), false}, // 0.3 s short
		{"14 days and a second", noon.Add(KeyNoticeMin + time.Second), true},
		{"the fraction is cut off", noon.Add(KeyNoticeMin + 999*time.Millisecond), false},
		{"a year", noon.AddDate(1, 0, 0), true},
		{"now", now, false},
		{"in the past", noon.AddDate(-1, 0, 0), false},
		{"never", time.Time{}, false},
	}
	for _, tt := range tests {
		event, err := KeyPolicy{}.Announce(tt.at, now, "ana")
		if (err == nil) != tt.ok {
			t.Errorf("%s: %+v, %v", tt.name, event, err)
			continue
		}
		if err != nil {
			var refusal *engine.Error
			if !errors.As(err, &refusal) || refusal.Code != engine.CodeInvalidParameters || event != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if event.AnnouncedAt != noon.UTC() || !event.RequiredAt.Equal(tt.at) || event.By != "ana" || event.RequiredAt.Sub(now) < KeyNoticeMin {
			t.Errorf("%s: %+v", tt.name, event)
		}
	}
	if event, err := (KeyPolicy{}).Announce(noon.Add(KeyNoticeMin), noon, "ana"); err != nil {
		t.Errorf("exactly 14 days: %v, %v", event, err)
	}
}

func TestK7_StatesOfTheKeyPolicy(t *testing.T) {
	required := noon.Add(KeyNoticeMin)
	event, err := KeyPolicy{}.Announce(required.In(engine.Location()), noon, "ana")
	must(t, err)
	none, announced := KeyPolicy{}, event.KeyPolicy
	for _, tt := range []struct {
		name              string
		transition        KeyPolicy
		now               time.Time
		pending, required bool
	}{
		{"nothing announced", none, noon, false, false},
		{"announced", announced, noon, true, false},
		{"the instant before", announced, required.Add(-1), true, false},
		{"the instant", announced, required, false, true},
		{"later", announced, required.AddDate(1, 0, 0), false, true},
	} {
		if got := tt.transition.Pending(tt.now); got != tt.pending {
			t.Errorf("%s: pending %t", tt.name, got)
		}
		if got := tt.transition.Required(tt.now); got != tt.required {
			t.Errorf("%s: required %t", tt.name, got)
		}
		if withdrawn, err := tt.transition.Withdraw(tt.now, "ana"); (err == nil) != tt.pending || (withdrawn != nil) != tt.pending {
			t.Errorf("%s: withdrawn %v, %v", tt.name, withdrawn, err)
		}
		again, err := tt.transition.Announce(tt.now.Add(KeyNoticeMin+time.Second), tt.now, "eva")
		if (err == nil) == tt.required {
			t.Errorf("%s: announced again %v, %v", tt.name, again, err)
		}
	}
}
