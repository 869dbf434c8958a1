package actors

import (
	"crypto/sha256"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/engine/account"
)

// benchNode is a node with one key that may ask for ever.
func benchNode(b testing.TB) (*node, account.Caller) {
	start := time.Now() //nolint:forbidigo // what a node costs with the real clock
	n := startNode(b, Config{
		QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Day: accounts.QuotaDayMax, Minute: account.MinuteLimitDefault}, LeaseSize: leaseMax},
		Clock:       func() time.Time { return noon.Add(time.Since(start)) }, Monotonic: paceOf(2 * time.Second), //nolint:forbidigo // the same
	})
	m := n.join(1, 1)
	caller := account.Caller{Key: m.keys[0], HasKey: true, Address: client(1)}
	return n, caller
}

func ask(b testing.TB, n account.Admitter, caller account.Caller) {
	if grant, err := n.Admit(caller); err != nil || !grant.Admitted {
		b.Fatal(grant, err)
	}
}

// acceleration is how much faster than real time the clock of BenchmarkCores runs: no minute fills up.
const acceleration = 1000

// acceleratedClock has a monotonic part, as the clock of a node, and begins at noon.
func acceleratedClock() func() time.Time {
	start := time.Now() //nolint:forbidigo // what a node costs with the real clock
	ahead := noon.Sub(start.Round(0))
	return func() time.Time {
		now := time.Now() //nolint:forbidigo // the same
		return now.Add(ahead + (acceleration-1)*now.Sub(start))
	}
}

// processorTime is what the process has used of all processors: steadier than the time on the wall of a machine that
// others use too.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // it cannot fail for the process itself
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkCores measures requests on several processors: run it with -cpu 1,2. Memory that requests share shows as
// more processor time for each on two processors than on one. Each goroutine has accounts of its own, all ask for
// dollars. The control shares nothing.
func BenchmarkCores(b *testing.B) {
	const accountsEach, goroutines = 16, 2
	n := startNode(b, Config{
		QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Day: accounts.QuotaDayMax, Minute: accounts.QuotaMinuteMax}, LeaseSize: leaseMax},
		Clock:       acceleratedClock(), Catalogue: testCatalogue(),
	})
	observe(b, n.System, saying("a", noon, "USD", "57", "60", "popular", "bhd"))
	var callers []account.Caller
	for i := range accountsEach * goroutines {
		callers = append(callers, account.Caller{Key: n.join(i, 1).keys[0], HasKey: true, Address: client(i)})
	}
	admit := func(i int) error {
		_, err := n.Admit(callers[i])
		return err
	}
	rank := func(int) error {
		_, err := n.Ranking(usdRanking())
		return err
	}
	for _, c := range []struct {
		name string
		work func(i int) error
	}{
		{"admission", admit},
		{"ranking", rank},
		{"both", func(i int) error { return errors.Join(admit(i), rank(i)) }},
		{"control", func(i int) error {
			_ = sha256.Sum256(callers[i].Key[:])
			return nil
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var next atomic.Int64
			before := processorTime()
			defer func() { b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op") }()
			b.RunParallel(func(pb *testing.PB) {
				first := int(next.Add(1)) % goroutines * accountsEach
				for i := 0; pb.Next(); i++ {
					if err := c.work(first + i%accountsEach); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
