package engine

import (
	"testing"
	"time"
)

func TestS15_FaultsDoNotFlap(t *testing.T) {
	now := time.Date(2026, 6, 17, 16, 0, 0, 0, time.UTC)
	var trouble Fault
	want := func(on bool, began time.Time) {
		t.Helper()
		if since, is := trouble.Since(now); is != on || on && !since.Equal(began) {
			t.Fatalf("at %s: %t since %s, want %t since %s", now, is, since, on, began)
		}
	}
	want(false, now)
	began := now
	for range 10 { // it comes and goes, and lasts from its first sight
		trouble.Report(now)
		want(true, began)
		now = now.Add(FaultHoldOff - time.Millisecond)
		want(true, began)
	}
	now = now.Add(time.Millisecond)
	want(false, now)
	began = now
	trouble.Begin(now)
	now = now.Add(time.Hour)
	want(true, began)
	trouble.Recover(now)
	trouble.Recover(now.Add(time.Second)) // a second time changes nothing
	now = now.Add(FaultHoldOff)
	want(false, now)
	trouble.Begin(now)
	trouble.Clear()
	want(false, now)
	trouble.ReportSince(now.Add(-time.Minute), now)
	want(true, now.Add(-time.Minute))
	now = now.Add(-time.Hour) // the clock was set back
	want(false, now)
}

func TestS15_ReadinessOf(t *testing.T) {
	well, ill, down := HealthyCondition("a"), Condition{Name: "b", State: "slow"}, Condition{Name: "c", State: "failed", Down: true}
	for _, test := range []struct {
		all  []Condition
		want Readiness
	}{{nil, Ready}, {[]Condition{well}, Ready}, {[]Condition{well, ill}, Degraded}, {[]Condition{down, ill, well}, Unavailable}, {[]Condition{{State: ConditionOK, Down: true}}, Ready}} {
		if got := ReadinessOf(test.all); got != test.want {
			t.Errorf("%+v: %s, want %s", test.all, got, test.want)
		}
	}
}
