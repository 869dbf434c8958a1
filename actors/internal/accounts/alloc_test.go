//go:build !race

package accounts

import (
	"testing"
	"time"
)

// Looking at the clock on the way of a request allocates nothing, also while it is doubted.
func TestQ4Clock_Costs(t *testing.T) {
	c := newTwoClocks(noon, time.Time{})
	c.wall = c.wall.Add(time.Hour)
	c.clock.Now()
	if n := testing.AllocsPerRun(100, func() { c.clock.Now() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
