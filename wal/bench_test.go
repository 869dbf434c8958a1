package wal

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
)

// benchOptions syncs for real: that is what an append costs.
func benchOptions() Options { return Options{Clock: testClock, ReserveBytes: -1} }

func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			l := mustOpen(b, filepath.Join(b.TempDir(), "log"), benchOptions())
			batch := make([][]byte, n)
			for i := range batch {
				batch[i] = bytes.Repeat([]byte{byte(i)}, 100)
			}
			b.SetBytes(int64(n * 100))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Append(batch); err != nil {
					b.Fatal(err)
				}
			}
			mustClose(b, l)
		})
	}
}

// BenchmarkOpen opens a log of 100,000 records: scan, sync and mark.
func BenchmarkOpen(b *testing.B) {
	l := benchLog(b)
	dir := l.dir
	mustClose(b, l)
	for b.Loop() {
		mustClose(b, mustOpen(b, dir, benchOptions()))
	}
}

func benchLog(b *testing.B) *Log {
	b.Helper()
	l := mustOpen(b, filepath.Join(b.TempDir(), "log"), benchOptions())
	batch := make([][]byte, 1000)
	for i := range batch {
		batch[i] = bytes.Repeat([]byte{byte(i)}, 100)
	}
	for range 100 {
		if _, err := l.Append(batch); err != nil {
			b.Fatal(err)
		}
	}
	return l
}
