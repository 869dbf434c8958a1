package simulated

import (
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// TestSite_RoundTrip reads every source and wants exactly what the market quotes; its pages are not written from the
// definitions.
func TestSite_RoundTrip(t *testing.T) {
	market, at := NewMarket(1), noon()
	market.History(day("2026-08-01"), day("2026-09-20"))
	site := NewSite(market)
	read, steps := 0, sweep(10, 50)
	for step := range steps {
		at = at.Add(7 * time.Minute)
		market.Step(at)
		for _, d := range enabled() {
			got, err := readings(d, func(page int) *source.Document { return site.Document(d.ID, page) })
			if err != nil {
				t.Fatalf("step %d: %s: %v", step, d.ID, err)
			}
			if wrong := differences(got, expected(market, d)); wrong != "" {
				t.Fatalf("step %d: %s:\n%s", step, d.ID, wrong)
			}
			read += len(got)
		}
	}
	t.Logf("%d quotes of %d sources read in %d steps", read, len(enabled()), steps)
}

// TestMarket_EveryQuoteHasASource wants each quote of the market read by exactly one of the sources that are
// collected.
func TestMarket_EveryQuoteHasASource(t *testing.T) {
	m := NewMarket(1)
	listedQuotes := map[quoteID]string{}
	for _, refresh := range m.Refreshes(noon()) {
		for _, o := range refresh.Observations {
			name := nameOf(o)
			if other, twice := listedQuotes[name]; twice {
				t.Errorf("%v is in %s and %s", name, other, refresh.SourceID)
			}
			listedQuotes[name] = refresh.SourceID
		}
	}
	for _, o := range m.Quotes() {
		if _, ok := listedQuotes[nameOf(o)]; !ok {
			t.Errorf("no definition reads %v", nameOf(o))
		}
	}
}

// TestMarket_HistoryIsOfTheSourcesThatGoOn: live collection continues what History began: the same sources, quotes
// and dates.
func TestMarket_HistoryIsOfTheSourcesThatGoOn(t *testing.T) {
	m := NewMarket(1)
	site := NewSite(m)
	set := Definitions(source.DefaultSet())
	for _, refresh := range m.History(day("2026-09-18"), day("2026-09-18")) {
		d, ok := set.Find(refresh.SourceID)
		if !ok {
			t.Errorf("%s is no definition", refresh.SourceID)
			continue
		}
		live, err := readings(d, func(page int) *source.Document { return site.Document(d.ID, page) })
		if err != nil {
			t.Errorf("%s: %v", d.ID, err)
		}
		for _, o := range refresh.Observations {
			if got, ok := live[nameOf(o)]; !ok || !same(got, o) {
				t.Errorf("%s: the history says %+v, its page %+v", d.ID, o, live[nameOf(o)])
			}
		}
	}
}

// TestDefinitions_SayThatTheyAreNotReal wants simulated sources to differ from real ones in id, name and address
// only.
func TestDefinitions_SayThatTheyAreNotReal(t *testing.T) {
	real := source.DefaultSet()
	demo := Definitions(real).Definitions()
	if len(demo) != len(real.Definitions()) {
		t.Fatalf("%d definitions of %d", len(demo), len(real.Definitions()))
	}
	for _, d := range demo {
		from, ok := real.Find(d.ID[len("demo-"):])
		if !ok || d.Name != "Demo, tasas simuladas: "+from.Name || d.URL != "" || len(d.Pages) != len(from.Pages) {
			t.Errorf("%s is %q at %q", d.ID, d.Name, d.URL)
		}
	}
}
