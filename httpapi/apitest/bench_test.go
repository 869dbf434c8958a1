package apitest

import (
	"runtime"
	"testing"
)

// BenchmarkStart starts and closes a node, without rates and with a data set.
func BenchmarkStart(b *testing.B) {
	for name, options := range map[string][]Option{"empty": nil, "standard": {Seed("standard")}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := Start(b, options...).Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOpen opens a thousand nodes at once, each of which answers a request. It prints the memory of a node and the
// memory that the process got from the operating system.
func BenchmarkOpen(b *testing.B) {
	const count = 1000
	for b.Loop() {
		b.ReportMetric(float64(nodeBytes(b, count))/(1<<10), "KiB/node")
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		b.ReportMetric(float64(stats.Sys)/(1<<20), "MiB")
	}
}

// TestOpen_Memory checks that an open node takes little memory. The limit is for two processors, because a node has a
// cache of pages for each processor.
func TestOpen_Memory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	const nodeBytesMax = 600 << 10 // of which 110 KiB are empty maps of the actor library
	if found := nodeBytes(t, 50); found > nodeBytesMax {
		t.Errorf("an open node takes %d bytes, want at most %d", found, nodeBytesMax)
	}
}

// TestStart_Allocations checks that a start does no more than to decide about each rate of the data set.
func TestStart_Allocations(t *testing.T) {
	const allocationsMax = 20_000
	found := testing.AllocsPerRun(5, func() {
		if err := Start(t, Seed("standard")).Close(); err != nil {
			t.Error(err)
		}
	})
	if found > allocationsMax {
		t.Errorf("a start and the end of a node take %.0f allocations, want at most %d", found, allocationsMax)
	}
}

// nodeBytes returns the memory that each of count open nodes takes after a request.
func nodeBytes(tb testing.TB, count int) int {
	tb.Helper()
	nodes := make([]*Server, count)
	before := usedBytes()
	for i := range nodes {
		nodes[i] = Start(tb, Seed("standard"))
		get(tb, nodes[i].Client, nodes[i].URL+best)
	}
	used := usedBytes() - before
	for _, node := range nodes {
		if err := node.Close(); err != nil {
			tb.Error(err)
		}
	}
	return used / count
}

// usedBytes returns the size of the heap and the stacks after a garbage collection.
func usedBytes() int {
	runtime.GC()
	runtime.GC() // the first one only marks what pools keep
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc + stats.StackInuse)
}
