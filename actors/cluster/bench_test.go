package cluster

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkAppend is what an append costs from the call to the answer, the record being on two disks of members and in the writer's own
// copy. All three nodes share the disk and the processors of one machine.
func BenchmarkAppend(b *testing.B) {
	f := newFleet(b)
	f.startAll()
	leader := f.leader()
	record := string(bytes.Repeat([]byte("r"), 200))
	b.Run("leader", func(b *testing.B) { f.appends(b, record, leader) })
	b.Run("follower", func(b *testing.B) { f.appends(b, record, (leader+1)%3) })
	b.Run("three", func(b *testing.B) { f.appends(b, record, 0, 1, 2) })
	large := string(bytes.Repeat([]byte("r"), 100<<10))
	b.Run("leader 100 KiB", func(b *testing.B) { f.appends(b, large, leader) })
}

func (f *fleet) appends(b *testing.B, record string, writers ...int) {
	var all sync.WaitGroup
	took := make([][]time.Duration, len(writers))
	b.ResetTimer()
	for i, w := range writers {
		all.Go(func() {
			for range b.N / len(writers) {
				began := realClock()
				if _, _, err := f.nodes[w].append(record); err != nil {
					b.Errorf("append: %v", err)
					return
				}
				took[i] = append(took[i], realClock().Sub(began))
			}
		})
	}
	all.Wait()
	times := slices.Concat(took...)
	slices.Sort(times)
	if len(times) == 0 {
		return
	}
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(len(times))/b.Elapsed().Seconds(), "appends/s")
}
