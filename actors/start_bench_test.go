package actors

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

var startRecords = flag.Int("records", 1_000_000, "how many records the logs of BenchmarkF8_Start hold")

// BenchmarkF8_Start is the way from Open to the first answer on a directory, the check of all its bytes included.
// CPU-ms is what it costs on all cores.
func BenchmarkF8_Start(b *testing.B) {
	accounts := 100_000
	if *accountsLoaded > 0 {
		accounts = *accountsLoaded
	}
	for _, c := range []struct {
		name    string
		prepare func(*directoryMaker)
	}{
		{"records-raw", func(m *directoryMaker) { m.year(*startRecords, false) }},
		{"records-policy", func(m *directoryMaker) { m.year(*startRecords, true) }},
		{"accounts-snapshot", func(m *directoryMaker) { m.accounts(accounts) }},
		{"accounts-raw", func(m *directoryMaker) { m.logins(accounts) }},
		{"history-snapshot", func(m *directoryMaker) { m.history(50, 5, 365) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := &directoryMaker{t: b, dir: b.TempDir()}
			m.open()
			c.prepare(m)
			m.close()
			runtime.GC()
			cpu := time.Duration(0)
			for b.Loop() {
				before := cpuTime(b)
				s := startCopy(b, m.dir)
				cpu += cpuTime(b) - before
				b.StopTimer()
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				s = nil
				runtime.GC()
				b.StartTimer()
			}
			b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "CPU-ms/op")
		})
	}
}

func cpuTime(t testing.TB) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// unsnapped takes no snapshots, so that the directory stays as it is.
type unsnapped struct{ Journal }

var errUnsnapped = errors.New("no snapshots here")

func (unsnapped) WriteSnapshot(uint64, func(io.Writer) error) error { return errUnsnapped }

// startCopy opens a directory and asks it one thing.
func startCopy(t testing.TB, dir string) *System {
	clock := func() time.Time { return noon }
	journal, err := openLocal(Config{Dir: dir, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(Config{Journal: unsnapped{journal}, Clock: clock, Catalogue: testCatalogue(), SnapshotRecords: 1 << 40, SnapshotBytes: 1 << 60})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Ready():
	case <-s.Done():
		t.Fatalf("the system stopped: %v", s.Err())
	}
	if _, err := s.Ranking(usdRanking()); err != nil && !isCode(err, engine.CodeDataUnavailable) {
		t.Fatal(err)
	}
	return s
}

// directoryMaker writes data directories.
type directoryMaker struct {
	t     testing.TB
	dir   string
	log   *wal.Log
	batch [][]byte
}

func (m *directoryMaker) open() {
	var err error
	if m.log, err = wal.Open(m.dir, wal.Options{Clock: func() time.Time { return noon }, ReserveBytes: -1}); err != nil {
		m.t.Fatal(err)
	}
}

func (m *directoryMaker) close() {
	m.flush()
	if err := m.log.Close(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *directoryMaker) add(event any) {
	record, err := encodeEvent(event)
	if err != nil {
		m.t.Fatal(err)
	}
	if m.batch = append(m.batch, record); len(m.batch) == 1000 {
		m.flush()
	}
}

func (m *directoryMaker) flush() {
	if _, err := m.log.Append(m.batch); err != nil {
		m.t.Fatal(err)
	}
	m.batch = m.batch[:0]
}

func (m *directoryMaker) snapshot(write func(io.Writer) error) {
	m.flush()
	if err := m.log.WriteSnapshot(m.log.Last(), write); err != nil {
		m.t.Fatal(err)
	}
	if err := m.log.DropBefore(m.log.Last() + 1); err != nil {
		m.t.Fatal(err)
	}
}

// year writes refreshes of a year with one quote each; with the policy of a node, snapshots between them.
func (m *directoryMaker) year(records int, policy bool) {
	books, institutions := map[string]*engine.Book{}, newMarket().institutions
	for i := range records {
		event := oneQuote(institutions, i, records)
		m.add(event)
		if !policy {
			continue
		}
		if books[event.Currency] == nil {
			books[event.Currency] = engine.NewBook(event.Currency, testCatalogue(), engine.DefaultRules())
		}
		books[event.Currency].Apply(event)
		if left := records - 1 - i; i > 0 && left%snapshotRecordsDefault == snapshotRecordsDefault-1 {
			m.snapshot(func(w io.Writer) error {
				var boards []*engine.Board
				for _, code := range []string{"CAD", "CHF", "EUR", "GBP", "USD"} {
					boards = append(boards, books[code].Board())
				}
				return writeSnapshot(w, boards)
			})
		}
	}
}

// oneQuote is the refresh with a number, of so many within a year.
func oneQuote(institutions []string, i, records int) *engine.Refreshed {
	currencies := []string{"USD", "EUR", "CAD", "GBP", "CHF"}
	at := noon.AddDate(-1, 0, 0).Add(time.Duration(i) * (365 * 24 * time.Hour / time.Duration(records)))
	return &engine.Refreshed{
		Currency: currencies[i%len(currencies)], SourceID: "list", ObservedAt: at, Priority: 100,
		Quotes: []engine.Quoted{{
			Key: engine.QuoteKey{Institution: institutions[i/len(currencies)%len(institutions)], Channel: engine.Branch, Kind: engine.Commercial},
			Buy: decimal(fmt.Sprintf("57.%02d", i%40)), Sell: decimal(fmt.Sprintf("60.%02d", i%40)),
			EffectiveDate: engine.DateOf(at), ExpiresAt: at.Add(26 * time.Hour),
		}},
	}
}

// accounts writes the snapshot of so many accounts.
func (m *directoryMaker) accounts(count int) {
	m.add(&engine.Announced{Transition: engine.Transition{AnnouncedAt: noon, RequiredAt: noon.AddDate(0, 1, 0), By: "luis"}})
	journal := population(m.t, count)
	m.snapshot(func(w io.Writer) error {
		_, err := w.Write(journal.snapshot)
		return err
	})
}

// logins writes what so many new accounts leave in the log: five records each.
func (m *directoryMaker) logins(count int) {
	for id := uint64(1); id <= uint64(count); id++ {
		account := citizen(m.t, id)
		record := account.Record()
		steady := time.Duration(id) * 30 * time.Millisecond
		m.add(&engine.CodeIssued{Email: record.Email, At: noon, Steady: steady, Mailed: true})
		m.add(&engine.AccountCreated{Account: id, Email: record.Email, At: noon})
		m.add(&engine.SessionOpened{
			Account: id, New: true, Email: record.Email, Token: keyOf(id << 32), Expires: noon.Add(engine.SessionLifetime), At: noon, Steady: steady,
		})
		m.add(&engine.KeyCreated{Account: id, Key: record.Keys[0]})
		m.add(&engine.Leased{Account: id, Day: engine.DateOf(noon), Count: 16, Steady: steady, KeyID: record.Keys[0].ID, At: noon})
	}
}

// history writes the snapshot of days of history.
func (m *directoryMaker) history(institutions, currencies, days int) {
	m.add(&engine.Rejected{Currency: "USD", HeldID: 1, At: noon, By: "ana"})
	var boards []*engine.Board
	for _, currency := range []string{"CAD", "CHF", "EUR", "GBP", "USD"}[:currencies] {
		state := engine.BookState{Currency: currency}
		for date := engine.DateOf(noon).AddDays(1 - days); date <= engine.DateOf(noon); date++ {
			for i := range institutions {
				n := int(date) + i
				state.History = append(state.History, engine.HistoryEntry{
					Date: date, InstitutionID: fmt.Sprintf("institution-%02d", i), Currency: currency, Channel: engine.Branch, Kind: engine.Commercial,
					Buy: decimal(fmt.Sprintf("57.%02d", n%40)), Sell: decimal(fmt.Sprintf("60.%02d", n%40)),
					SourceID: fmt.Sprintf("source-%02d", i), DatePrecision: engine.PrecisionDay, ObservedAt: date.Start().Add(12 * time.Hour), Rank: 100,
				})
			}
		}
		boards = append(boards, engine.Restore(state, testCatalogue(), engine.DefaultRules()).Board())
	}
	m.snapshot(func(w io.Writer) error { return writeSnapshot(w, boards) })
}
