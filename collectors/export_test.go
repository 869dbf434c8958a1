package collectors

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/engine"
)

func decimal(text string) engine.Decimal {
	d, err := engine.ParseDecimal(text)
	if err != nil {
		panic(err)
	}
	return d
}

// TestExport_Lines looks at the lines of a small book: a value that was held, then believed, and later confirmed.
func TestExport_Lines(t *testing.T) {
	at := func(hour int) time.Time { return instant("2025-01-10T12:00:00Z").Add(time.Duration(hour) * time.Hour) }
	key := engine.QuoteKey{Institution: "bdi", Channel: engine.Branch, Kind: engine.Commercial}
	row := func(hour int, buy string, precision engine.DatePrecision, date engine.Date) engine.HistoryEntry {
		return engine.HistoryEntry{
			Date: date, InstitutionID: "bdi", Currency: "USD", Channel: engine.Branch, Kind: engine.Commercial,
			Buy: decimal(buy), SourceID: "bdi-site", DatePrecision: precision, ObservedAt: at(hour),
		}
	}
	today := engine.DateOf(at(0))
	state := engine.BookState{
		Currency: "USD",
		Offers: []engine.Offer{{
			Key: key, SourceID: "bdi-site", Buy: decimal("58.50"),
			CollectedAt: at(0), LastCheckedAt: at(24), ExpiresAt: at(50),
		}},
		History: []engine.HistoryEntry{
			row(-72, "57", engine.PrecisionDatetime, today-3),  // another value
			row(-48, "58.5", engine.PrecisionUnknown, today-2), // the offer's value, before it was new
			row(0, "58.5", engine.PrecisionUnknown, today),
			row(24, "58.50", engine.PrecisionUnknown, today+1),
		},
		Held: []engine.Held{
			{ID: 1, SourceID: "bdi-site", ObservedAt: at(-73), Reason: engine.Jump,
				Observation: engine.Observation{InstitutionID: "bdi", Currency: "USD", Channel: engine.Branch, Buy: "57"}},
			{ID: 2, SourceID: "bdi-site", ObservedAt: at(-74), Reason: engine.Zero,
				Observation: engine.Observation{InstitutionID: "bdi", Currency: "USD", Channel: engine.Branch, Buy: "0"}},
		},
	}
	wantLines(t, "all", Export([]engine.BookState{state}), at, []string{"-73 57", "-72 57 published", "0 58.50", "24 58.50", "-48 58.5"})
	wantLines(t, "offers", ExportOffers([]engine.BookState{state}), at, []string{"0 58.50", "24 58.50"})
	wantLines(t, "history", ExportHistory([]engine.BookState{state}), at, []string{"-72 57 published", "-48 58.5", "0 58.5", "24 58.50"})
}

// wantLines holds lines against "hours buy" and, where it is given, "published".
func wantLines(t *testing.T, what string, lines []Observation, at func(int) time.Time, want []string) {
	t.Helper()
	var got []string
	for _, line := range lines {
		text := fmt.Sprintf("%d %s", int(line.ObservedAt.Sub(at(0))/time.Hour), line.Buy)
		if !line.PublishedAt.IsZero() {
			text += " published"
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestSortObservations(t *testing.T) {
	rows := readReal(t).rows
	shuffled := slices.Clone(rows)
	slices.Reverse(shuffled)
	SortObservations(shuffled)
	seen := map[string]bool{}
	last := ""
	for i, row := range shuffled {
		if i > 0 && row.ObservedAt.Before(shuffled[i-1].ObservedAt) {
			t.Fatalf("row %d is older than the one before", i)
		}
		if group := fmt.Sprint(row.SourceID, row.ObservedAt); group != last {
			if seen[group] {
				t.Fatalf("%s is torn apart", group)
			}
			seen[group], last = true, group
		}
	}
}

// ledger has the books of all currencies, as a node has them.
type ledger struct {
	t         testing.TB
	catalogue *engine.Catalogue
	books     map[string]*engine.Book
}

func newLedger(t testing.TB, rules engine.Rules, sources ...engine.Source) *ledger {
	l := &ledger{t, engine.DefaultCatalogue().WithSources(sources...), map[string]*engine.Book{}}
	for _, currency := range l.catalogue.Currencies() {
		l.books[currency.Code] = engine.NewBook(currency.Code, l.catalogue, rules)
	}
	return l
}

// observe feeds refreshes to the books, and gives what is refused.
func (l *ledger) observe(refreshes []engine.Refresh, now time.Time) []engine.Refusal {
	l.t.Helper()
	parts, refused := engine.Split(l.catalogue, refreshes)
	for code, list := range parts {
		var own []engine.Refresh
		for _, part := range list {
			own = append(own, part.Refresh)
		}
		decided, err := l.books[code].Decide(engine.Observe{Refreshes: own}, now)
		if err != nil {
			l.t.Fatalf("%s: %v", code, err)
		}
		refused = append(refused, decided.Receipt.Refused...)
		for _, event := range decided.Events {
			l.books[code].Apply(event)
		}
	}
	return refused
}

// observeAll feeds them one after the other, and wants none refused.
func (l *ledger) observeAll(refreshes []engine.Refresh, now time.Time) *ledger {
	l.t.Helper()
	for _, refresh := range refreshes {
		for _, refusal := range l.observe([]engine.Refresh{refresh}, now) {
			l.t.Fatalf("%s %s %+v", refusal.Reason, refusal.Detail, refusal.Observation)
		}
	}
	return l
}

// TestT5_Export wants a book, exported and imported, to be the book that it was.
func TestT5_Export(t *testing.T) {
	m, to := simulated.NewMarket(3), engine.DateOf(instant("2026-09-20T12:00:00Z"))
	now := (to + 1).Start().Add(9 * time.Hour)
	refreshes := append(m.History(to-60, to), m.Refreshes(now)...)
	all := newLedger(t, engine.DefaultRules()).observeAll(refreshes, now)
	for _, currency := range []string{"USD", "EUR", "JPY"} {
		before := all.books[currency].State()
		var file bytes.Buffer
		w, err := NewWriter(&file, CSV)
		for _, row := range Export([]engine.BookState{before}) {
			err = errors.Join(err, w.Write(row))
		}
		if err = errors.Join(err, w.Flush()); err != nil {
			t.Fatal(err)
		}
		var imported []engine.Refresh
		for _, batch := range readText(t, file.String(), "x.csv").batches {
			imported = append(imported, batch.Refresh)
		}
		after := newLedger(t, engine.DefaultRules()).observeAll(imported, now).books[currency].State()
		if !slices.Equal(before.Offers, after.Offers) || !slices.Equal(before.History, after.History) {
			t.Errorf("%s is not the same after export and import", currency)
		}
		if len(before.History) < 40 {
			t.Errorf("%s has only %d rows of history", currency, len(before.History))
		}
	}
}
