package actors

import (
	"runtime"
	"testing"
	"time"
)

// startCost is what a start allocates: pieces and bytes.
func startCost(t *testing.T, journal *memoryJournal) (pieces, bytes uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := start(t, Config{Journal: journal, SnapshotRecords: 1 << 40, Clock: func() time.Time { return noon }})
	runtime.ReadMemStats(&after)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc
}

// F8: what a start costs for each record and each account, beyond what it costs without any. Seconds depend on the machine and
// on who else uses it; memory does not, and most of the seconds were once spent on it.
func TestF8_StartAllocatesLittle(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector has costs of its own")
	}
	const count = 30_000
	year := &memoryJournal{}
	institutions := newMarket().institutions
	for i := range count {
		record, err := encodeEvent(oneQuote(institutions, i, count))
		if err != nil {
			t.Fatal(err)
		}
		year.records = append(year.records, record)
	}
	nonePieces, noneBytes := startCost(t, &memoryJournal{})
	for name, c := range map[string]struct {
		journal             *memoryJournal
		piecesMax, bytesMax uint64 // of a hundred
	}{
		"record":  {year, 200, 130_000}, // an offer, its list, its quote
		"account": {population(t, count), 10, 80_000},
	} {
		pieces, bytes := startCost(t, c.journal)
		pieces, bytes = (pieces-nonePieces)*100/count, (bytes-noneBytes)*100/count
		t.Logf("100 of kind %s: %d allocations, %d bytes", name, pieces, bytes)
		if pieces > c.piecesMax || bytes > c.bytesMax {
			t.Errorf("100 of kind %s: %d allocations of at most %d, %d bytes of at most %d", name, pieces, c.piecesMax, bytes, c.bytesMax)
		}
	}
}
