//go:build faults && unix

package apitest

import (
	"syscall"
	"testing"
	"time"
)

// TestFaultsStart_Quick checks that a start takes at most 5 ms of processor time until its first answer, as the best
// of up to 400 starts.
func TestFaultsStart_Quick(t *testing.T) {
	const limit, few, many = 5 * time.Millisecond, 40, 400
	worked := func() time.Duration {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			t.Fatal(err)
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	least, starts := time.Hour, 0
	for ; starts < few || least > limit && starts < many; starts++ {
		before := worked()
		node, err := Open(Rates(standardRate))
		if err != nil {
			t.Fatal(err)
		}
		get(t, node.Client, node.URL+best)
		least = min(least, worked()-before)
		if err := node.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("FIGURE first answer after %s of processor time, the best of %d starts", least, starts)
	if least > limit {
		t.Errorf("the first answer took %s of processor time, want at most %s", least, limit)
	}
}
