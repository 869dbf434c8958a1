package wal

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"
)

// TestVerify_Beside: a log that another process writes, cuts at its beginning and fills with snapshots is whole at
// each moment, and Dump visits each record once.
func TestVerify_Beside(t *testing.T) {
	t.Parallel()
	l := mustOpen(t, t.TempDir(), Options{SegmentBytes: 512, Clock: testClock, ReserveBytes: -1})
	var written atomic.Uint64
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for next := uint64(1); ; next += 3 {
			_, err := l.Append(batchFrom(next, 3))
			if err == nil && next%20 == 2 {
				err = l.WriteSnapshot(next+2, func(w io.Writer) error { _, err := w.Write(record(next)); return err })
				err = errors.Join(err, l.DropBefore(next-10))
			}
			written.Store(next + 2)
			select {
			case <-stop:
				done <- err
				return
			default:
			}
			if err != nil {
				done <- err
				return
			}
		}
	}()
	for range 50 {
		before := written.Load()
		if report, err := Verify(l.dir); err != nil || report.Mark != MarkInUse || report.Last < before || report.TornBytes > 0 {
			t.Fatalf("%+v, %v; %d were written", report, err, before)
		}
		var last uint64
		before = written.Load()
		err := Dump(l.dir, func(e Entry) error {
			if last > 0 && e.Sequence <= last || string(e.Record) != string(record(e.Sequence)) {
				t.Fatalf("record %d follows %d", e.Sequence, last)
			}
			last = e.Sequence
			return nil
		})
		if err != nil || last < before {
			t.Fatalf("dumped up to %d of %d: %v", last, before, err)
		}
	}
	close(stop)
	must(t, <-done)
	mustClose(t, l)
}
