package simulated

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func days(seed uint64, count int) []engine.Refresh {
	to := day("2026-09-20")
	m := NewMarket(seed)
	all := m.History(to.AddDays(1-count), to)
	for hour := range 24 {
		all = append(all, m.Refreshes((to + 1).Start().Add(time.Duration(hour)*time.Hour))...)
	}
	return all
}

func day(text string) engine.Date {
	d, err := engine.ParseDate(text)
	if err != nil {
		panic(err)
	}
	return d
}

func instant(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return at
}

func asCSV(t *testing.T, refreshes []engine.Refresh) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := collectors.NewWriter(&out, collectors.CSV)
	for _, refresh := range refreshes {
		for _, o := range refresh.Observations {
			err = errors.Join(err, w.Write(collectors.Observation{Observation: o, SourceID: refresh.SourceID, ObservedAt: refresh.ObservedAt}))
		}
	}
	must(t, errors.Join(err, w.Flush()))
	return out.Bytes()
}

// TestMarketGolden holds that a seed gives the same bytes again, so that a run can be repeated from its seed.
func TestMarketGolden(t *testing.T) {
	const golden = "testdata/market.csv"
	m := NewMarket(1)
	refreshes := m.History(day("2026-09-17"), day("2026-09-20"))
	for _, at := range []string{"2026-09-21T12:00:00Z", "2026-09-21T16:00:00Z", "2026-09-21T21:00:00Z"} {
		refreshes = append(refreshes, m.Refreshes(instant(at))...)
	}
	got := asCSV(t, refreshes)
	if *update {
		must(t, os.WriteFile(golden, got, 0o600))
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the market of seed 1 is not that of %s (%v); go test -run Golden -update rewrites it", golden, err)
	}
	if bytes.Equal(asCSV(t, days(7, 9)), asCSV(t, days(8, 9))) {
		t.Error("two seeds gave one market")
	}
}

// TestI3_MarketIsBelieved feeds a year to the engine: the demo must never run into its own firewall.
func TestI3_MarketIsBelieved(t *testing.T) {
	refreshes := days(2, sweep(60, 365))
	now := refreshes[len(refreshes)-1].ObservedAt
	catalogue := engine.DefaultCatalogue().WithSources(Definitions(source.DefaultSet()).Sources()...)
	parts, refused := engine.SplitByCurrency(catalogue, refreshes)
	for _, currency := range catalogue.Currencies() {
		book := engine.NewCurrencyState(currency.Code, catalogue, engine.DefaultRules())
		for _, part := range parts[currency.Code] {
			decision, err := book.Decide(engine.Observe{Refreshes: []engine.Refresh{part.Refresh}}, now)
			must(t, err)
			refused = append(refused, decision.Receipt.Refused...)
			for _, event := range decision.Events {
				book.Apply(event)
			}
		}
		if len(book.Saved().SourceQuotes) == 0 {
			t.Errorf("no institution quotes %s", currency.Code)
		}
	}
	for _, refusal := range refused {
		t.Errorf("%s %s %+v", refusal.Reason, refusal.Detail, refusal.Observation)
	}
}
