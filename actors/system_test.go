package actors

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// While nothing is loaded: 2 s while the log replays, 60 s when it is empty, and the catalogue answers
// once it is known that it is.
func TestE4_NothingLoadedYet(t *testing.T) {
	journal := newHeldJournal()
	s := open(t, Config{Journal: journal})
	<-journal.reading
	for name, ask := range everyRequest(s) {
		unavailable(t, "while replaying: "+name, ask(), 2*time.Second)
	}
	_, err := s.Observe(nil)
	unavailable(t, "while replaying: Observe", err, 2*time.Second)
	close(journal.gate)
	<-s.Ready()
	for name, ask := range everyRequest(s) {
		switch err := ask(); name {
		case "Rates", "Ranking", "History":
			unavailable(t, "empty: "+name, err, time.Minute)
		default:
			if err != nil {
				t.Errorf("empty: %s: %v, want an answer from the catalogue", name, err)
			}
		}
	}
	observe(t, s, saying("a", noon, "USD", "57", "60", "popular"))
	for name, ask := range everyRequest(s) {
		if err := ask(); err != nil {
			t.Errorf("with one rate: %s: %v", name, err)
		}
	}
}

func TestE4_RetryAfterFollowsThePace(t *testing.T) {
	p := &progress{began: noon}
	p.total.Store(1000)
	for _, c := range []struct {
		done  uint64
		spent time.Duration
		want  time.Duration
	}{
		{0, time.Second, 2 * time.Second}, {10, 0, 2 * time.Second}, {500, 7 * time.Second, 7 * time.Second},
		{999, time.Minute, time.Second}, {1, time.Minute, 30 * time.Second},
	} {
		p.done.Store(c.done)
		if got := p.retryAfter(noon.Add(c.spent)); got != c.want {
			t.Errorf("%d of 1000 after %s: %s, want %s", c.done, c.spent, got, c.want)
		}
	}
}

// newHeldJournal is an empty journal whose snapshot is not found before the test opens the gate.
func newHeldJournal() *heldJournal {
	return &heldJournal{memoryJournal: &memoryJournal{}, reading: make(chan struct{}), gate: make(chan struct{})}
}

type heldJournal struct {
	*memoryJournal
	reading, gate chan struct{}
}

func (h *heldJournal) Read(from uint64, visit func(uint64, []byte) error) error {
	close(h.reading)
	<-h.gate
	return h.memoryJournal.Read(from, visit)
}

func everyRequest(s *System) map[string]func() error {
	cut := engine.PageRequest{Limit: 10}
	return map[string]func() error{
		"Currencies":   func() error { _, err := s.Currencies(); return err },
		"Institutions": func() error { _, err := s.Institutions(engine.InstitutionsQuery{PageRequest: cut}); return err },
		"Institution":  func() error { _, err := s.Institution("popular"); return err },
		"Rates":        func() error { _, err := s.Rates(engine.RatesQuery{PageRequest: cut}); return err },
		"Ranking":      func() error { _, err := s.Ranking(usdRanking()); return err },
		"History": func() error {
			_, err := s.History(engine.HistoryQuery{PageRequest: cut, From: 1, To: engine.DateOf(noon)})
			return err
		},
		"Quarantine": func() error { _, err := s.Quarantine(""); return err },
	}
}

func unavailable(t *testing.T, what string, err error, retryAfter time.Duration) {
	t.Helper()
	var e *engine.Error
	if !errors.As(err, &e) || e.Code != engine.CodeDataUnavailable || e.RetryAfter != retryAfter {
		t.Errorf("%s: %v, want %s and Retry-After %s", what, err, engine.CodeDataUnavailable, retryAfter)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	clock := func() time.Time { return noon }
	for name, c := range map[string]Config{
		"no clock": {Dir: "x"}, "no place": {Clock: clock}, "negative": {Dir: "x", Clock: clock, MailboxMax: -1},
		"negative wait": {Dir: "x", Clock: clock, WriteTimeout: -1}, "negative limit": {Dir: "x", Clock: clock, SnapshotRecords: -1},
	} {
		if _, err := Open(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	c := Config{Dir: t.TempDir(), Clock: clock}
	start(t, c)
	if _, err := Open(c); !errors.Is(err, wal.ErrLocked) {
		t.Errorf("a second system on the directory: %v, want %v", err, wal.ErrLocked)
	}
}

func TestClose(t *testing.T) {
	t.Run("again", func(t *testing.T) {
		s := start(t, Config{Dir: t.TempDir()})
		for range 3 {
			must(t, s.Close())
		}
		<-s.Done()
		if s.Err() != nil {
			t.Errorf("Err after an orderly end: %v", s.Err())
		}
		for name, ask := range everyRequest(s) {
			unavailable(t, "after Close: "+name, ask(), mailbox.ErrStopped.RetryAfter)
		}
		_, err := s.Observe(nil)
		unavailable(t, "after Close: Observe", err, mailbox.ErrStopped.RetryAfter)
	})
	t.Run("while replaying", func(t *testing.T) {
		journal := newHeldJournal()
		s := open(t, Config{Journal: journal})
		<-journal.reading
		var group sync.WaitGroup
		group.Go(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		close(journal.gate)
		group.Wait()
		<-s.Done()
	})
}
