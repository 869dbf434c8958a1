//go:build linux

package main

import (
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func someCosts() costList {
	return costList{
		"best": {Calls: map[string]float64{"read": 1, "writev": 1}, Failed: 0.1, Bytes: 7000, CPU: spread{1.2, 1.3, 1.4}},
		"full": {Calls: map[string]float64{"read": 1, "writev": 1}, Bytes: 29000, Allocations: 1, CPU: spread{0.8, 0.9, 1}},
	}
}

// TestCosts_Problems checks which costs count as a rise.
func TestCosts_Problems(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*cost)
		want   string
	}{
		"the same":                {func(*cost) {}, ""},
		"another call":            {func(c *cost) { c.Calls["getsockopt"] = 0.5 }, "best: 0.50 system calls getsockopt a request, 0.00 are accepted"},
		"a call a second time":    {func(c *cost) { c.Calls["writev"] = 2 }, "best: 2.00 system calls writev"},
		"a little of a call":      {func(c *cost) { c.Calls["statfs"] = 0.09 }, ""},
		"calls that fail":         {func(c *cost) { c.Failed = 0.7 }, "best: 0.70 system calls that fail"},
		"calls not counted":       {func(c *cost) { c.Calls = nil }, ""},
		"bytes":                   {func(c *cost) { c.Bytes += 17 }, "best: 7017 bytes an answer, 7000 are accepted"},
		"an allocation":           {func(c *cost) { c.Allocations = 1 }, "best: 1.00 allocations a request, 0.00 are accepted"},
		"work of the node":        {func(c *cost) { c.Allocations = 0.3 }, ""},
		"CPU time":                {func(c *cost) { c.CPU = spread{1.76, 1.8, 1.9} }, "best: 1.76 to 1.90 times the CPU time of the bare server, at most 1.75"},
		"CPU time, perhaps":       {func(c *cost) { c.CPU = spread{1.3, 1.9, 2.5} }, ""},
		"less of all, as it were": {func(c *cost) { *c = cost{CPU: spread{1, 1, 1}} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := someCosts()
			one := found["best"]
			one.Calls = maps.Clone(one.Calls)
			c.change(&one)
			found["best"] = one
			got := strings.Join(someCosts().exceeded(found), "\n")
			if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) || strings.Contains(got, "\n") {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	one := costList{"best": someCosts()["best"]}
	if got := someCosts().exceeded(one); len(got) != 1 || !strings.Contains(got[0], "full has an accepted cost and was not measured") {
		t.Errorf("a request that is not measured: %q", got)
	}
	if got := one.exceeded(someCosts()); len(got) != 1 || !strings.Contains(got[0], "full: no cost is accepted yet") {
		t.Errorf("a new request: %q", got)
	}
}

func TestCosts_File(t *testing.T) {
	path := filepath.Join(t.TempDir(), "costs.json")
	var got costList
	if err := errors.Join(writeJSON(path, someCosts()), readJSON(path, &got)); err != nil || !reflect.DeepEqual(got, someCosts()) {
		t.Errorf("%v %v", got, err)
	}
}

// TestCosts_Calls checks that calls of a run without requests, failed calls and waiting calls do not count.
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
	calls, failed := (&syscallTrace{busy, 1000}).perRequest(&syscallTrace{calls: idle})
	if want := map[string]float64{"read": 1, "writev": 2}; !reflect.DeepEqual(calls, want) || failed != 1.2 {
		t.Errorf("%v and %v failed, want %v and 1.2", calls, failed, want)
	}
	for _, wrong := range []string{"", head, head + "  0.5    0.000001           1       100        xx read\n"} {
		if calls, err := parseCalls([]byte(wrong)); err == nil {
			t.Errorf("%q is read as %v", wrong, calls)
		}
	}
}
