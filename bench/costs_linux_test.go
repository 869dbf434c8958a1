package main

import (
	"reflect"
	"testing"
)

// TestCosts_Calls: calls of a run without requests, those that failed and those that wait do not count.
func TestCosts_Calls(t *testing.T) {
	const head = "% time     seconds  usecs/call     calls    errors syscall\n------ ----------- ----------- --------- --------- ----------------\n"
	idle, err := parseCalls([]byte(head + "  0.5    0.000001           1       100        40 read\n  0.1    0.000001           1        10           fsync\n100.00    0.1    1    110    40 total\n"))
	if err != nil {
		t.Fatal(err)
	}
	busy, err := parseCalls([]byte(head + " 50.1    0.100000           1      2300      1240 read\n 40.0    0.1    1      2000    writev\n  0.1    0.1   1   9000    3000 futex\n  0.1    0.1    1    20    fsync\n"))
	if err != nil {
		t.Fatal(err)
	}
	calls, failed := (&traced{busy, 1000}).each(&traced{calls: idle})
	if want := map[string]float64{"read": 1, "writev": 2}; !reflect.DeepEqual(calls, want) || failed != 1.2 {
		t.Errorf("%v and %v failed, want %v and 1.2", calls, failed, want)
	}
	for _, wrong := range []string{"", head, head + "  0.5    0.000001           1       100        xx read\n"} {
		if calls, err := parseCalls([]byte(wrong)); err == nil {
			t.Errorf("%q is read as %v", wrong, calls)
		}
	}
}
