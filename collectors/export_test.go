package collectors

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

func decimal(text string) engine.Decimal {
	d, err := engine.ParseDecimal(text)
	if err != nil {
		panic(err)
	}
	return d
}

func TestFromOffer(t *testing.T) {
	published := instant("2025-01-02T11:00:00Z")
	got := FromOffer("USD", engine.Offer{
		Key:      engine.QuoteKey{Institution: "bdi", Channel: engine.Branch, Kind: engine.Commercial},
		SourceID: "bdi-site", Buy: decimal("58.50"), EffectiveDate: engine.DateOf(published), PublishedAt: published,
		CollectedAt: published, LastCheckedAt: published.Add(time.Hour), ExpiresAt: published.Add(27 * time.Hour),
	})
	want := Observation{
		SourceID: "bdi-site", ObservedAt: published.Add(time.Hour),
		Observation: engine.Observation{
			InstitutionID: "bdi", Currency: "USD", Channel: engine.Branch, Kind: engine.Commercial, Buy: "58.50",
			EffectiveDate: engine.DateOf(published), PublishedAt: published,
		},
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestT5_FromHistory(t *testing.T) {
	observed := instant("2025-01-10T15:00:00Z")
	today := engine.DateOf(observed)
	tests := []struct {
		date      engine.Date
		precision engine.DatePrecision
		effective engine.Date
	}{
		{today, engine.PrecisionUnknown, 0},
		{today, engine.PrecisionDatetime, today},
		{today + 3, engine.PrecisionDay, today + 3},
	}
	for _, test := range tests {
		got := FromHistory(engine.HistoryEntry{
			Date: test.date, InstitutionID: "bdi", Currency: "USD", Channel: engine.Branch, Kind: engine.Commercial,
			Sell: decimal("60"), SourceID: "bdi-site", DatePrecision: test.precision, ObservedAt: observed, Rank: 7,
		})
		want := Observation{
			SourceID: "bdi-site", ObservedAt: observed,
			Observation: engine.Observation{
				InstitutionID: "bdi", Currency: "USD", Channel: engine.Branch, Kind: engine.Commercial, Sell: "60",
				EffectiveDate: test.effective,
			},
		}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", test.precision, got, want)
		}
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

// observe feeds refreshes to a new book of a currency and wants none refused.
func observe(t *testing.T, currency string, refreshes []engine.Refresh, now time.Time) engine.BookState {
	t.Helper()
	catalogue := engine.DefaultCatalogue()
	book := engine.NewBook(currency, catalogue, engine.DefaultRules())
	parts, refused := engine.Split(catalogue, refreshes)
	if len(refused) > 0 {
		t.Fatalf("%s %+v", refused[0].Detail, refused[0].Observation)
	}
	for _, part := range parts[currency] {
		decision, err := book.Decide(engine.Observe{Refreshes: []engine.Refresh{part.Refresh}}, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, refusal := range decision.Receipt.Refused {
			t.Fatalf("%s: %s %s %+v", currency, refusal.Reason, refusal.Detail, refusal.Observation)
		}
		for _, event := range decision.Events {
			book.Apply(event)
		}
	}
	return book.State()
}

// TestFromState wants a book, exported and imported, to be the book that it was.
func TestFromState(t *testing.T) {
	m, to := NewMarket(3), day("2026-09-20")
	refreshes := append(m.History(to-60, to), m.Refreshes((to + 1).Start().Add(9*time.Hour))...)
	now := m.last
	for _, currency := range []string{"USD", "EUR", "JPY"} {
		before := observe(t, currency, refreshes, now)
		var file bytes.Buffer
		w, err := NewWriter(&file, CSV)
		for _, row := range FromState(before) {
			err = errors.Join(err, w.Write(row))
		}
		if err = errors.Join(err, w.Flush()); err != nil {
			t.Fatal(err)
		}
		var imported []engine.Refresh
		for _, batch := range readText(t, file.String(), "x.csv").batches {
			imported = append(imported, batch.Refresh)
		}
		after := observe(t, currency, imported, now)
		for i := range before.Offers {
			before.Offers[i].CollectedAt = after.Offers[i].CollectedAt
		}
		for i := range before.History {
			if row := &before.History[i]; row.DatePrecision == engine.PrecisionDatetime {
				row.DatePrecision = after.History[i].DatePrecision
			}
		}
		if !slices.Equal(before.Offers, after.Offers) || !slices.Equal(before.History, after.History) {
			t.Errorf("%s is not the same after export and import", currency)
		}
		if len(before.History) < 40 {
			t.Errorf("%s has only %d rows of history", currency, len(before.History))
		}
	}
}
