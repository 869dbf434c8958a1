package account

import (
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

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
