package simulated

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// TestSite_RoundTrip reads every source and wants exactly what the market quotes; its pages are not written from the definitions.
func TestSite_RoundTrip(t *testing.T) {
	market, at := NewMarket(1), noon()
	market.History(day("2026-08-01"), day("2026-09-20"))
	site := open(t, SiteConfig{Market: market})
	read, steps := 0, 50
	if raceDetector {
		steps = 10
	}
	for step := range steps {
		at = at.Add(7 * time.Minute)
		market.Step(at)
		for _, d := range enabled() {
			if d.Institution != "" && market.look().silent[d.Institution] {
				continue
			}
			got, err := readings(d, func(page int) *source.Document {
				if step%(steps/2) > 0 {
					return site.Document(d.ID, page)
				}
				return collect(t, site, d, page)
			})
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

// TestSite_DocumentIsWhatIsServed holds that tests without a network see the bytes that a client gets.
func TestSite_DocumentIsWhatIsServed(t *testing.T) {
	site := open(t, SiteConfig{})
	for _, d := range source.DefaultSet().Definitions() {
		for page := range d.Pages {
			inside := site.Document("demo-"+d.ID, page)
			if inside == nil {
				t.Errorf("%s, page %d: the site does not know its address", d.ID, page)
				continue
			}
			served := collect(t, site, d, page)
			if !bytes.Equal(served.Body, inside.Body) || served.ContentType != inside.ContentType {
				t.Errorf("%s, page %d: served %s, given %s", d.ID, page, served.ContentType, inside.ContentType)
			}
		}
	}
	if site.Document("nobody", 0) != nil || site.Document("bhd-site", 1) != nil || site.Document("bhd-site", -1) != nil {
		t.Error("a page that does not exist has a document")
	}
}

// TestMarket_EveryQuoteHasASource wants each quote of the market read by exactly one of the sources that are collected.
func TestMarket_EveryQuoteHasASource(t *testing.T) {
	m := NewMarket(1)
	listedQuotes := map[quoteOf]string{}
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
			t.Errorf("nobody reads %v", nameOf(o))
		}
	}
}

// TestMarket_HistoryIsOfTheSourcesThatGoOn: live collection continues what History began: the same sources, quotes and dates.
func TestMarket_HistoryIsOfTheSourcesThatGoOn(t *testing.T) {
	m := NewMarket(1)
	site := open(t, SiteConfig{Market: m})
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

// TestDefinitions_SayThatTheyAreNotReal wants nothing of the demo to pass for a real source, and nothing else to change.
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

// TestSite_RoundTripSeesWrongDefinitions plants what the round trip is there to find.
func TestSite_RoundTripSeesWrongDefinitions(t *testing.T) {
	site := open(t, SiteConfig{})
	good, _ := source.DefaultSet().Find("bdi-site")
	want := expected(site.market, good)
	planted := map[string]func(*source.Extract){
		"sides": func(e *source.Extract) {
			e.Fields[0].At, e.Fields[1].At = e.Fields[1].At, e.Fields[0].At
		},
		"currency":  func(e *source.Extract) { e.Fields[0].At = e.Fields[2].At },
		"forgotten": func(e *source.Extract) { e.Fields = e.Fields[:2] },
		"date":      func(e *source.Extract) { e.Date = nil },
		"nothing":   func(*source.Extract) {},
	}
	for name, plant := range planted {
		wrong := *good
		wrong.Pages = slices.Clone(good.Pages)
		wrong.Pages[0].Extract.Fields = slices.Clone(good.Pages[0].Extract.Fields)
		plant(&wrong.Pages[0].Extract)
		got, err := readings(&wrong, func(page int) *source.Document { return site.Document(good.ID, page) })
		if err != nil {
			t.Fatal(err)
		}
		if found := differences(got, want); (found == "") != (name == "nothing") {
			t.Errorf("%s: found %q", name, found)
		}
	}
}
