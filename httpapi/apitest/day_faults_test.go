//go:build faults

package apitest

import "testing"

// TestFaultsQ7_Days is TestQ7_HoursOfTheWholeService for 200 seeds.
func TestFaultsQ7_Days(t *testing.T) {
	const days, step = 200, 20
	var sum dayCounts
	for first := 1; first <= days && !t.Failed(); first += step {
		sum = sum.plus(checkDays(t, first, step, dayHours))
		t.Logf("PROGRESS %d of %d days", first+step-1, days)
	}
	t.Logf("FIGURE %d days of 24 hours: %s; no goroutine left", days, sum)
	if sum.refused == 0 || sum.slots == 0 || sum.crashes == 0 || sum.restarts == 0 || sum.expired == 0 {
		t.Error("something never happened")
	}
	controlDays(t, dayPlants())
}
