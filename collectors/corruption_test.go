package collectors

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

const (
	corruptDocuments = 10_000 // the goal of D1
	corruptSample    = 240
	corruptMarkets   = 4 // that they are shared out to, each with its own seed
	slotSpan         = 5 * time.Hour
)

// TestD1_CorruptedDocuments: no value of a corrupted document is served unless it was published.
func TestD1_CorruptedDocuments(t *testing.T) {
	checkCorrupted(t, 0, sweep(1, corruptMarkets), sweep(corruptSample, corruptDocuments))
}

func checkCorrupted(t *testing.T, first uint64, markets, documents int) (all corruptionStats) {
	t.Helper()
	all = corruptionStats{failures: map[string]int{}, held: map[string]int{}, corruptions: map[string]int{}}
	for seed := first; seed != first+uint64(markets); seed++ {
		newMarketFixture(t, seed, engine.DefaultRules()).corrupt(documents/markets, seed, &all)
	}
	for _, wrong := range all.wrong {
		t.Error(wrong)
	}
	t.Logf("%d corrupted documents: %d failed to read %v, %d observations held %v, %d served as published",
		all.documents, sum(all.failures), all.failures, sum(all.held), all.held, all.served)
	if all.documents < documents {
		t.Errorf("only %d documents of %d were corrupted", all.documents, documents)
	}
	for _, operator := range corruptions() {
		if all.corruptions[operator.name] == 0 {
			t.Errorf("%s never fired", operator.name)
		}
	}
	return all
}

// TestD1_Control takes the limits of the engine away; now wrong values must be seen.
func TestD1_Control(t *testing.T) {
	rules := engine.DefaultRules()
	rules.JumpPermille, rules.MedianPermille, rules.ReferencePermille = 1_000_000, 1_000_000, 0
	stats := corruptionStats{failures: map[string]int{}, held: map[string]int{}, corruptions: map[string]int{}}
	if newMarketFixture(t, 1, rules).corrupt(corruptSample/3, 1, &stats); len(stats.wrong) == 0 {
		t.Errorf("no wrong value is served by an engine without limits, after %d documents", stats.documents)
	}
}

// marketFixture has every source of the simulated site, and an engine that reads them without a network.
type marketFixture struct {
	*testEngine
	market  *simulated.Market
	site    *simulated.Site
	sources []*source.Definition
	at      time.Time

	definitions *source.Set
}

func newMarketFixture(t *testing.T, seed uint64, rules engine.Rules) *marketFixture {
	w := &marketFixture{market: simulated.NewMarket(seed), at: time.Date(2026, 9, 21, 12, 0, 0, 0, time.UTC)}
	set := simulated.Definitions(source.DefaultSet())
	for _, d := range set.Definitions() {
		if d.Disabled == "" {
			w.sources = append(w.sources, d)
		}
	}
	w.site = simulated.NewSite(w.market)
	w.testEngine, w.definitions = newTestEngine(t, rules, set.Sources()...), set
	for range 3 {
		w.publishSlot()
	}
	return w
}

func (w *marketFixture) publishSlot() {
	w.at = w.at.Add(slotSpan)
	w.market.Step(w.at)
	for _, d := range w.sources {
		w.parseAndObserve(d, w.documents(d))
	}
}

func (w *marketFixture) documents(d *source.Definition) []*source.Document {
	all := make([]*source.Document, len(d.Pages))
	for page := range all {
		all[page] = w.site.Document(d.ID, page)
		all[page].FetchedAt = w.at
	}
	return all
}

func (w *marketFixture) parseAndObserve(d *source.Definition, documents []*source.Document) (failures []error, refused []engine.Refusal) {
	answers := make([]source.Result, len(documents))
	for page, document := range documents {
		answer, err := d.Parse(page, document)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		answers[page] = answer
	}
	return failures, w.observe(BuildRefreshes(d, answers, w.at, time.Time{}), w.at)
}

func (w *marketFixture) offers(id string) map[string]engine.SourceQuote {
	all := map[string]engine.SourceQuote{}
	for code, book := range w.currencies {
		for _, offer := range book.Snapshot().Saved().SourceQuotes {
			if offer.SourceID == id {
				all[offer.Key.ID(code)] = offer
			}
		}
	}
	return all
}

func (w *marketFixture) published(d *source.Definition, documents []*source.Document) map[string]engine.Observation {
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

type corruptionStats struct {
	documents, served           int
	failures, held, corruptions map[string]int
	wrong                       []string
}

// corrupt publishes documents with one corrupted page, one at a time, and a good slot after each.
func (w *marketFixture) corrupt(documents int, seed uint64, stats *corruptionStats) {
	random, all := rand.New(rand.NewPCG(seed, 1)), corruptions()
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for documents += stats.documents; stats.documents < documents && len(stats.wrong) < 20; {
		w.at = w.at.Add(slotSpan)
		w.market.Step(w.at)
		for _, d := range w.sources {
			good := w.documents(d)
			said := w.published(d, good)
			for range 4 {
				for i, op := range all { // one that fits goes to the end, so that all are used alike
					if w.corruptOne(d, good, said, op, random, stats) {
						all = append(slices.Delete(all, i, i+1), op)
						break
					}
				}
			}
			w.parseAndObserve(d, good)
		}
	}
}

func (w *marketFixture) corruptOne(
	d *source.Definition, good []*source.Document, said map[string]engine.Observation, op corruption, random *rand.Rand, stats *corruptionStats,
) bool {
	page := random.IntN(len(good))
	corrupted := slices.Clone(good)
	copied := *good[page]
	body := op.apply(&corruptionInput{w, d, page, good[page].Body, said, random})
	if body == nil || bytes.Equal(body, copied.Body) {
		return false
	}
	copied.Body = body
	corrupted[page] = &copied
	before := w.offers(d.ID)
	w.at = w.at.Add(time.Second)
	failures, refused := w.parseAndObserve(d, corrupted)
	stats.documents++
	stats.corruptions[op.name]++
	for _, err := range failures {
		var failure *source.Failure
		if !errors.As(err, &failure) {
			w.t.Fatalf("%s: %v is no failure", d.ID, err)
		}
		stats.failures[string(failure.Kind)]++
	}
	for _, refusal := range refused {
		stats.held[string(refusal.Reason)]++
	}
	w.compare(d, op, before, said, stats)
	if op.alsoFirst {
		fresh := *w
		fresh.testEngine = newTestEngine(w.t, engine.DefaultRules(), w.definitions.Sources()...)
		fresh.parseAndObserve(d, corrupted)
		fresh.compare(d, op, nil, said, stats)
	}
	return true
}

// compare wants each offer to be the one before, or what the source has really published, side by side.
func (w *marketFixture) compare(d *source.Definition, op corruption, before map[string]engine.SourceQuote, said map[string]engine.Observation, stats *corruptionStats) {
	now := w.offers(d.ID)
	for id, offer := range now {
		old, known := before[id]
		if known && old == offer {
			if rate := w.rate(id, offer.ExpiresAt); rate != nil && rate.SourceID == d.ID && !rate.Stale {
				stats.wrong = append(stats.wrong, fmt.Sprintf("%s after %s: %s is current at its end", d.ID, op.name, id))
			}
			continue
		}
		truth := said[id]
		if before == nil && offer.EffectiveDate != truth.EffectiveDate && !truth.EffectiveDate.IsZero() {
			continue // a workbook whose newest row is unreadable gives the day before, under its own date
		}
		if !sideIs(offer.Buy, old.Buy, truth.Buy) || !sideIs(offer.Sell, old.Sell, truth.Sell) {
			stats.wrong = append(stats.wrong, fmt.Sprintf("%s after %s: %s is %s/%s; published were %q/%q, before %s/%s",
				d.ID, op.name, id, offer.Buy, offer.Sell, truth.Buy, truth.Sell, old.Buy, old.Sell))
		}
		if offer.EffectiveDate > engine.DateOf(w.at).AddDays(7) {
			stats.wrong = append(stats.wrong, fmt.Sprintf("%s after %s: %s is of %s", d.ID, op.name, id, offer.EffectiveDate))
		}
		stats.served++
	}
	for id := range before {
		if _, still := now[id]; !still {
			stats.wrong = append(stats.wrong, fmt.Sprintf("%s after %s: %s is lost", d.ID, op.name, id))
		}
	}
}

func (w *marketFixture) rate(id string, at time.Time) *engine.Rate {
	code := strings.Split(id, ":")[1]
	market := engine.NewMarketView(w.catalogue, []*engine.CurrencySnapshot{w.currencies[code].Snapshot()}, at)
	for _, rate := range market.Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 200}}).Items {
		if rate.ID == id {
			return rate
		}
	}
	return nil
}

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

type corruptionInput struct {
	fixture *marketFixture
	source  *source.Definition
	page    int
	body    []byte
	said    map[string]engine.Observation // by the good document
	random  *rand.Rand
}

func (x *corruptionInput) quote() engine.Observation {
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

// uniqueQuote is a quote with both sides, whose texts occur only once on the page.
func (x *corruptionInput) uniqueQuote() engine.Observation {
	o := x.quote()
	for _, side := range []string{o.Buy, o.Sell} {
		if side == "" || len(value(side).FindAll(x.body, 2)) != 1 {
			return engine.Observation{}
		}
	}
	return o
}

// corruption is one way to corrupt a document. It gives nil if the document has nothing to corrupt.
type corruption struct {
	name      string
	apply     func(*corruptionInput) []byte
	alsoFirst bool // also as the first document of its source, where only bounds protect
}

// corruptions are those of D1: on one value, on the whole document, and those that the simulated site shows itself.
func corruptions() []corruption {
	all := []corruption{
		{"x10", changeValue(func(v string) string { return shifted(v, 1) }), false},
		{"x100", changeValue(func(v string) string { return shifted(v, 2) }), false},
		{"/10", changeValue(func(v string) string { return shifted(v, -1) }), false},
		{"/1000", changeValue(func(v string) string { return shifted(v, -3) }), false},
		{"decimal comma", changeValue(func(v string) string { return strings.Replace(v, ".", ",", 1) }), false},
		{"thousands comma", changeValue(func(v string) string { return shifted(v, 1)[:1] + "," + shifted(v, 1)[1:] }), false},
		{"comma and three digits", changeValue(func(v string) string { return strings.Replace(v, ".", ",", 1) + "0" }), false},
		{"lost point", changeValue(func(v string) string { return strings.Replace(v, ".", "", 1) }), false},
		{"no-break space", changeValue(func(v string) string { return "\u00a0" + v + "\u00a0" }), true},
		{"space within", changeValue(func(v string) string { return v[:1] + " " + v[1:] }), true},
		{"NaN", changeValue(func(string) string { return "NaN" }), true},
		{"Infinity", changeValue(func(string) string { return "Infinity" }), true},
		{"exponent", changeValue(func(v string) string { return v + "e1" }), true},
		{"thirty digits", changeValue(func(v string) string { return v + strings.Repeat("7", 30) }), true},
		{"negative", changeValue(func(v string) string { return "-" + v }), true},
		{"two values", changeValue(func(v string) string { return v + " " + shifted(v, -1) }), true},
		{"long sign", changeValue(func(v string) string { return "\u2212" + v }), true},
		{"sign and blank", changeValue(func(v string) string { return "- " + v }), true},
		{"blank behind the point", changeValue(func(v string) string { return v[:2] + ". " + v[2:] }), true},
		{"line in the way", changeValue(func(v string) string { return v[:2] + "\n" + v[2:] }), true},
		{"tag in the way", changeValue(func(v string) string { return v[:2] + "<span> </span>" + v[2:] }), true},
		{"two points", changeValue(func(v string) string { return v + ".5" }), true},
		{"two points together", changeValue(func(v string) string { return v[:2] + ".." + v[2:] }), true},
		{"range", changeValue(func(v string) string { return v + "-" + v[:1] + "9.99" }), true},
		{"letter", changeValue(func(v string) string { return v[:2] + "O" + v[2:] }), true},
		{"other digits", changeValue(func(v string) string { return "\uff15" + v[1:] }), true},
		{"lone point", changeValue(func(v string) string { return v[:2] + "." }), true},
		{"hexadecimal", changeValue(func(v string) string { return "0x" + v }), true},
		{"footnote raised", footnote("<sup>1</sup>"), true},
		{"footnote digit", footnote("1"), false},
		{"footnote in brackets", footnote(" (1)"), true},
		{"footnote sign", footnote("¹"), true},
		{"one side missing", (*corruptionInput).oneSideMissing, false},
		{"sides exchanged", (*corruptionInput).sidesSwapped, false},
		{"same side twice", (*corruptionInput).sameTwice, false},
		{"another currency", (*corruptionInput).otherCurrency, false},
		{"blank", func(*corruptionInput) []byte { return []byte(" \r\n\t ") }, false},
		{"half", (*corruptionInput).truncated, false},
		{"yesterday's document", redated(-1), false},
		{"future date", redated(30), false},
	}
	for _, fault := range []simulated.Fault{
		simulated.Zeros, simulated.Swapped, simulated.SameTwice, simulated.LostDecimal, simulated.DecimalComma, simulated.WrongCurrency,
		simulated.MissingSide, simulated.Footnote, simulated.NotAvailable, simulated.Reordered, simulated.Layout, simulated.Challenge,
		simulated.EmptyBody, simulated.Half, simulated.ErrorPage,
	} {
		needsHistory := []simulated.Fault{simulated.Swapped, simulated.SameTwice, simulated.WrongCurrency}
		all = append(all, corruption{"site: " + string(fault), siteFault(fault), !slices.Contains(needsHistory, fault)})
	}
	return all
}

func siteFault(fault simulated.Fault) func(*corruptionInput) []byte {
	return func(x *corruptionInput) []byte {
		if err := x.fixture.site.SetFault(x.source.ID, fault); err != nil {
			x.fixture.t.Fatal(err)
		}
		defer func() { _ = x.fixture.site.SetFault(x.source.ID, "") }()
		return x.fixture.site.Document(x.source.ID, x.page).Body
	}
}

// value matches a whole number: 58.90, not the end of 158.90 or the beginning of 58.901.
func value(text string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[^0-9.,])(` + regexp.QuoteMeta(text) + `)($|[^0-9.,])`)
}

func replaced(body []byte, text, by string) []byte {
	if text == "" {
		return nil
	}
	for _, form := range []struct{ from, to string }{{text, by}, {strings.Replace(text, ".", ",", 1), by}} {
		if pattern := value(form.from); pattern.Match(body) {
			return pattern.ReplaceAll(body, []byte("${1}"+strings.ReplaceAll(form.to, "$", "$$")+"${3}"))
		}
	}
	return nil
}

func changeValue(change func(string) string) func(*corruptionInput) []byte {
	return func(x *corruptionInput) []byte {
		o := x.quote()
		text := o.Buy
		if text == "" || o.Sell != "" && x.random.IntN(2) == 0 {
			text = o.Sell
		}
		if len(text) < 3 {
			return nil
		}
		return replaced(x.body, text, change(text))
	}
}

func shifted(value string, places int) string {
	whole, part, _ := strings.Cut(value, ".")
	digits := strings.Repeat("0", max(0, 1-len(whole)-places)) + whole + part
	point := max(1, len(whole)+places)
	digits += strings.Repeat("0", max(0, point-len(digits)))
	whole, part = strings.TrimLeft(digits[:point], "0"), digits[point:]
	return strings.TrimSuffix(cmp.Or(whole, "0")+"."+part, ".")
}

// footnote hangs something on a value of a page. Only pages have footnotes: in JSON a digit more is another number.
func footnote(mark string) func(*corruptionInput) []byte {
	return func(x *corruptionInput) []byte {
		if !bytes.Contains(x.body, []byte("<html")) {
			return nil
		}
		return changeValue(func(v string) string { return v + mark })(x)
	}
}

func (x *corruptionInput) oneSideMissing() []byte {
	o := x.quote()
	return replaced(x.body, o.Buy, [...]string{"", "N/A", "-", "null"}[x.random.IntN(4)])
}

func (x *corruptionInput) sidesSwapped() []byte {
	o := x.uniqueQuote()
	return x.withSides(o, o.Sell, o.Buy)
}

func (x *corruptionInput) withSides(o engine.Observation, buy, sell string) []byte {
	marked := replaced(x.body, o.Buy, "@@")
	if marked = replaced(marked, o.Sell, sell); marked == nil {
		return nil
	}
	return bytes.ReplaceAll(marked, []byte("@@"), []byte(buy))
}

func (x *corruptionInput) sameTwice() []byte {
	o := x.uniqueQuote()
	if x.random.IntN(2) == 0 {
		return replaced(x.body, o.Buy, o.Sell)
	}
	return replaced(x.body, o.Sell, o.Buy)
}

// otherCurrency leaves out a currency with similar prices, a franc for a euro: if they are less than a jump away from
// the last ones, or from the median, nothing in the document or in the market shows that they are of another currency.
func (x *corruptionInput) otherCurrency() []byte {
	o := x.uniqueQuote()
	var others []engine.Observation
	for _, other := range x.fixture.market.Quotes() {
		isSimilar := areSimilar(o.Buy, other.Buy) && areSimilar(o.Sell, other.Sell)
		if other.Currency != o.Currency && other.Kind == o.Kind && other.Buy != "" && other.Sell != "" && !isSimilar {
			others = append(others, other)
		}
	}
	if len(others) == 0 || o.Buy == "" || o.Sell == "" || o.Buy == o.Sell {
		return nil
	}
	other := others[x.random.IntN(len(others))]
	return x.withSides(o, other.Buy, other.Sell)
}

// areSimilar reports whether two prices are at most two jumps apart: a price and the median of others may be one.
func areSimilar(price, other string) bool {
	a, _ := engine.ReadDecimal(price)
	b, _ := engine.ReadDecimal(other)
	return max(a.Units()-b.Units(), b.Units()-a.Units())*1000 <= 2*engine.DefaultRules().JumpPermille*a.Units()
}

// redated moves the dates of the quotes.
func redated(days int) func(*corruptionInput) []byte {
	return func(x *corruptionInput) []byte {
		var dates []string
		for _, o := range x.said {
			for _, form := range []string{"2006-01-02", "02/01/2006"} {
				date := o.EffectiveDate.Start().In(engine.Location())
				dates = append(dates, date.Format(form), date.AddDate(0, 0, days).Format(form))
			}
		}
		return []byte(strings.NewReplacer(dates...).Replace(string(x.body)))
	}
}

func (x *corruptionInput) truncated() []byte {
	return slices.Clone(x.body[:len(x.body)/8+x.random.IntN(len(x.body)*3/4)])
}
