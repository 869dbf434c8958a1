package account

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

func TestL1_UnspentIsOfAllDays(t *testing.T) {
	o := newTestAccount(t, noon)
	day := engine.DateOf(noon)
	o.leased(&Leased{Account: 1, Day: day - 1, Count: 5, At: noon})
	o.leased(&Leased{Account: 1, Day: day, Count: 3, At: noon})
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
				o.account.Apply(lease, o.now)
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
			o.leased(&Leased{Account: 1, Day: engine.DateOf(noon), Count: unspent, At: noon})
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
	o.leased(&Leased{Account: 1, Day: engine.DateOf(noon), Count: 3, At: noon})
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
