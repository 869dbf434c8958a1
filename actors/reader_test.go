package actors

import (
	"runtime"
	"slices"
	"sync"
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
	var owners []*currencyActor
	for _, code := range s.codes {
		owners = append(owners, stateOf(s.currencies[code]).(*currencyActor))
	}
	for len(s.readers) < count {
		if err := s.startReaders(1, stateOf(s.directory).(*directoryActor), owners); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// All readers give the same page, which is made once. They give another one when something has changed or expired, and
// when the clock was set back.
func TestReaders_ShareAndKeepPages(t *testing.T) {
	clock := &testClock{Now: noon}
	s := startWithReaders(t, 4, Config{Journal: &memoryJournal{}, Clock: clock.Read})
	observe(t, s, saying("a", noon, "USD", "57", "60", "popular", "bhd"))
	var last ratesPage
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
		ranking, rates := askReader(t, s.readers[0])
		if (ranking == last) != step.kept || len(ranking.Items) != step.ranked || rates.Items[0].Stale != (step.ranked == 0) {
			t.Errorf("%s: kept %t, %d ranked, stale %t", step.what, ranking == last, len(ranking.Items), rates.Items[0].Stale)
		}
		for i, reader := range slices.Concat(s.readers, s.readers) {
			if again, all := askReader(t, reader); again != ranking || all != rates {
				t.Errorf("%s: reader %d has a page of its own", step.what, i%len(s.readers))
			}
		}
		last = ranking
	}
}

// A currency informs the readers before it acknowledges a change, also while the directory, which informs them too, is
// busy.
func TestReaders_KnowWhatWasAcknowledged(t *testing.T) {
	s := startWithReaders(t, 4, Config{Journal: &memoryJournal{}})
	observe(t, s, saying("a", noon, "USD", "57", "60", "popular"))
	for _, reader := range s.readers {
		askReader(t, reader) // so that it has a page
	}
	setBusy := func(busy bool) {
		mu := withinBubble[sync.Mutex](s.directory, "mu")
		mu.Lock()
		defer mu.Unlock()
		*withinBubble[bool](s.directory, "running") = busy
	}
	for !isIdle(s.directory) {
		runtime.Gosched()
	}
	setBusy(true)
	observe(t, s, saying("a", noon.Add(time.Minute), "USD", "57", "61", "popular"))
	for i, reader := range s.readers {
		if got := askFor(t, reader, usdRanking()).Items[0].Sell.String(); got != "61" {
			t.Errorf("reader %d: %s, acknowledged was 61", i, got)
		}
	}
	setBusy(false)
}
