package actors

import (
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

func askReader(t *testing.T, reader *mailbox.Ref) (*engine.Page[*engine.Rate], *engine.Page[*engine.Rate]) {
	t.Helper()
	ofUSD := mailbox.NewRequest[engine.RankingQuery, *engine.Page[*engine.Rate]](usdRanking())
	reader.Send(ofUSD)
	ranking, err := ofUSD.Await()
	if err != nil {
		t.Fatal(err)
	}
	ofAll := mailbox.NewRequest[engine.RatesQuery, *engine.Page[*engine.Rate]](engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 10}})
	reader.Send(ofAll)
	rates, err := ofAll.Await()
	if err != nil {
		t.Fatal(err)
	}
	return ranking, rates
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
	var last *engine.Page[*engine.Rate]
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
