package simulated

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sweep(sample, whole int) int {
	if os.Getenv("SWEEP") == "whole" {
		return whole
	}
	return sample
}

// noon is a Monday, so that the reference rate of Friday counts.
func noon() time.Time { return instant("2026-09-21T16:00:00Z") }

func publishedSite() *Site {
	market := NewMarket(1)
	market.History(day("2026-09-14"), day("2026-09-20"))
	market.Step(noon())
	return NewSite(market)
}

func startSite(t *testing.T, market *Market) *Site {
	t.Helper()
	site := NewSite(market)
	must(t, site.Start())
	t.Cleanup(func() {
		must(t, site.Close())
	})
	return site
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// enabled are the sources that a node without secrets collects.
func enabled() []*source.Definition {
	return slices.DeleteFunc(slices.Clone(source.DefaultSet().Definitions()), func(d *source.Definition) bool { return !isEnabled(d) })
}

// readings are what the pages of a definition say, by quote; a quote whose sides stand on two pages is put together.
func readings(d *source.Definition, document func(page int) *source.Document) (map[quoteID]engine.Observation, error) {
	all, errs := map[quoteID]engine.Observation{}, []error{}
	for page := range d.Pages {
		found := document(page)
		if found == nil {
			return nil, fmt.Errorf("%s: the site has no page %d", d.ID, page)
		}
		answer, err := d.Parse(page, found)
		errs = append(errs, err)
		for _, o := range answer.Observations {
			o.Channel, o.Kind, o.Document = cmp.Or(o.Channel, engine.Unspecified), cmp.Or(o.Kind, engine.Commercial), ""
			name := nameOf(o)
			known := all[name]
			o.Buy, o.Sell = cmp.Or(o.Buy, known.Buy), cmp.Or(o.Sell, known.Sell)
			all[name] = o
		}
	}
	return all, errors.Join(errs...)
}

func nameOf(o engine.Observation) quoteID {
	return quoteID{engine.QuoteKey{Institution: o.InstitutionID, Channel: o.Channel, Kind: o.Kind}, o.Currency}
}

func expected(m *Market, d *source.Definition) map[quoteID]engine.Observation {
	all, readable := map[quoteID]engine.Observation{}, readableQuotes(d)
	for _, o := range m.Quotes() {
		name := nameOf(o)
		if !readable[name] || d.Institution == "" && !aggregates(m, d, name) {
			continue
		}
		// InfoDolar dates a row only by a time.
		if !isDated(d) || d.Institution == "" && o.PublishedAt.IsZero() {
			o.EffectiveDate, o.PublishedAt = 0, time.Time{}
		}
		all[name] = o
	}
	return all
}

// readableQuotes returns the quotes that a definition can read.
func readableQuotes(d *source.Definition) map[quoteID]bool {
	quotes := map[quoteID]bool{}
	for i := range d.Pages {
		for _, t := range d.Targets(&d.Pages[i]) {
			quotes[quoteID{engine.QuoteKey{Institution: t.Institution, Channel: t.Channel, Kind: d.Kind}, t.Currency}] = true
		}
	}
	return quotes
}

// isDated reports whether the quotes of a definition have a date.
func isDated(d *source.Definition) bool {
	return slices.ContainsFunc(d.Pages, func(page source.Page) bool {
		e := page.Extract
		return e.Date != nil || e.Sheet != nil || e.Rows != nil && e.Rows.Date != nil
	})
}

// aggregates reports that the aggregator lists the quote: not every institution is on its pages.
func aggregates(m *Market, d *source.Definition, name quoteID) bool {
	if strings.TrimPrefix(d.ID, demoPrefix) == "livedolar" && (name.currency != "USD" || name.Channel == engine.Digital) {
		return false
	}
	return slices.ContainsFunc(m.quotes, func(q quote) bool {
		return q.quoteID == name && q.listed != ""
	})
}

// same compares values as numbers: a price says 60.90 and the JSON number of it 60.9.
func same(a, b engine.Observation) bool {
	return sameSide(a.Buy, b.Buy) && sameSide(a.Sell, b.Sell) && a.EffectiveDate == b.EffectiveDate && a.PublishedAt.Equal(b.PublishedAt)
}

func sameSide(a, b string) bool {
	x, errX := engine.ParseDecimal(a)
	y, errY := engine.ParseDecimal(b)
	if errX != nil || errY != nil {
		return a == b
	}
	return x.Compare(y) == 0
}

func differences(got, want map[quoteID]engine.Observation) string {
	var all []string
	for name, w := range want {
		g, ok := got[name]
		switch {
		case !ok:
			all = append(all, fmt.Sprintf("%v is missing", name))
		case !same(g, w):
			all = append(all, fmt.Sprintf("%v: read %s/%s of %s %s, want %s/%s of %s %s", name,
				g.Buy, g.Sell, g.EffectiveDate, g.PublishedAt, w.Buy, w.Sell, w.EffectiveDate, w.PublishedAt))
		}
	}
	for name, g := range got {
		if _, ok := want[name]; !ok {
			all = append(all, fmt.Sprintf("%v: read %s/%s without an observation", name, g.Buy, g.Sell))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
