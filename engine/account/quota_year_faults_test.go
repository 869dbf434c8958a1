//go:build faults

package account

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestFaultsQ3_YearOfAThousandAccounts is TestL1_L2_YearAgainstReference for a year and a thousand accounts, with a
// control for each pattern.
func TestFaultsQ3_YearOfAThousandAccounts(t *testing.T) {
	const accounts, days, steps = 1000, 365, 10
	var next, asked, denied atomic.Int64
	var working sync.WaitGroup
	names := slices.Sorted(maps.Keys(loadPatterns(nil)))
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() {
			for number := next.Add(1); number <= accounts && !t.Failed(); number = next.Add(1) {
				random := rand.New(rand.NewPCG(3, uint64(number)))
				name := names[int(number)%len(names)]
				m := liveDays(days, 0, loadPatterns(random)[name], random)
				if m.fault != "" {
					t.Errorf("account %d, %s, %s", number, name, m.fault)
				}
				asked.Add(int64(m.counts["admitted"] + m.counts["refused"]))
				denied.Add(int64(m.counts["refused"]))
				if number%(accounts/steps) == 0 {
					t.Logf("PROGRESS %d of %d accounts", number, accounts)
				}
			}
		})
	}
	working.Wait()
	t.Logf("FIGURE %d accounts, %d days of every minute and every midnight: %d requests, %d refused, as the model to the nanosecond",
		accounts, days, asked.Load(), denied.Load())
	if denied.Load() == 0 {
		t.Error("no limit was reached")
	}
	caught, skews := 0, []time.Duration{time.Millisecond, time.Nanosecond, -time.Nanosecond, -1001 * time.Millisecond}
	for _, name := range names {
		for _, skew := range skews {
			random := rand.New(rand.NewPCG(4, 0))
			if liveDays(3, skew, loadPatterns(random)[name], random).fault == "" {
				t.Errorf("%s: a clock that is ahead by %s is not caught", name, skew)
				continue
			}
			caught++
		}
	}
	t.Logf("FIGURE control: %d of %d planted clocks caught", caught, len(names)*len(skews))
}
