package collectors_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

const (
	corruptDocuments = 10_000 // the goal of D1
	corruptSample    = 240    // of them under the race detector and with -short
	corruptMarkets   = 4      // that they are shared out to, each with its own seed
	slotSpan         = 5 * time.Hour
)

// TestD1_CorruptedDocuments shows the firewall from the page to the rate: ten thousand documents, each spoilt in one way, and
// no value is served that its source did not publish. What was good before stays until it expires, and is stale then.
func TestD1_CorruptedDocuments(t *testing.T) {
	markets := corruptMarkets
	if collectors.RaceDetector {
		markets = 1
	}
	for seed := range uint64(markets) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			tally := newTown(t, seed, engine.DefaultRules()).spoil(documentsToSpoil()/corruptMarkets, seed)
			for _, wrong := range tally.wrong {
				t.Error(wrong)
			}
			t.Logf("%d spoilt documents: %d failed to read %v, %d observations held %v, %d served as published",
				tally.documents, sum(tally.failures), tally.failures, sum(tally.held), tally.held, tally.served)
			for _, operator := range operators() {
				if tally.operators[operator.name] == 0 && documentsToSpoil() == corruptDocuments {
					t.Errorf("%s never fired", operator.name)
				}
			}
		})
	}
}

// TestD1_Control takes the limits of the engine away; now wrong values must be seen, or the test above proves nothing.
func TestD1_Control(t *testing.T) {
	if collectors.RaceDetector {
		t.Skip("one goroutine does it all: without the race detector")
	}
	rules := engine.DefaultRules()
	rules.JumpPermille, rules.MedianPermille = 1_000_000, 1_000_000
	if tally := newTown(t, 1, rules).spoil(min(documentsToSpoil(), corruptSample)/2, 1); len(tally.wrong) == 0 {
		t.Errorf("no wrong value is served by an engine without limits, after %d documents", tally.documents)
	}
}

func documentsToSpoil() int {
	if testing.Short() || collectors.RaceDetector {
		return corruptSample
	}
	return corruptDocuments
}

// town is every source of the simulated site, read into books without a network.
type town struct {
	t         *testing.T
	market    *simulated.Market
	site      *simulated.Site
	sources   []*source.Definition
	catalogue *engine.Catalogue
	books     map[string]*engine.Book
	at        time.Time
}

func newTown(t *testing.T, seed uint64, rules engine.Rules) *town {
	w := &town{t: t, market: simulated.NewMarket(seed), books: map[string]*engine.Book{}, at: time.Date(2026, 9, 21, 12, 0, 0, 0, time.UTC)}
	set := simulated.Definitions(source.DefaultSet())
	for _, d := range set.Definitions() {
		if d.Disabled == "" {
			w.sources = append(w.sources, d)
		}
	}
	w.site = simulated.NewSite(simulated.SiteConfig{Market: w.market})
	w.catalogue = engine.DefaultCatalogue().WithSources(set.Sources()...)
	for _, currency := range w.catalogue.Currencies() {
		w.books[currency.Code] = engine.NewBook(currency.Code, w.catalogue, rules)
	}
	for range 3 {
		w.pass()
	}
	return w
}

// pass lets one slot go by in which everybody publishes well.
func (w *town) pass() {
	w.at = w.at.Add(slotSpan)
	w.market.Step(w.at)
	for _, d := range w.sources {
		w.take(d, w.documents(d))
	}
}

func (w *town) documents(d *source.Definition) []*source.Document {
	all := make([]*source.Document, len(d.Pages))
	for page := range all {
		all[page] = w.site.Document(d.ID, page)
		all[page].FetchedAt = w.at
	}
	return all
}

// outcome is what became of the documents of one source.
type outcome struct {
	failures []error
	refused  []engine.Refusal
}

// take reads documents and hands what they say to the books.
func (w *town) take(d *source.Definition, documents []*source.Document) outcome {
	var out outcome
	answers := make([]source.Answer, len(documents))
	for page, document := range documents {
		answer, err := d.Parse(page, document)
		if err != nil {
			out.failures = append(out.failures, err)
			continue
		}
		answers[page] = answer
	}
	parts, refused := engine.Split(w.catalogue, collectors.Refreshes(d, answers, w.at, time.Time{}))
	out.refused = refused
	for code, list := range parts {
		var refreshes []engine.Refresh
		for _, part := range list {
			refreshes = append(refreshes, part.Refresh)
		}
		decided, err := w.books[code].Decide(engine.Observe{Refreshes: refreshes}, w.at)
		if err != nil {
			w.t.Fatalf("%s, %s: %v", d.ID, code, err)
		}
		out.refused = append(out.refused, decided.Receipt.Refused...)
		for _, event := range decided.Events {
			w.books[code].Apply(event)
		}
	}
	return out
}

// offers are what the books have from a source, by rate id.
func (w *town) offers(id string) map[string]engine.Offer {
	all := map[string]engine.Offer{}
	for code, book := range w.books {
		for _, offer := range book.State().Offers {
			if offer.SourceID == id {
				all[offer.Key.ID(code)] = offer
			}
		}
	}
	return all
}

// published are what the good documents of a source say, by rate id.
func (w *town) published(d *source.Definition, documents []*source.Document) map[string]engine.Observation {
	all := map[string]engine.Observation{}
	for page, document := range documents {
		answer, err := d.Parse(page, document)
		if err != nil {
			continue // it has said nothing for a day: the market lets sources fall silent
		}
		for _, o := range answer.Observations {
			id := o.Key().ID(o.Currency)
			other := all[id] // the side that stands on another page
			o.Buy, o.Sell = cmp.Or(o.Buy, other.Buy), cmp.Or(o.Sell, other.Sell)
			all[id] = o
		}
	}
	return all
}

// spoiling is what a run of spoilt documents amounted to.
type spoiling struct {
	documents, served         int
	failures, held, operators map[string]int
	wrong                     []string
}

// spoil publishes documents of which one page of one source is spoilt, one at a time, each followed by a good slot.
func (w *town) spoil(documents int, seed uint64) spoiling {
	tally := spoiling{failures: map[string]int{}, held: map[string]int{}, operators: map[string]int{}}
	random := rand.New(rand.NewPCG(seed, 1))
	all := operators()
	for tally.documents < documents && len(tally.wrong) < 20 {
		w.at = w.at.Add(slotSpan)
		w.market.Step(w.at)
		for _, d := range w.sources {
			good := w.documents(d)
			for range 4 {
				w.spoilOne(d, good, all[random.IntN(len(all))], random, &tally)
			}
			w.take(d, good)
		}
	}
	return tally
}

func (w *town) spoilOne(d *source.Definition, good []*source.Document, op operator, random *rand.Rand, tally *spoiling) {
	said := w.published(d, good)
	page := random.IntN(len(good))
	spoilt := slices.Clone(good)
	copied := *good[page]
	body := op.spoil(&trial{w, d, page, good[page].Body, said, random})
	if body == nil || bytes.Equal(body, copied.Body) {
		return
	}
	copied.Body = body
	spoilt[page] = &copied
	before := w.offers(d.ID)
	w.at = w.at.Add(time.Second)
	out := w.take(d, spoilt)
	tally.documents++
	tally.operators[op.name]++
	for _, err := range out.failures {
		var failure *source.Failure
		if !errors.As(err, &failure) {
			w.t.Fatalf("%s: %v is no failure", d.ID, err)
		}
		tally.failures[string(failure.Kind)]++
	}
	for _, refusal := range out.refused {
		tally.held[string(refusal.Reason)]++
	}
	w.compare(d, op, before, said, tally)
}

// compare wants each offer to be the one before, or what the source has really published, side by side.
func (w *town) compare(d *source.Definition, op operator, before map[string]engine.Offer, said map[string]engine.Observation, tally *spoiling) {
	now := w.offers(d.ID)
	for id, offer := range now {
		old, known := before[id]
		if known && old == offer {
			if rate := w.rate(id, offer.ExpiresAt); rate != nil && rate.SourceID == d.ID && !rate.Stale {
				tally.wrong = append(tally.wrong, fmt.Sprintf("%s after %s: %s is current at its end", d.ID, op.name, id))
			}
			continue
		}
		truth := said[id]
		if !sideIs(offer.Buy, old.Buy, truth.Buy) || !sideIs(offer.Sell, old.Sell, truth.Sell) {
			tally.wrong = append(tally.wrong, fmt.Sprintf("%s after %s: %s is %s/%s; published were %q/%q, before %s/%s",
				d.ID, op.name, id, offer.Buy, offer.Sell, truth.Buy, truth.Sell, old.Buy, old.Sell))
		}
		if offer.EffectiveDate > engine.DateOf(w.at).AddDays(7) {
			tally.wrong = append(tally.wrong, fmt.Sprintf("%s after %s: %s is of %s", d.ID, op.name, id, offer.EffectiveDate))
		}
		tally.served++
	}
	for id := range before {
		if _, still := now[id]; !still {
			tally.wrong = append(tally.wrong, fmt.Sprintf("%s after %s: %s is lost", d.ID, op.name, id))
		}
	}
}

func (w *town) rate(id string, at time.Time) *engine.Rate {
	code := strings.Split(id, ":")[1]
	for _, rate := range w.books[code].Board().View(at).Rates(engine.RatesQuery{Cut: engine.Cut{Limit: 200}}).Items {
		if rate.ID == id {
			return rate
		}
	}
	return nil
}

// sideIs reports that a side is nothing, what it was, or what was published.
func sideIs(side, before engine.Decimal, published string) bool {
	truth, err := engine.ReadDecimal(published)
	return side.IsNull() || side.Equal(before) || err == nil && side.Equal(truth)
}

func sum(counts map[string]int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

// trial is one document that is to be spoilt.
type trial struct {
	town   *town
	source *source.Definition
	page   int
	body   []byte
	said   map[string]engine.Observation // by the good document
	random *rand.Rand
}

// quote is one of the quotes that the document has, with both its sides if it can be.
func (x *trial) quote() engine.Observation {
	ids := slices.Sorted(maps.Keys(x.said))
	if len(ids) == 0 {
		return engine.Observation{}
	}
	for range 8 {
		if o := x.said[ids[x.random.IntN(len(ids))]]; o.Buy != "" && o.Sell != "" && o.Buy != o.Sell {
			return o
		}
	}
	return x.said[ids[x.random.IntN(len(ids))]]
}

// loneQuote is a quote with both sides whose texts stand nowhere else on the page: to exchange them is to exchange no others.
func (x *trial) loneQuote() engine.Observation {
	o := x.quote()
	for _, side := range []string{o.Buy, o.Sell} {
		if side == "" || len(value(side).FindAll(x.body, 2)) != 1 {
			return engine.Observation{}
		}
	}
	return o
}
