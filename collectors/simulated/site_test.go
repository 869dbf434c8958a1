package simulated

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/fetch"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

const bhdAddress = "http://backend.bhd.com.do/api/modal-cambio-rate?populate=deep"

// TestSite_CloseEndsHangs wants Close to end answers that would never end, and to wait for them.
func TestSite_CloseEndsHangs(t *testing.T) {
	site := NewSite(publishedSite().market)
	must(t, site.Start())
	must(t, site.SetFault("bhd-site", Hang))
	arrived := make(chan struct{}, 1)
	next := site.server.Handler
	site.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		next.ServeHTTP(w, r)
	})
	transport := &http.Transport{DialContext: site.Dial}
	var reading sync.WaitGroup
	reading.Go(func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, bhdAddress, nil)
		if err == nil {
			var response *http.Response
			if response, err = transport.RoundTrip(r); err == nil {
				response.Body.Close()
				t.Error("it does not hang")
			}
		}
	})
	<-arrived
	must(t, site.Close())
	reading.Wait()
	transport.CloseIdleConnections()
}

// TestSite_DocumentIsWhatIsServed: the program's own client, with second steps and addresses that a page names, gets
// the bytes that tests see without a network.
func TestSite_DocumentIsWhatIsServed(t *testing.T) {
	site := NewSite(publishedSite().market)
	must(t, site.Start())
	defer func() { must(t, site.Close()) }()
	const timeout = 30 * time.Second
	c, served := fetch.New(fetch.Config{Clock: noon, Dial: site.Dial, Pause: -1, RequestTimeout: timeout, FetchTimeout: timeout}), 0
	for _, d := range Definitions(source.DefaultSet()).Definitions() {
		for page := range d.Pages {
			if d.Disabled != "" {
				continue
			}
			got, err := c.Fetch(t.Context(), d, page)
			if err != nil {
				t.Errorf("%s, page %d: %v", d.ID, page, err)
				continue
			}
			want := site.Document(d.ID, page)
			if !bytes.Equal(got.Body, want.Body) || got.ContentType != want.ContentType {
				t.Errorf("%s, page %d: %d bytes of %s, want %d of %s", d.ID, page, len(got.Body), got.ContentType, len(want.Body), want.ContentType)
			}
			served++
		}
	}
	t.Logf("%d documents", served)
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

var update = flag.Bool("update", false, "rewrite the golden files")

func day(text string) engine.Date { return parsed(engine.ParseDate(text)) }

func instant(text string) time.Time { return parsed(time.Parse(time.RFC3339, text)) }

// parsed returns the value of a text that is right.
func parsed[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
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
	nineDays := func(seed uint64) []byte {
		return asCSV(t, NewMarket(seed).History(day("2026-09-12"), day("2026-09-20")))
	}
	if bytes.Equal(nineDays(7), nineDays(8)) {
		t.Error("two seeds gave one market")
	}
}

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
		if d.Expiry.AfterDate == 0 || d.Institution == "" && o.PublishedAt.IsZero() {
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
