package engine

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Pages are those of a plain implementation that filters and sorts everything.
func TestP9_F11_PagesAreThoseOfASimpleSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var states []*CurrencyState
		for _, currency := range []string{"EUR", "USD"} {
			states = append(states, NewCurrencyState(currency, testCatalogue(), DefaultRules()))
		}
		now := noon
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "hours")) * time.Hour)
			state := rapid.SampledFrom(states).Draw(t, "state")
			decision, _ := state.Decide(drawCommand(t, now, state.Snapshot().Quarantine()), now)
			replay(state, decision.Events)
		}
		snapshots := []*CurrencySnapshot{states[0].Snapshot(), states[1].Snapshot()}
		market := NewMarketView(testCatalogue(), snapshots, now)
		filter := Filter{
			Currency:    rapid.SampledFrom([]string{"", "", "USD", "EUR", "GBP"}).Draw(t, "currency"),
			Institution: rapid.SampledFrom([]string{"", "", "bhd", "popular", "romana", "zz"}).Draw(t, "institution"),
			Channel:     rapid.SampledFrom([]Channel{"", "", Branch, Unspecified}).Draw(t, "channel"),
			Kind:        rapid.SampledFrom([]Kind{"", "", Commercial, Reference}).Draw(t, "kind"),
		}
		request := PageRequest{rapid.IntRange(1, 5).Draw(t, "limit"), rapid.IntRange(0, 12).Draw(t, "cursor")}
		from := DateOf(noon).AddDays(rapid.IntRange(-3, 3).Draw(t, "from"))
		history := HistoryQuery{filter, request, from, from.AddDays(rapid.IntRange(0, 10).Draw(t, "days"))}
		samePage(t, "rates", market.Rates(RatesQuery{filter, request}), plainRates(snapshots, filter, now), request, sameRate)
		samePage(t, "history", market.History(history), plainHistory(snapshots, &history), request, sameRow)
		sameInstitutions(t, market, snapshots, now)
	})
}

func samePage[T any](t *rapid.T, what string, got *Page[T], all []T, request PageRequest, equal func(a, b T) bool) {
	want := pageOf(all, request)
	if got.Total != want.Total || got.NextCursor != want.NextCursor || !slices.EqualFunc(got.Items, want.Items, equal) {
		t.Fatalf("%s: %d of %d, next %d, want %d of %d, next %d: %+v, want %+v",
			what, len(got.Items), got.Total, got.NextCursor, len(want.Items), want.Total, want.NextCursor, got.Items, want.Items)
	}
}

// pageOf is a page of a list of all matches.
func pageOf[T any](all []T, request PageRequest) *Page[T] {
	items := all[min(request.Cursor, len(all)):min(request.Cursor+request.Limit, len(all))]
	p := pager[T]{request, len(all), items}
	return p.page(time.Time{})
}

func plainRates(snapshots []*CurrencySnapshot, f Filter, now time.Time) (all []*Rate) {
	for _, snapshot := range snapshots {
		for _, rate := range snapshot.view(now).rates {
			if (f.Currency == "" || f.Currency == rate.Currency) && f.matchesKey(QuoteKey{rate.InstitutionID, rate.Channel, rate.Kind}) {
				all = append(all, rate)
			}
		}
	}
	return all
}

func plainHistory(snapshots []*CurrencySnapshot, q *HistoryQuery) (all []HistoryEntry) {
	for _, snapshot := range snapshots {
		for _, row := range snapshot.Saved().History {
			if row.Date >= q.From && row.Date <= q.To && (q.Currency == "" || q.Currency == row.Currency) && q.matchesKey(row.key()) {
				all = append(all, row)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b HistoryEntry) int {
		return cmp.Or(
			cmp.Compare(a.Date, b.Date), cmp.Compare(a.InstitutionID, b.InstitutionID), cmp.Compare(a.Currency, b.Currency),
			cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Kind, b.Kind),
		)
	})
	return all
}

func sameInstitutions(t *rapid.T, market *MarketView, snapshots []*CurrencySnapshot, now time.Time) {
	items := market.Institutions(InstitutionsQuery{PageRequest: PageRequest{LimitMax, 0}}).Items
	for _, item := range items {
		rates := plainRates(snapshots, Filter{Institution: item.ID}, now)
		detail, err := market.Institution(item.ID)
		if err != nil || !slices.EqualFunc(detail.Rates, rates, sameRate) {
			t.Fatalf("%s: %+v, %v, want %+v", item.ID, detail, err, rates)
		}
		currencies, current := []string{}, 0
		for _, rate := range rates {
			currencies = append(currencies, rate.Currency)
			if !rate.Stale {
				current++
			}
		}
		if currencies = slices.Compact(currencies); !slices.Equal(item.Currencies, currencies) || item.CurrentQuoteCount != current {
			t.Fatalf("%s: %v with %d current, want %v with %d", item.ID, item.Currencies, item.CurrentQuoteCount, currencies, current)
		}
	}
}

func sameRate(a, b *Rate) bool { return *a == *b }

func sameRow(a, b HistoryEntry) bool { return a == b }

// The memory for a page does not depend on the number of institutions and currencies.
func TestF11_APageOfTheSameSizeTakesTheSameMemory(t *testing.T) {
	small, large := newSampleMarket(t, 45, 2), newSampleMarket(t, 450, 20)
	for name, ask := range sampleQueries() {
		before, after := allocatedBytes(func() { ask(small) }), allocatedBytes(func() { ask(large) })
		if after > before+before/10 {
			t.Errorf("%s: %d bytes, and %d with ten times as much to choose from", name, before, after)
		}
	}
}

// sampleMarket is a market in which all currencies have the same prices.
type sampleMarket struct {
	snapshots []*CurrencySnapshot
	market    *MarketView
	now       time.Time
}

func newSampleMarket(t testing.TB, institutions, currencies int) *sampleMarket {
	t.Helper()
	one := &sampleMarket{}
	for i := range currencies {
		c := newLargeFixture(institutions, 1)
		c.state.currency = fmt.Sprintf("C%02d", i)
		one.snapshots, one.now = append(one.snapshots, c.state.Snapshot()), c.now
	}
	one.market = NewMarketView(one.snapshots[0].catalogue, one.snapshots, one.now)
	return one
}

// sampleQueries are queries with the same answer in every sampleMarket.
func sampleQueries() map[string]func(*sampleMarket) {
	ten, day := PageRequest{10, 0}, DateOf(noon)
	first, mine := Filter{Currency: "C00"}, Filter{Currency: "C00", Institution: "institution-0007"}
	return map[string]func(*sampleMarket){
		"best":                    func(w *sampleMarket) { w.market.Ranking(RankingQuery{Filter: first, PageRequest: ten, Operation: Buy}) },
		"rates":                   func(w *sampleMarket) { w.market.Rates(RatesQuery{first, ten}) },
		"rates of one":            func(w *sampleMarket) { w.market.Rates(RatesQuery{mine, ten}) },
		"rates of all currencies": func(w *sampleMarket) { w.market.Rates(RatesQuery{PageRequest: ten}) },
		"history":                 func(w *sampleMarket) { w.snapshots[0].History(HistoryQuery{PageRequest: ten, From: day, To: day}) },
		"history of one":          func(w *sampleMarket) { w.snapshots[0].History(HistoryQuery{mine, ten, day, day}) },
		"the view while it holds": func(w *sampleMarket) { w.snapshots[0].view(w.now.Add(time.Hour)) },
	}
}

// allocatedBytes is the least that work allocates in several rounds: the runtime allocates too.
func allocatedBytes(work func()) uint64 {
	least := ^uint64(0)
	for range 10 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		work()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// TestF12_GarbageOfARefresh: the memory that a refresh of one rate allocates does not grow with the market. Otherwise
// an import from many sources makes several garbage collections, for which reads wait.
func TestF12_GarbageOfARefresh(t *testing.T) {
	c := newLargeFixture(1000, 1)
	one := Observe{[]Refresh{{SourceID: "another", ObservedAt: c.now, Observations: []Observation{usd("institution-0007", "57.10", "60.10")}}}}
	got := allocatedBytes(func() { _, _ = c.state.Decide(one, c.now) })
	if got > 32<<10 {
		t.Errorf("%d bytes in a market of 1,000 rates", got)
	}
}

// largeFixture is a state with quotes of many sources for many institutions.
type largeFixture struct {
	catalogue    *Catalogue
	state        *CurrencyState
	institutions []string
	sources      int
	now          time.Time
	n            int
}

// newLargeFixture makes its own institutions, because the catalogue has too few.
func newLargeFixture(institutions, sources int) *largeFixture {
	c := &largeFixture{sources: sources, now: noon}
	known := &Catalogue{
		institutions: map[string]*Institution{}, currencies: cloned(DefaultCatalogue().currencies), currencyList: DefaultCatalogue().currencyList,
	}
	for i := range institutions {
		id := fmt.Sprintf("institution-%04d", i)
		c.institutions = append(c.institutions, id)
		known.institutions[id] = &Institution{ID: id, Name: "Institution " + id, Type: Bank, Active: true}
	}
	known.institutionList = sortedValues(known.institutions)
	c.catalogue = known
	c.state = NewCurrencyState("USD", known, DefaultRules())
	c.observe(c.refreshes())
	return c
}

// refreshes returns one of every source, each with a quote of every institution, a minute after the last.
func (c *largeFixture) refreshes() []Refresh {
	c.n++
	c.now = c.now.Add(time.Minute)
	refreshes := make([]Refresh, c.sources)
	for s := range refreshes {
		refreshes[s] = Refresh{SourceID: fmt.Sprintf("list-%02d", s), ObservedAt: c.now, Complete: true, Slot: c.now}
		for i, id := range c.institutions {
			cents := (i + c.n) % 40
			refreshes[s].Observations = append(refreshes[s].Observations, Observation{
				InstitutionID: id, Currency: "USD", Channel: Branch, Buy: fmt.Sprintf("57.%02d", cents), Sell: fmt.Sprintf("60.%02d", cents),
			})
		}
	}
	return refreshes
}

func (c *largeFixture) observe(refreshes []Refresh) Decision {
	decision, err := c.state.Decide(Observe{refreshes}, c.now)
	if err != nil {
		panic(err)
	}
	for _, event := range decision.Events {
		c.state.Apply(event)
	}
	return decision
}
