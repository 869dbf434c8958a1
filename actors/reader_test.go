package actors

import (
	"fmt"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// askReader asks one reader for the ranking of dollars and for all rates.
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

// startWithReaders starts a node with so many readers.
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

// All readers give the same page, with what was made of it: a page is made once.
func TestReaders_ShareThePages(t *testing.T) {
	s := startWithReaders(t, 4, Config{Journal: &memoryJournal{}})
	observe(t, s, saying("a", noon, "USD", "57", "60", "popular", "bhd"))
	ranking, rates := askReader(t, s.readers[0])
	for i, reader := range s.readers {
		for range 2 {
			if again, all := askReader(t, reader); again != ranking || all != rates {
				t.Errorf("reader %d has a page of its own", i)
			}
		}
	}
}

// olderPages counts the answers of readers that are older than a change that was acknowledged before they were asked.
func olderPages(t *testing.T, s *System) int {
	older := 0
	for i := range 100 {
		sell := fmt.Sprintf("60.%02d", i)
		observe(t, s, saying("a", noon.Add(time.Duration(i)*time.Second), "USD", "57", sell, "popular"))
		for _, reader := range s.readers {
			ranking, rates := askReader(t, reader)
			if ranking.Items[0].Sell.String() != sell || rates.Items[0].Sell.String() != sell {
				older++
			}
		}
	}
	return older
}

func TestReaders_ReadWhatWasAcknowledged(t *testing.T) {
	s := startWithReaders(t, 4, Config{Journal: &memoryJournal{}, Clock: func() time.Time { return noon.Add(time.Hour) }})
	if older := olderPages(t, s); older > 0 {
		t.Errorf("%d answers are older than what was acknowledged", older)
	}
}

// The test above notices readers that are not told of changes.
func TestReaders_ReadWhatWasAcknowledged_Control(t *testing.T) {
	s := startWithReaders(t, 4, Config{Journal: &memoryJournal{}, Clock: func() time.Time { return noon.Add(time.Hour) }})
	stateOf(s.currencies["USD"]).(*currencyActor).readers = nil
	clear(stateOf(s.directory).(*directoryActor).readers)
	if older := olderPages(t, s); older == 0 {
		t.Error("every answer is new")
	}
}

// Every reader answers as the time is: past an expiry, and when the clock was set back before it.
func TestReaders_FollowTheClock(t *testing.T) {
	clock := &testClock{Now: noon}
	s := startWithReaders(t, 3, Config{Journal: &memoryJournal{}, Clock: clock.Read})
	observe(t, s, saying("a", noon, "USD", "57", "60", "popular"))
	for _, step := range []time.Duration{0, 72 * time.Hour, -72 * time.Hour, time.Second} {
		clock.advance(step)
		fresh := clock.Now.Sub(noon) < time.Hour
		for i, reader := range s.readers {
			ranking, rates := askReader(t, reader)
			if (len(ranking.Items) == 1) != fresh || rates.Items[0].Stale == fresh {
				t.Errorf("reader %d at %s: %d ranked, stale %v", i, clock.Now, len(ranking.Items), rates.Items[0].Stale)
			}
		}
	}
}
