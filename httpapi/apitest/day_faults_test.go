//go:build faults

package apitest

import "testing"

func TestFaultsQ7_Days(t *testing.T) {
	const days, step = 200, 20
	sum := dayCounts{}
	for first := 1; first <= days && !t.Failed(); first += step {
		checkDays(t, first, step, dayHours, sum)
		t.Logf("PROGRESS %d of %d days", first+step-1, days)
	}
	t.Logf("FIGURE %d days of 24 hours: %v; no goroutine left", days, sum)
	for _, what := range []string{"requests", "refused", "slots published", "sign-ups", "keys rotated", "restarts", "crashes", "expiries seen"} {
		if sum[what] == 0 {
			t.Errorf("%s never happened", what)
		}
	}
	mustFindMutations(t, lostPublications, generousQuota, forgottenKeys)
}
