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

// TestD1_CorruptedDocuments: of spoilt documents no value is served that was not published; good values stay until they expire.
func TestD1_CorruptedDocuments(t *testing.T) {
	checkCorrupted(t, 0, sweep(1, corruptMarkets), sweep(corruptSample, corruptDocuments))
}

// checkCorrupted spoils so many documents in some markets, and wants every operator to have been used and no wrong value.
func checkCorrupted(t *testing.T, first uint64, markets, documents int) (all spoiling) {
	t.Helper()
	all = spoiling{failures: map[string]int{}, held: map[string]int{}, operators: map[string]int{}}
	for seed := first; seed != first+uint64(markets); seed++ {
		newTown(t, seed, engine.DefaultRules()).spoil(documents/markets, seed, &all)
	}
	for _, wrong := range all.wrong {
		t.Error(wrong)
	}
	t.Logf("%d spoilt documents: %d failed to read %v, %d observations held %v, %d served as published",
		all.documents, sum(all.failures), all.failures, sum(all.held), all.held, all.served)
	if all.documents < documents {
		t.Errorf("only %d documents of %d were spoilt", all.documents, documents)
	}
	for _, operator := range operators() {
		if all.operators[operator.name] == 0 {
			t.Errorf("%s never fired", operator.name)
		}
	}
	return all
}

// TestD1_Control takes the limits of the engine away; now wrong values must be seen, or the test above proves nothing.
func TestD1_Control(t *testing.T) {
	rules := engine.DefaultRules()
	rules.JumpPermille, rules.MedianPermille = 1_000_000, 1_000_000
	tally := spoiling{failures: map[string]int{}, held: map[string]int{}, operators: map[string]int{}}
	if newTown(t, 1, rules).spoil(corruptSample/3, 1, &tally); len(tally.wrong) == 0 {
		t.Errorf("no wrong value is served by an engine without limits, after %d documents", tally.documents)
	}
}

// town is every source of the simulated site, read into books without a network.
type town struct {
	*ledger
	market  *simulated.Market
	site    *simulated.Site
	sources []*source.Definition
	at      time.Time

	definitions *source.Set
}

func newTown(t *testing.T, seed uint64, rules engine.Rules) *town {
	w := &town{market: simulated.NewMarket(seed), at: time.Date(2026, 9, 21, 12, 0, 0, 0, time.UTC)}
	set := simulated.Definitions(source.DefaultSet())
	for _, d := range set.Definitions() {
		if d.Disabled == "" {
			w.sources = append(w.sources, d)
		}
	}
	w.site = simulated.NewSite(simulated.SiteConfig{Market: w.market})
	w.ledger, w.definitions = newLedger(t, rules, set.Sources()...), set
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

// take reads documents and hands what they say to the books.
func (w *town) take(d *source.Definition, documents []*source.Document) (failures []error, refused []engine.Refusal) {
	answers := make([]source.Answer, len(documents))
	for page, document := range documents {
		answer, err := d.Parse(page, document)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		answers[page] = answer
	}
	return failures, w.observe(Refreshes(d, answers, w.at, time.Time{}), w.at)
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
func (w *town) spoil(documents int, seed uint64, tally *spoiling) {
	random, all := rand.New(rand.NewPCG(seed, 1)), operators()
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for documents += tally.documents; tally.documents < documents && len(tally.wrong) < 20; {
		w.at = w.at.Add(slotSpan)
		w.market.Step(w.at)
		for _, d := range w.sources {
			good := w.documents(d)
			said := w.published(d, good)
			for range 4 {
				for i, op := range all { // one that fits goes to the end, so that all are used alike
					if w.spoilOne(d, good, said, op, random, tally) {
						all = append(slices.Delete(all, i, i+1), op)
						break
					}
				}
			}
			w.take(d, good)
		}
	}
}

func (w *town) spoilOne(
	d *source.Definition, good []*source.Document, said map[string]engine.Observation, op operator, random *rand.Rand, tally *spoiling,
) bool {
	page := random.IntN(len(good))
	spoilt := slices.Clone(good)
	copied := *good[page]
	body := op.spoil(&trial{w, d, page, good[page].Body, said, random})
	if body == nil || bytes.Equal(body, copied.Body) {
		return false
	}
	copied.Body = body
	spoilt[page] = &copied
	before := w.offers(d.ID)
	w.at = w.at.Add(time.Second)
	failures, refused := w.take(d, spoilt)
	tally.documents++
	tally.operators[op.name]++
	for _, err := range failures {
		var failure *source.Failure
		if !errors.As(err, &failure) {
			w.t.Fatalf("%s: %v is no failure", d.ID, err)
		}
		tally.failures[string(failure.Kind)]++
	}
	for _, refusal := range refused {
		tally.held[string(refusal.Reason)]++
	}
	w.compare(d, op, before, said, tally)
	if op.first {
		fresh := *w
		fresh.ledger = newLedger(w.t, engine.DefaultRules(), w.definitions.Sources()...)
		fresh.take(d, spoilt)
		fresh.compare(d, op, nil, said, tally)
	}
	return true
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
		if before == nil && offer.EffectiveDate != truth.EffectiveDate && !truth.EffectiveDate.IsZero() {
			continue // a workbook whose newest row is unreadable gives the day before, under its own date
		}
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

// operator is one way to spoil a document. It gives nil when the document has nothing that it could spoil.
type operator struct {
	name  string
	spoil func(*trial) []byte
	first bool // also as the first document of its source, where only bounds protect
}

// operators are those of D1: on one value, on the whole document, and those that the simulated site shows itself.
func operators() []operator {
	all := []operator{
		{"x10", rewrite(func(v string) string { return shifted(v, 1) }), false},
		{"x100", rewrite(func(v string) string { return shifted(v, 2) }), false},
		{"/10", rewrite(func(v string) string { return shifted(v, -1) }), false},
		{"/1000", rewrite(func(v string) string { return shifted(v, -3) }), false},
		{"decimal comma", rewrite(func(v string) string { return strings.Replace(v, ".", ",", 1) }), false},
		{"thousands comma", rewrite(func(v string) string { return shifted(v, 1)[:1] + "," + shifted(v, 1)[1:] }), false},
		{"comma and three digits", rewrite(func(v string) string { return strings.Replace(v, ".", ",", 1) + "0" }), false},
		{"lost point", rewrite(func(v string) string { return strings.Replace(v, ".", "", 1) }), false},
		{"no-break space", rewrite(func(v string) string { return "\u00a0" + v + "\u00a0" }), true},
		{"space within", rewrite(func(v string) string { return v[:1] + " " + v[1:] }), true},
		{"NaN", rewrite(func(string) string { return "NaN" }), true},
		{"Infinity", rewrite(func(string) string { return "Infinity" }), true},
		{"exponent", rewrite(func(v string) string { return v + "e1" }), true},
		{"thirty digits", rewrite(func(v string) string { return v + strings.Repeat("7", 30) }), true},
		{"negative", rewrite(func(v string) string { return "-" + v }), true},
		{"two values", rewrite(func(v string) string { return v + " " + shifted(v, -1) }), true},
		{"long sign", rewrite(func(v string) string { return "\u2212" + v }), true},
		{"sign and blank", rewrite(func(v string) string { return "- " + v }), true},
		{"blank behind the point", rewrite(func(v string) string { return v[:2] + ". " + v[2:] }), true},
		{"line in the way", rewrite(func(v string) string { return v[:2] + "\n" + v[2:] }), true},
		{"tag in the way", rewrite(func(v string) string { return v[:2] + "<span> </span>" + v[2:] }), true},
		{"two points", rewrite(func(v string) string { return v + ".5" }), true},
		{"two points together", rewrite(func(v string) string { return v[:2] + ".." + v[2:] }), true},
		{"range", rewrite(func(v string) string { return v + "-" + v[:1] + "9.99" }), true},
		{"letter", rewrite(func(v string) string { return v[:2] + "O" + v[2:] }), true},
		{"other digits", rewrite(func(v string) string { return "\uff15" + v[1:] }), true},
		{"lone point", rewrite(func(v string) string { return v[:2] + "." }), true},
		{"hexadecimal", rewrite(func(v string) string { return "0x" + v }), true},
		{"footnote raised", footnote("<sup>1</sup>"), true},
		{"footnote digit", footnote("1"), false},
		{"footnote in brackets", footnote(" (1)"), true},
		{"footnote sign", footnote("¹"), true},
		{"one side missing", (*trial).oneSideMissing, false},
		{"sides exchanged", (*trial).exchanged, false},
		{"same side twice", (*trial).sameTwice, false},
		{"another currency", (*trial).otherCurrency, false},
		{"empty", func(*trial) []byte { return []byte{} }, false},
		{"blank", func(*trial) []byte { return []byte(" \r\n\t ") }, false},
		{"challenge", func(*trial) []byte { return []byte(challenge) }, false},
		{"error page", func(*trial) []byte {
			return []byte("<!doctype html><html><body><h1>Error 500: 58.90</h1></body></html>")
		}, false},
		{"half", (*trial).half, false},
		{"future date", (*trial).futureDate, false},
	}
	for _, fault := range []simulated.Fault{
		simulated.Zeros, simulated.Swapped, simulated.SameTwice, simulated.LostDecimal, simulated.DecimalComma, simulated.WrongCurrency,
		simulated.MissingSide, simulated.Footnote, simulated.NotAvailable, simulated.Reordered, simulated.Layout, simulated.Challenge,
		simulated.EmptyBody, simulated.Half, simulated.ErrorPage, simulated.Frozen, simulated.FutureDate,
	} {
		needsHistory := []simulated.Fault{simulated.Swapped, simulated.SameTwice, simulated.WrongCurrency, simulated.Frozen, simulated.FutureDate}
		all = append(all, operator{"site: " + string(fault), shown(fault), !slices.Contains(needsHistory, fault)})
	}
	return all
}

const challenge = `<html><head><META NAME="robots" CONTENT="noindex,nofollow"><script src="/_Incapsula_Resource?SWJIYLWA=7"></script></head>
<body><iframe src="/_Incapsula_Resource?incident_id=1">Request unsuccessful. Incapsula incident ID: 1</iframe></body></html>`

// shown lets the site itself publish the fault once.
func shown(fault simulated.Fault) func(*trial) []byte {
	return func(x *trial) []byte {
		if err := x.town.site.Break(x.source.ID, fault); err != nil {
			x.town.t.Fatal(err)
		}
		defer x.town.site.Mend(x.source.ID)
		return x.town.site.Document(x.source.ID, x.page).Body
	}
}

// value is the place of a text that stands alone: 58.90, not the end of 158.90 or the beginning of 58.901.
func value(text string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[^0-9.,])(` + regexp.QuoteMeta(text) + `)($|[^0-9.,])`)
}

// replaced writes another text for each place of a value, nil when there is none.
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

// rewrite changes one side of one quote, wherever its text stands.
func rewrite(change func(string) string) func(*trial) []byte {
	return func(x *trial) []byte {
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

// shifted moves the decimal point.
func shifted(value string, places int) string {
	whole, part, _ := strings.Cut(value, ".")
	digits := strings.Repeat("0", max(0, 1-len(whole)-places)) + whole + part
	point := max(1, len(whole)+places)
	digits += strings.Repeat("0", max(0, point-len(digits)))
	whole, part = strings.TrimLeft(digits[:point], "0"), digits[point:]
	return strings.TrimSuffix(cmp.Or(whole, "0")+"."+part, ".")
}

// footnote hangs something on a value of a page. Only pages have footnotes: in JSON a digit more is another number.
func footnote(mark string) func(*trial) []byte {
	return func(x *trial) []byte {
		if !bytes.Contains(x.body, []byte("<html")) {
			return nil
		}
		return rewrite(func(v string) string { return v + mark })(x)
	}
}

func (x *trial) oneSideMissing() []byte {
	o := x.quote()
	return replaced(x.body, o.Buy, [...]string{"", "N/A", "-", "null"}[x.random.IntN(4)])
}

func (x *trial) exchanged() []byte {
	o := x.loneQuote()
	return x.says(o, o.Sell, o.Buy)
}

// says writes other sides into a quote.
func (x *trial) says(o engine.Observation, buy, sell string) []byte {
	marked := replaced(x.body, o.Buy, "@@")
	if marked = replaced(marked, o.Sell, sell); marked == nil {
		return nil
	}
	return bytes.ReplaceAll(marked, []byte("@@"), []byte(buy))
}

func (x *trial) sameTwice() []byte {
	o := x.loneQuote()
	if x.random.IntN(2) == 0 {
		return replaced(x.body, o.Buy, o.Sell)
	}
	return replaced(x.body, o.Sell, o.Buy)
}

// otherCurrency writes both sides of another currency of the market into a quote.
func (x *trial) otherCurrency() []byte {
	o := x.loneQuote()
	var others []engine.Observation
	for _, other := range x.town.market.Quotes() {
		if other.Currency != o.Currency && other.Kind == o.Kind && other.Buy != "" && other.Sell != "" {
			others = append(others, other)
		}
	}
	if len(others) == 0 || o.Buy == "" || o.Sell == "" || o.Buy == o.Sell {
		return nil
	}
	other := others[x.random.IntN(len(others))]
	return x.says(o, other.Buy, other.Sell)
}

// half cuts the document anywhere in its middle.
func (x *trial) half() []byte {
	return slices.Clone(x.body[:len(x.body)/8+x.random.IntN(len(x.body)*3/4)])
}

// futureDate sets every date of the document thirty days ahead.
func (x *trial) futureDate() []byte {
	for _, o := range x.said {
		if o.EffectiveDate.IsZero() {
			continue
		}
		old, ahead := o.EffectiveDate.String(), o.EffectiveDate.AddDays(30).String()
		if bytes.Contains(x.body, []byte(old)) {
			return bytes.ReplaceAll(x.body, []byte(old), []byte(ahead))
		}
		oldText, newText := dayMonthYear(old), dayMonthYear(ahead)
		return bytes.ReplaceAll(x.body, []byte(oldText), []byte(newText))
	}
	return nil
}

func dayMonthYear(iso string) string {
	return fmt.Sprintf("%s/%s/%s", iso[8:10], iso[5:7], iso[:4])
}
