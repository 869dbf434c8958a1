//go:build !race

package actors

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// These tests count allocations. The race detector allocates too, so they are left out with it.

func startCost(t *testing.T, journal *memoryJournal) (pieces, bytes uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := start(t, Config{Journal: journal, SnapshotRecords: 1 << 40, Clock: func() time.Time { return noon }})
	runtime.ReadMemStats(&after)
	must(t, s.Close())
	return after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc
}

// A start allocates little for each record and each account. Seconds depend on the machine and its load; memory does
// not, and most of the seconds were once spent on it.
func TestF8_StartAllocatesLittle(t *testing.T) {
	const count = 30_000
	year := &memoryJournal{}
	all := everyInstitution()
	for i := range count {
		year.records = append(year.records, mustEncode(t, oneQuote(all, i, count)))
	}
	nonePieces, noneBytes := startCost(t, &memoryJournal{})
	for name, c := range map[string]struct {
		journal             *memoryJournal
		piecesMax, bytesMax uint64 // of a hundred
	}{
		"record":  {year, 1000, 130_000}, // an offer, its list, its quote and their texts
		"account": {manyAccounts(t, count), 850, 190_000},
	} {
		pieces, bytes := startCost(t, c.journal)
		pieces, bytes = (pieces-nonePieces)*100/count, (bytes-noneBytes)*100/count
		t.Logf("100 of kind %s: %d allocations, %d bytes", name, pieces, bytes)
		if pieces > c.piecesMax || bytes > c.bytesMax {
			t.Errorf("100 of kind %s: %d allocations of at most %d, %d bytes of at most %d", name, pieces, c.piecesMax, bytes, c.bytesMax)
		}
	}
}

// oneQuote is the refresh with a number, of so many within a year.
func oneQuote(institutions []string, i, records int) *engine.Refreshed {
	currencies := []string{"USD", "EUR", "CAD", "GBP", "CHF"}
	at := noon.AddDate(-1, 0, 0).Add(time.Duration(i) * (365 * 24 * time.Hour / time.Duration(records)))
	return &engine.Refreshed{
		Origin: engine.Origin{Currency: currencies[i%len(currencies)], SourceID: "list", ObservedAt: at, Priority: 100},
		Quotes: []engine.AcceptedQuote{{
			Key: engine.QuoteKey{Institution: institutions[i/len(currencies)%len(institutions)], Channel: engine.Branch, Kind: engine.Commercial},
			Buy: decimal(fmt.Sprintf("57.%02d", i%40)), Sell: decimal(fmt.Sprintf("60.%02d", i%40)),
			EffectiveDate: engine.DateOf(at), ExpiresAt: at.Add(26 * time.Hour),
		}},
	}
}
