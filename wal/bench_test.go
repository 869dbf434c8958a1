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
