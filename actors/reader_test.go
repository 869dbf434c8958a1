package actors

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

type ratesPage = *engine.Page[*engine.Rate]

func askFor[Q any](t *testing.T, reader *mailbox.Ref, query Q) ratesPage {
	t.Helper()
	q := mailbox.NewRequest[Q, ratesPage](query)
	reader.Send(q)
	page, err := q.Await()
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func askReader(t *testing.T, reader *mailbox.Ref) (ranking, rates ratesPage) {
	t.Helper()
	return askFor(t, reader, usdRanking()), askFor(t, reader, engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 10}})
}

func startWithReaders(t *testing.T, count int, c Config) *System {
	t.Helper()
	s := start(t, c)
	if err := s.startReaders(count - len(s.readers)); err != nil {
		t.Fatal(err)
	}
	return s
}

// Each reader makes a page once. It gives another one when something has changed or expired, and when the clock was set
// back.
func TestReaders_KeepPages(t *testing.T) {
	clock := &testClock{Now: noon}
	s := startWithReaders(t, 4, Config{Journal: &memoryJournal{}, Clock: clock.Read})
	observe(t, s, saying("a", noon, "USD", "57", "60", "popular", "bhd"))
	last := make([]ratesPage, len(s.readers))
	for _, step := range []struct {
		what   string
		do     func()
		kept   bool
		ranked int
	}{
		{"at first", func() {}, false, 2},
		{"an hour later", func() { clock.advance(time.Hour) }, true, 2},
		{"after a change", func() { observe(t, s, saying("a", noon.Add(time.Hour), "USD", "57", "61", "popular")) }, false, 2},
		{"after the expiry of all", func() { clock.advance(26 * time.Hour) }, false, 0},
		{"after the clock was set back", func() { clock.advance(-26 * time.Hour) }, false, 2},
	} {
		step.do()
		for i, reader := range s.readers {
			ranking, rates := askReader(t, reader)
			if (ranking == last[i]) != step.kept || len(ranking.Items) != step.ranked || rates.Items[0].Stale != (step.ranked == 0) {
				t.Errorf("%s: reader %d: kept %t, %d ranked, stale %t", step.what, i, ranking == last[i], len(ranking.Items), rates.Items[0].Stale)
			}
			if again, all := askReader(t, reader); again != ranking || all != rates {
				t.Errorf("%s: reader %d made a page again", step.what, i)
			}
			last[i] = ranking
		}
	}
}

// The history of all currencies has the rows of every refresh, also of a second one on the same day.
func TestReaders_HistoryOfAllCurrenciesAfterEachRefresh(t *testing.T) {
	clock := &testClock{Now: noon}
	s := startWithReaders(t, 2, Config{Journal: &memoryJournal{}, Clock: clock.Read})
	today := engine.DateOf(noon)
	for i, currency := range []string{"USD", "EUR", "USD"} {
		clock.advance(time.Hour)
		observe(t, s, saying("a", clock.Read(), currency, "57", fmt.Sprint(60+i), "popular"))
		for range 2 * len(s.readers) { // each reader answers
			page, err := s.History(engine.HistoryQuery{PageRequest: engine.PageRequest{Limit: 10}, From: today, To: today})
			isNew := func(e engine.HistoryEntry) bool { return e.Sell.String() == fmt.Sprint(60+i) }
			if err != nil || !slices.ContainsFunc(page.Items, isNew) {
				t.Fatalf("after refresh %d: %v, %v", i+1, page.Items, err)
			}
		}
	}
}

// The pages of a reader stay bounded, however many different questions are asked.
func TestReaders_KeepABoundedNumberOfRows(t *testing.T) {
	s := startWithReaders(t, 1, Config{Journal: &memoryJournal{}})
	observe(t, s, saying("a", noon, "USD", "57", "60", "popular", "bhd"))
	reader := stateOf(s.readers[0]).(*readerActor)
	for cursor := range 3 * pageRowsMax / pageRowsBase {
		askFor(t, s.readers[0], engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 10, Cursor: cursor}})
		if p := &reader.pages; p.rows > pageRowsMax || len(p.rates)*pageRowsBase > p.rows {
			t.Fatalf("after %d questions %d pages of %d rows", cursor+1, len(p.rates), p.rows)
		}
	}
}
