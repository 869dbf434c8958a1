package actors

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// market makes refreshes of all institutions in some currencies, an hour apart.
type market struct {
	institutions []string
	now          time.Time
	n            int
}

func newMarket() *market {
	m := &market{now: noon.AddDate(-1, 0, 0)}
	for _, institution := range engine.DefaultCatalogue().Institutions() {
		m.institutions = append(m.institutions, institution.ID)
	}
	return m
}

// refreshes are count more, each of one source with a quote of every institution.
func (m *market) refreshes(count int) []engine.Refresh {
	var out []engine.Refresh
	for range count {
		m.n++
		m.now = m.now.Add(time.Minute)
		refresh := engine.Refresh{SourceID: fmt.Sprintf("list-%d", m.n%4), ObservedAt: m.now}
		for i, id := range m.institutions {
			cents := fmt.Sprintf("%02d", (i+m.n)%40)
			refresh.Observations = append(refresh.Observations,
				engine.Observation{InstitutionID: id, Currency: "USD", Buy: "57." + cents, Sell: "60." + cents},
				engine.Observation{InstitutionID: id, Currency: "EUR", Buy: "63." + cents, Sell: "68." + cents})
		}
		out = append(out, refresh)
	}
	return out
}

// F10: observations taken in, decided, durable and published, as an import hands them over.
func BenchmarkObserve(b *testing.B) {
	for _, refreshes := range []int{1, 20, 200} {
		b.Run(fmt.Sprintf("refreshes=%d", refreshes), func(b *testing.B) {
			s := start(b, Config{Dir: b.TempDir()})
			m := newMarket()
			batches := make([][]engine.Refresh, 50)
			taken := 0
			for b.Loop() {
				if taken%len(batches) == 0 {
					b.StopTimer()
					for i := range batches {
						batches[i] = m.refreshes(refreshes)
					}
					b.StartTimer()
				}
				receipt, err := s.Observe(batches[taken%len(batches)])
				if err != nil || len(receipt.Refused) > 0 {
					b.Fatal(err, receipt.Refused[:min(3, len(receipt.Refused))])
				}
				taken++
			}
			b.ReportMetric(float64(taken*refreshes*2*len(m.institutions))/b.Elapsed().Seconds(), "observations/s")
		})
	}
}

// A warm question through the actor of its currency.
func BenchmarkRanking(b *testing.B) {
	s := start(b, Config{Journal: &memoryJournal{}})
	observe(b, s, saying("a", noon, "USD", "57", "60", "popular", "bhd"))
	q := usdRanking()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Ranking(q); err != nil {
			b.Fatal(err)
		}
	}
}

// F8: start to Ready, for a number of log records with one quote each, and for the snapshot of the same.
func BenchmarkReplay(b *testing.B) {
	journal := recordedYear(b, 1_000_000)
	for _, snapshot := range []bool{false, true} {
		b.Run(fmt.Sprintf("snapshot=%v", snapshot), func(b *testing.B) {
			from := &memoryJournal{records: journal.records}
			if snapshot {
				from = snapshotOf(b, journal)
			}
			runtime.GC()
			for b.Loop() {
				s, err := Open(Config{Journal: from.crashed(), Clock: func() time.Time { return noon }, SnapshotRecords: 1 << 40})
				if err != nil {
					b.Fatal(err)
				}
				<-s.Ready()
				b.StopTimer()
				_ = s.Close()
				b.StartTimer()
			}
		})
	}
}

func snapshotOf(b *testing.B, journal *memoryJournal) *memoryJournal {
	s := start(b, Config{Journal: journal.crashed(), SnapshotRecords: 1 << 40})
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	kept := s.journal.(*memoryJournal)
	b.Logf("snapshot of %d bytes", len(kept.snapshot))
	return kept
}

// X9: start to Ready from the snapshot of 35 years of business days in every currency, and how large it is.
func BenchmarkStartOfALongHistory(b *testing.B) {
	var boards []*engine.Board
	rows := 0
	for _, currency := range testCatalogue().Currencies() {
		state := engine.BookState{Currency: currency.Code}
		for date := engine.DateOf(noon).AddDays(-35 * 365); date <= engine.DateOf(noon); date++ {
			value := decimal(fmt.Sprintf("58.%04d", int(date)%10000))
			if date%7 < 5 {
				state.History = append(state.History, engine.HistoryEntry{
					Date: date, InstitutionID: "bcrd", Currency: currency.Code, Channel: engine.Unspecified, Kind: engine.Reference, Buy: value, Sell: value,
					SourceID: "bcrd-reference", DatePrecision: engine.PrecisionDay, ObservedAt: date.Start(), Rank: 100,
				})
			}
		}
		rows += len(state.History)
		boards = append(boards, engine.Restore(state, testCatalogue(), engine.DefaultRules()).Board())
	}
	var snapshot bytes.Buffer
	if err := writeSnapshot(&snapshot, boards); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Open(Config{Journal: &memoryJournal{snapshot: snapshot.Bytes()}, Clock: func() time.Time { return noon }, SnapshotRecords: 1 << 40})
		if err != nil {
			b.Fatal(err)
		}
		<-s.Ready()
		b.StopTimer()
		if got := len(s.currencies); got != len(boards) {
			b.Fatalf("%d currencies", got)
		}
		_ = s.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(rows), "rows")
	b.ReportMetric(float64(snapshot.Len()), "snapshot-bytes")
}

// recordedYear is a journal of refreshes with one quote each, a year of days.
func recordedYear(b *testing.B, records int) *memoryJournal {
	b.Helper()
	journal := &memoryJournal{}
	m := newMarket()
	currencies := []string{"USD", "EUR", "CAD", "GBP", "CHF"}
	step := 365 * 24 * time.Hour / time.Duration(records)
	for i := range records {
		at := noon.AddDate(-1, 0, 0).Add(time.Duration(i) * step)
		buy, _ := engine.ParseDecimal(fmt.Sprintf("57.%02d", i%40))
		sell, _ := engine.ParseDecimal(fmt.Sprintf("60.%02d", i%40))
		record, err := encodeEvent(&engine.Refreshed{
			Currency: currencies[i%len(currencies)], SourceID: "list", ObservedAt: at, Priority: 100,
			Quotes: []engine.Quoted{{
				Key: engine.QuoteKey{Institution: m.institutions[i/len(currencies)%len(m.institutions)], Channel: engine.Branch, Kind: engine.Commercial},
				Buy: buy, Sell: sell, EffectiveDate: engine.DateOf(at), ExpiresAt: at.Add(26 * time.Hour),
			}},
		})
		if err != nil {
			b.Fatal(err)
		}
		journal.records = append(journal.records, record)
	}
	return journal
}
