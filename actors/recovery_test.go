package actors

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tasard/tasard/engine"
)

func act(t *rapid.T, s *System, now time.Time) {
	currency := rapid.SampledFrom([]string{"USD", "EUR"})
	institution := rapid.SampledFrom([]string{"popular", "bhd", "caribe", "vimenca", "bcrd"})
	source := rapid.SampledFrom([]string{"a", "infodolar", "manual", "past"})
	switch rapid.IntRange(0, 9).Draw(t, "action") {
	case 0:
		key := engine.QuoteKey{Institution: institution.Draw(t, "of"), Channel: engine.Branch, Kind: engine.Commercial}
		_, _ = s.Execute(currency.Draw(t, "in"), engine.Withdraw{Key: key, SourceID: source.Draw(t, "from"), By: "ana"})
		return
	case 1, 2:
		all, _ := s.Quarantine("")
		if len(all) == 0 {
			return
		}
		one := rapid.SampledFrom(all).Draw(t, "held")
		order := engine.Command(engine.Reject{QuarantineID: one.ID, By: "ana"})
		if rapid.Bool().Draw(t, "release") {
			order = engine.Release{QuarantineID: one.ID, By: "ana"}
		}
		_, _ = s.Execute(one.Observation.Currency, order)
		return
	}
	side := rapid.SampledFrom([]string{"", "0", "56", "57", "57.0", "57.25", "58.949999999999996", "60", "64", "6.09", "x\xff"})
	slot, day := now.Truncate(8*time.Hour), engine.DateOf(now)
	var refreshes []engine.Refresh
	for range rapid.IntRange(1, 3).Draw(t, "refreshes") {
		refresh := engine.Refresh{
			SourceID:   source.Draw(t, "source"),
			ObservedAt: now.Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "age")) * time.Hour),
			Complete:   rapid.Bool().Draw(t, "complete"),
			Slot:       rapid.SampledFrom([]time.Time{{}, slot, slot.Add(-8 * time.Hour), slot.Add(8 * time.Hour)}).Draw(t, "slot"),
		}
		for range rapid.IntRange(0, 5).Draw(t, "observations") {
			refresh.Observations = append(refresh.Observations, engine.Observation{
				InstitutionID: institution.Draw(t, "institution"), Currency: currency.Draw(t, "currency"),
				Channel: rapid.SampledFrom([]engine.Channel{"", engine.Branch, engine.Digital}).Draw(t, "channel"),
				Kind:    rapid.SampledFrom([]engine.Kind{"", engine.Reference}).Draw(t, "kind"),
				Buy:     side.Draw(t, "buy"), Sell: side.Draw(t, "sell"),
				EffectiveDate: rapid.SampledFrom([]engine.Date{0, 0, day, day - 1, 730_000}).Draw(t, "date"),
				Document:      rapid.SampledFrom([]string{"", "5e1f", "\xff"}).Draw(t, "document"),
				PublishedAt:   rapid.SampledFrom([]time.Time{{}, now.Add(-time.Hour), now.Add(-time.Second / 3)}).Draw(t, "published"),
			})
		}
		refreshes = append(refreshes, refresh)
	}
	observe(t, s, refreshes...)
}

// After any run the state that is built only from the journal, and the one from a snapshot and the
// records after it, are the state that was live; also after further runs on top of them.
func TestReplayedStateIsLiveState(t *testing.T) {
	snapshots, events, left := 0, 0, cases(25, 100)
	rapid.Check(t, func(r *rapid.T) {
		if left == 0 {
			return
		}
		left--
		clock := &testClock{Now: noon}
		journal := &keepingJournal{memoryJournal: &memoryJournal{}}
		for range rapid.IntRange(1, 3).Draw(r, "lives") {
			s := live(r, Config{Journal: journal, Clock: clock.Read, SnapshotRecords: rapid.IntRange(1, 9).Draw(r, "every")})
			for range rapid.IntRange(1, 9).Draw(r, "steps") {
				clock.advance(time.Duration(rapid.IntRange(0, 40).Draw(r, "hours")) * time.Hour)
				act(r, s, clock.Read())
			}
			want := states(r, s)
			same(r, "snapshot and tail", want, journal.crashed(), clock)
			same(r, "the log only", want, &memoryJournal{records: journal.all}, clock)
			if rapid.Bool().Draw(r, "orderly") {
				_ = s.Close()
				same(r, "an orderly end", want, journal.crashed(), clock)
			}
			_ = s.Close() // what it adds is not a fact
			journal = &keepingJournal{memoryJournal: journal.crashed(), all: journal.all}
		}
		events += len(journal.all)
		if journal.snapshot != nil {
			snapshots++
		}
	})
	t.Logf("%d events, %d runs with a snapshot", events, snapshots)
	if events == 0 || snapshots == 0 {
		t.Error("nothing happened")
	}
}

type keepingJournal struct {
	*memoryJournal
	all [][]byte
}

func (k *keepingJournal) Append(expected uint64, records [][]byte) (uint64, error) {
	last, err := k.memoryJournal.Append(expected, records)
	if err == nil {
		k.all = append(k.all, k.records[len(k.records)-len(records):]...)
	}
	return last, err
}

func live(t panicStops, c Config) *System {
	c.Catalogue = testCatalogue()
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	awaitReady(t, s)
	return s
}

func same(t panicStops, what string, want []engine.SavedCurrency, journal *memoryJournal, clock *testClock) {
	t.Helper()
	s := live(t, Config{Journal: journal, Clock: clock.Read})
	defer func() { _ = s.Close() }()
	if got := states(t, s); !reflect.DeepEqual(normal(want), normal(got)) {
		t.Fatalf("%s gives another state:\nwant %+v\ngot  %+v", what, want, got)
	}
}

// normal makes no difference between an empty and an absent quarantine.
func normal(all []engine.SavedCurrency) []engine.SavedCurrency {
	for i := range all {
		if len(all[i].Quarantine) == 0 {
			all[i].Quarantine = nil
		}
	}
	return all
}

func TestUnknownRecordIsRefused(t *testing.T) {
	known := mustEncode(t, &engine.Rejected{Currency: "USD", QuarantineID: 1, At: noon, By: "ana"})
	for name, record := range map[string][]byte{
		"an unknown kind":     {0xfa, 0x01, 0x00}, // field 31, empty
		"not protobuf at all": []byte("hello"),
	} {
		s := open(t, Config{Journal: &memoryJournal{records: [][]byte{known, record}}})
		<-s.Done()
		if err := s.Err(); err == nil || !strings.Contains(err.Error(), "record 2") || name != "not protobuf at all" && !errors.Is(err, ErrUnknownRecord) {
			t.Errorf("%s: %v", name, err)
		}
		_, err := s.Rates(engine.RatesQuery{})
		if !isCode(err, engine.CodeDataUnavailable) {
			t.Errorf("%s: an answer after a replay that failed: %v", name, err)
		}
	}
	s := start(t, Config{Journal: &memoryJournal{records: [][]byte{append(known, 0xfa, 0x01, 0x00)}}}) // an unknown field beside a known kind
	if s.Err() != nil {
		t.Errorf("an unknown field: %v", s.Err())
	}
}
