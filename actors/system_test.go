package actors

import (
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 6, 17, 16, 0, 0, 0, time.UTC)
	s, err := Open(Config{Dir: dir, Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	<-s.Ready()
	r, err := s.Observe([]engine.Refresh{{SourceID: "a", ObservedAt: now, Observations: []engine.Observation{{InstitutionID: "popular", Currency: "USD", Buy: "57", Sell: "60"}}}})
	t.Log(r, err)
	p, err := s.Ranking(engine.RankingQuery{Filter: engine.Filter{Currency: "USD"}, Cut: engine.Cut{Limit: 10}, Operation: engine.Buy})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(p.Items[0])
	a, _ := s.States()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open(Config{Dir: dir, Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	<-s.Ready()
	b, err := s.States()
	t.Log(s.Recovery(), len(a), len(b), err)
	s.Close()
}
