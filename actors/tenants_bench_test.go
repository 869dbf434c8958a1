package actors

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// paceOf is a steady clock of which each look is so much later: with a second between two looks no minute
// ever fills.
func paceOf(step time.Duration) func() time.Duration {
	var looks atomic.Int64
	return func() time.Duration { return time.Duration(looks.Add(1)) * step }
}

// benchNode is a node with one key that may ask for ever.
func benchNode(b testing.TB, lease int) (*node, engine.Caller) {
	start := time.Now() //nolint:forbidigo // what a node costs with the real clock
	n := startNode(b, Config{
		Terms: engine.Terms{Allowance: engine.Allowance{Day: allowanceDayMax, Minute: engine.MinuteLimitDefault}, Lease: lease},
		Clock: func() time.Time { return noon.Add(time.Since(start)) }, Steady: paceOf(2 * time.Second), //nolint:forbidigo // the same
	})
	m := n.join(1, 1)
	caller := engine.Caller{Key: m.keys[0], HasKey: true, Address: client(1)}
	return n, caller
}

func BenchmarkAdmit(b *testing.B) {
	for _, c := range []struct {
		name  string
		lease int
	}{{"within-lease", leaseMax}, {"lease-16", engine.LeaseDefault}, {"lease-1", 1}} {
		b.Run(c.name, func(b *testing.B) {
			n, caller := benchNode(b, c.lease)
			ask(b, n, caller)
			b.ReportAllocs()
			for b.Loop() {
				ask(b, n, caller)
			}
		})
	}
	b.Run("stranger", func(b *testing.B) {
		n, caller := benchNode(b, leaseMax)
		n.tenants.config.Terms.Allowance.Day = allowanceDayMax
		caller.HasKey = false
		b.ReportAllocs()
		for b.Loop() {
			ask(b, n, caller)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		n, caller := benchNode(b, leaseMax)
		b.ReportAllocs()
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				ask(b, n, caller)
			}
		})
	})
}

func ask(b testing.TB, n *node, caller engine.Caller) {
	if grant, err := n.Admit(caller); err != nil || !grant.Admitted {
		b.Fatal(grant, err)
	}
}

// BenchmarkAdmitOfMany asks in turn for accounts of a large population: "warm" have an actor, "waking" were
// put aside and need one, with the lease that they have.
func BenchmarkAdmitOfMany(b *testing.B) {
	const accounts = 200_000
	journal := population(b, accounts)
	for _, c := range []struct {
		name string
		some uint64
	}{{"warm", 10_000}, {"waking", accounts}} {
		b.Run(c.name, func(b *testing.B) {
			n := &node{t: b, mail: newLetterbox(), config: Config{
				Terms: engine.Terms{Allowance: engine.Allowance{Day: allowanceDayMax}, Lease: leaseMax}, AccountsLiveMax: 20_000,
				Clock: func() time.Time { return noon }, Steady: paceOf(time.Second + 1),
			}}
			n.boot(journal.crashed())
			defer n.stop()
			next := uint64(0)
			one := func() {
				next = next%c.some + 1
				ask(b, n, engine.Caller{Key: keyOf(next), HasKey: true})
			}
			for range c.some {
				one()
			}
			b.ReportAllocs()
			for b.Loop() {
				one()
			}
		})
	}
}
