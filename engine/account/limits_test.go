package account

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// TestLimitsAreThoseOfTheContract repeats each limit as a number: tests that use its name would follow any change.
func TestLimitsAreThoseOfTheContract(t *testing.T) {
	for name, c := range map[string][2]int64{
		"requests of a day": {DayLimitDefault, 1000}, "of a minute": {MinuteLimitDefault, 60}, "the minute": {int64(MinuteSpan), 60e9},
		"requests of a lease": {LeaseSizeDefault, 16}, "days kept": {daysKept, 8}, "merged leases": {int64(leaseMergeSpan), 5e9},
		"active keys": {KeysActiveMax, 2}, "characters of a name": {KeyNameMax, 80}, "keys listed": {keysMax, 50},
		"life of a code": {int64(CodeLifetime), 600e9}, "tries of a code": {CodeTriesMax, 5}, "time between codes": {int64(CodeResendAfter), 60e9},
		"life of a session": {int64(SessionLifetime), 900e9}, "wrong codes of a day": {wrongTriesDayMax, 25}, "of an hour": {wrongTriesHourMax, 1000},
		"mails of a day": {mailsDayMax, 30}, "for a network": {mailsNetworkMax, 2}, "for the known browser": {mailsKnownMax, 10},
		"codes of an hour": {codesHourMax, 4000}, "of newcomers": {newcomerCodesHourMax, 1000}, "sessions of an address": {sessionsPerEmailMax, 8},
		"sweep": {int64(sweepEvery), 24 * 3600e9}, "addresses removed after": {int64(forgetAfter), 48 * 3600e9},
		"rows of a set": {rowsPerSet, 8}, "anonymous clients": {AnonymousRowsDefault, 65536},
		"digits of a code": {CodeDigits, 8}, "length of a key": {int64(KeyLength), 48}, "of its hint": {hintLength, 4},
		"bytes of an address": {emailBytesMax, 254}, "before the at": {emailLocalBytesMax, 64},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %d, want %d", name, c[0], c[1])
		}
	}
}

func TestEventsNameTheirAccount(t *testing.T) {
	for _, e := range []Event{
		&Created{Account: 7}, &KeyCreated{Account: 7}, &KeyRevoked{Account: 7}, &Leased{Account: 7}, &Returned{Account: 7},
		&Suspended{Account: 7}, &Restored{Account: 7}, &QuotaSet{Account: 7},
	} {
		if e.AccountID() != 7 {
			t.Errorf("%T is of account %d", e, e.AccountID())
		}
	}
}

func TestL1_UnspentIsOfAllDays(t *testing.T) {
	o := newTestAccount(t, noon)
	day := engine.DateOf(noon)
	o.account.Apply(&Leased{Account: 1, Day: day - 1, Count: 5, At: noon})
	o.account.Apply(&Leased{Account: 1, Day: day, Count: 3, At: noon})
	if got := o.account.days.unspent(); got != 8 {
		t.Errorf("%d are unspent, want 8", got)
	}
	if lease := o.account.NextLease(testKey, o.now, o.policy, 1); lease == nil || lease.Unspent != 8 || lease.Count != 13 {
		t.Errorf("the next lease is %+v, want 13 beside 8 unspent", lease)
	}
}

// TestL1_LeasesDouble: an account that uses a lease up within a second gets twice as many, at most 256 and a tenth of
// what is left of the day; one that asks once a second, or pauses, gets leases of 16.
func TestL1_LeasesDouble(t *testing.T) {
	for name, tt := range map[string]struct {
		day      int
		pause    time.Duration // between requests
		requests int
		want     []int // sizes of the leases: unspent and new ones
	}{
		"as fast as it can":      {100_000, time.Millisecond, 600, []int{16, 32, 64, 128, 256, 256, 256, 256}},
		"a tenth of the day":     {1000, time.Millisecond, 60, []int{16, 32, 64, 91}},
		"a day that ends":        {100, time.Millisecond, 60, []int{16, 16, 16, 16, 16, 16, 16}},
		"once a second":          {100_000, time.Second, 33, []int{16, 16, 16, 16, 16}},
		"sixteen in two seconds": {100_000, 126 * time.Millisecond, 33, []int{16, 16, 16, 16, 16}},
	} {
		o := newTestAccount(t, noon)
		o.policy.DefaultQuota = Quota{Day: tt.day, Minute: 100_000}
		var sizes []int
		for range tt.requests {
			if lease := o.account.NextLease(testKey, o.now, o.policy, 0); lease != nil {
				sizes = append(sizes, o.account.days.unspent()+lease.Count)
				o.account.Apply(lease)
			}
			if result, _ := o.account.Admit(testKey, o.now, o.policy); result.DenyCode != "" && result.DenyCode != engine.CodeQuotaExceeded {
				t.Fatalf("%s: %+v", name, result)
			}
			o.advance(tt.pause)
		}
		if len(sizes) < len(tt.want) || !slices.Equal(sizes[:len(tt.want)], tt.want) {
			t.Errorf("%s: leases %v, want %v", name, sizes, tt.want)
		}
	}
}

// TestL1_TheNextLeaseComesAtHalf tries every number of unspent requests.
func TestL1_TheNextLeaseComesAtHalf(t *testing.T) {
	for unspent := range LeaseSizeDefault + 1 {
		for waiting := range 2 {
			o := newTestAccount(t, noon)
			o.account.Apply(&Leased{Account: 1, Day: engine.DateOf(noon), Count: unspent, At: noon})
			lease := o.account.NextLease(testKey, o.now, o.policy, waiting)
			want := unspent < LeaseSizeDefault && (waiting > 0 || unspent <= LeaseSizeDefault/2)
			if (lease != nil) != want || lease != nil && lease.Count != LeaseSizeDefault-unspent {
				t.Errorf("%d unspent, %d waiting: %+v", unspent, waiting, lease)
			}
		}
	}
}

func TestL6_RefundsOfOtherTimesChangeNothing(t *testing.T) {
	o := newTestAccount(t, noon)
	o.account.Apply(&Leased{Account: 1, Day: engine.DateOf(noon), Count: 3, At: noon})
	o.advance(time.Second)
	o.account.Refund(o.now)
	if c := o.account.days.get(engine.DateOf(noon)); c.spent != 0 || c.refunded != 0 {
		t.Errorf("nothing was spent, and a refund left %+v", c)
	}
	s := NewAnonymousTable(8, func(key uint64) uint64 { return key })
	from := netip.MustParseAddr("192.0.2.1")
	s.Admit(from, o.now, DefaultQuota())
	for range 2 {
		s.Refund(from, o.now)
	}
	if v := s.Usage(from, o.now, DefaultQuota()); v.Day.Remaining != DayLimitDefault || v.Minute.Remaining != MinuteLimitDefault {
		t.Errorf("one request and two refunds leave %+v", v)
	}
	for n := range 3 {
		s.Admit(from, o.now, DefaultQuota())
		if v := s.Usage(from, o.now, DefaultQuota()); v.Day.Remaining != DayLimitDefault-1-n {
			t.Errorf("after %d requests: %+v", n+1, v)
		}
	}
}

func TestK2_AbortNeverCountsBelowZero(t *testing.T) {
	d := newLoginFixture(t)
	r := d.registry
	r.Abort(&CodeIssued{Email: idOf("a@b.do")})
	r.Abort(&CodeFailed{Email: idOf("a@b.do")})
	if r.codesPending != 0 || r.triesPending != 0 {
		t.Errorf("nothing was asked: %d and %d are under way", r.codesPending, r.triesPending)
	}
	code := d.mustRequest("a@b.do")
	v := r.attempts[idOf("a@b.do").digest]
	r.codesPending, r.triesPending, v.triesPending = 2, 2, 2
	r.Abort(&CodeIssued{Email: idOf("a@b.do")})
	r.Abort(&CodeFailed{Email: idOf("a@b.do")})
	if state := fmt.Sprint(r.codesPending, r.triesPending, v.triesPending); state != "1 1 1" {
		t.Errorf("one of two each is lost: %s are left, of %q", state, code)
	}
	r.endPendingTry(&CodeFailed{Email: idOf("a@b.do")})
	r.endPendingTry(&CodeFailed{Email: idOf("a@b.do")})
	if state := fmt.Sprint(r.triesPending, v.triesPending); state != "0 0" {
		t.Errorf("after more ends than beginnings: %s", state)
	}
}

func TestK2_AVisitorIsQuietFromTheEndOfTheCode(t *testing.T) {
	for name, c := range map[string]struct {
		visitor loginAttempt
		want    bool
	}{
		"nothing known":     {loginAttempt{}, true},
		"a code that lives": {loginAttempt{codes: []*pendingCode{{CodeState: CodeState{Until: 11}}}}, false},
		"a code at its end": {loginAttempt{codes: []*pendingCode{{CodeState: CodeState{Until: 10}}}}, true},
		"an account":        {loginAttempt{account: 1}, false},
		"a try under way":   {loginAttempt{triesPending: 1}, false},
		"asked before":      {loginAttempt{nextCodeAt: 10}, true},
		"asked later":       {loginAttempt{nextCodeAt: 11}, false},
		"a session":         {loginAttempt{sessions: []Digest{{}}}, false},
	} {
		if got := c.visitor.idle(10); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
