//go:build faults

package source_test

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// TestFaultsD4_HostileDocuments: whatever a document holds, reading it takes a second and 64 MiB of heap at most.
func TestFaultsD4_HostileDocuments(t *testing.T) {
	const timeMax, heapMax = time.Second, 64 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	for name, document := range hostile() {
		for _, id := range readers(document) {
			d, _ := source.DefaultSet().Find(id)
			var took time.Duration
			var heap uint64
			for try := range 3 { // other programs use the machine too: the shortest of three counts
				runtime.GC()
				before, start := heapBytes(), time.Now() //nolint:forbidigo // what reading really takes
				grown := watchHeap(func() { _, _ = d.Parse(0, &source.Document{Body: []byte(document)}) })
				again := time.Since(start) //nolint:forbidigo // the same
				if heap = max(heap, grown-min(grown, before)); try == 0 || again < took {
					took = again
				}
				if took <= timeMax {
					break
				}
			}
			if took > timeMax || heap > heapMax {
				t.Errorf("%s, %s: %v and %d MiB", name, id, took, heap>>20)
			}
		}
	}
}

func heapBytes() uint64 {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return now.HeapAlloc
}

// watchHeap is the most that the heap had while something was done.
func watchHeap(work func()) (peak uint64) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	ticker := time.NewTicker(4 * time.Millisecond)
	defer ticker.Stop()
	for {
		peak = max(peak, heapBytes())
		select {
		case <-done:
			return peak
		case <-ticker.C:
		}
	}
}
