package simulated

import (
	"bytes"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// TestFaults_Show wants each fault that changes documents to be seen in the bytes of every source that can have it.
func TestFaults_Show(t *testing.T) {
	site := publishedSite()
	changed := map[Fault]int{}
	for _, d := range enabled() {
		good := site.Document(d.ID, 0)
		for _, fault := range Faults() {
			must(t, site.SetFault("demo-"+d.ID, fault))
			if !bytes.Equal(site.Document(d.ID, 0).Body, good.Body) {
				changed[fault]++
			}
			must(t, site.SetFault(d.ID, ""))
		}
		if !bytes.Equal(site.Document(d.ID, 0).Body, good.Body) {
			t.Errorf("%s is not mended", d.ID)
		}
	}
	all := len(enabled())
	t.Logf("%v of %d sources", changed, all)
	for fault, most := range map[Fault]int{ // sources that the fault cannot reach: one side, one currency, workbooks
		Zeros: 0, LostDecimal: 0, DecimalComma: 0, Footnote: 0, NotAvailable: 0, WrongCurrency: 0, Layout: 2, Challenge: 0, Forbidden: 0,
		EmptyBody: 0, Half: 0, ErrorPage: 0, Swapped: 2, SameTwice: 2, MissingSide: 4, Reordered: all - 8,
	} {
		if changed[fault] < all-most {
			t.Errorf("%s changes %d of %d sources, want %d", fault, changed[fault], all, all-most)
		}
	}
}

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
