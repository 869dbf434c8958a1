package actors

import (
	"fmt"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// BenchmarkAdmitInACrowd is what one caller's admission costs among few and among many accounts (F11). -accounts sets how many
// the many are.
func BenchmarkAdmitInACrowd(b *testing.B) {
	many := 100_000
	if *accountsLoaded > 0 {
		many = *accountsLoaded
	}
	for _, accounts := range []int{1000, many} {
		b.Run(fmt.Sprint(accounts), func(b *testing.B) {
			n := &node{t: b, clock: &testClock{now: noon}, steady: &testSteady{}, mail: newLetterbox()}
			n.config = Config{
				Terms: engine.Terms{Allowance: engine.Allowance{Day: allowanceDayMax, Minute: engine.MinuteLimitDefault}, Lease: leaseMax},
				Clock: n.clock.read, Steady: paceOf(2 * time.Second),
			}
			n.boot(population(b, accounts))
			defer n.stop()
			caller := engine.Caller{Key: keyOf(uint64(accounts / 2)), HasKey: true, Address: client(1)}
			ask(b, n, caller)
			b.ReportAllocs()
			for b.Loop() {
				ask(b, n, caller)
			}
		})
	}
}
