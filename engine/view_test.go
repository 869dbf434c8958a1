package engine

import (
	"cmp"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The view that a snapshot keeps is the one that it would make.
func TestT1_TheViewThatIsKeptIsTheView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := NewCurrencyState("USD", testCatalogue(), DefaultRules())
		now := noon
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(-20, 40).Draw(t, "hours")) * time.Hour)
			decision, _ := state.Decide(drawCommand(t, now, state.Snapshot().Quarantine()), now)
			replay(state, decision.Events)
			snapshot := state.Snapshot()
			for range 3 {
				at := now.Add(time.Duration(rapid.IntRange(-30, 60).Draw(t, "look")) * time.Hour)
				view := snapshot.view(at)
				sameView(t, view, snapshot.makeView(at))
				if again := snapshot.view(at); again != view {
					t.Fatal("a view that still holds was made again")
				}
			}
		}
	})
}

func sameView(t *rapid.T, got, want *currencyView) {
	for what, lists := range map[string][2][]*Rate{
		"rates": {got.rates, want.rates}, "to buy": {got.toBuy, want.toBuy}, "to sell": {got.toSell, want.toSell},
	} {
		if !slices.EqualFunc(lists[0], lists[1], sameRate) {
			t.Fatalf("%s: %d and %d, or others: %+v, want %+v", what, len(lists[0]), len(lists[1]), lists[0], lists[1])
		}
	}
	if !got.changesAt.Equal(want.changesAt) || got.current != want.current {
		t.Fatalf("changes at %v with %d current, want %v with %d", got.changesAt, got.current, want.changesAt, want.current)
	}
}

// newMarketFixture is a fixture over two currencies.
func newMarketFixture(t *testing.T) (*fixture, func() *MarketView) {
	f := newFixture(t)
	euros := NewCurrencyState("EUR", DefaultCatalogue(), DefaultRules())
	observation := Observation{InstitutionID: "vimenca", Currency: "EUR", Buy: "66.8", Sell: "70.9"}
	old := Refresh{SourceID: "e", ObservedAt: f.now.Add(-27 * time.Hour), Observations: []Observation{observation}}
	decision, err := euros.Decide(Observe{[]Refresh{old}}, f.now)
	must(t, err)
	for _, event := range decision.Events {
		euros.Apply(event)
	}
	f.accept("a", usd("bhd", "57", "60"), usd("vimenca", "57", "60"), usd("bancamerica", "57", "60"))
	return f, func() *MarketView {
		return NewMarketView(DefaultCatalogue(), []*CurrencySnapshot{f.state.Snapshot(), euros.Snapshot()}, f.now)
	}
}

func TestP1_TheCursorCountsItems(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57", "60"), usd("popular", "57", "60"), usd("caribe", "57", "60"))
	for _, c := range []struct{ limit, cursor, items, next int }{
		{2, 0, 2, 2}, {2, 2, 1, NoNextCursor}, {3, 0, 3, NoNextCursor}, {1, 1, 1, 2}, {5, 3, 0, NoNextCursor}, {5, 100000, 0, NoNextCursor},
	} {
		page := f.marketView().Rates(RatesQuery{PageRequest: PageRequest{c.limit, c.cursor}})
		if len(page.Items) != c.items || page.NextCursor != c.next || page.Total != 3 {
			t.Errorf("limit %d cursor %d: %d items, next %d, total %d, want %d, %d, 3",
				c.limit, c.cursor, len(page.Items), page.NextCursor, page.Total, c.items, c.next)
		}
	}
	many := make([]int, CursorMax+300)
	if page := pageOf(many, PageRequest{200, CursorMax}); page.NextCursor != NoNextCursor || len(page.Items) != 200 {
		t.Errorf("behind the last cursor next is %d with %d items, want none with 200", page.NextCursor, len(page.Items))
	}
	if page := pageOf(many, PageRequest{200, CursorMax - 200}); page.NextCursor != CursorMax {
		t.Errorf("next is %d, want the last cursor", page.NextCursor)
	}
}

func TestP2_P3_APageIsOfOneSnapshot(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57", "60"))
	view := f.marketView()
	page := view.Rates(RatesQuery{PageRequest: PageRequest{LimitMax, 0}})
	before := *page.Items[0]
	f.advance(time.Hour)
	f.accept("a", usd("bhd", "57.5", "60.5"), usd("popular", "57", "60"))
	if again := view.Rates(RatesQuery{PageRequest: PageRequest{LimitMax, 0}}); again.Total != 1 || *page.Items[0] != before || *again.Items[0] != before {
		t.Errorf("an old view shows %d, an old page %+v", again.Total, *page.Items[0])
	}
	if page := f.marketView().Rates(RatesQuery{PageRequest: PageRequest{LimitMax, 0}}); page.Total != 2 {
		t.Errorf("a new view shows %d", page.Total)
	}
}

func TestP4_ListOrders(t *testing.T) {
	f, now := newMarketFixture(t)
	digital, ref := usd("bhd", "57", "60"), usd("bhd", "57", "60")
	digital.Channel, ref.Kind = Digital, Reference
	f.accept("a", ref, digital)
	var rates []string
	for _, rate := range now().Rates(RatesQuery{PageRequest: PageRequest{LimitMax, 0}}).Items {
		rates = append(rates, rate.ID)
	}
	want := []string{
		"vimenca:EUR:unspecified:commercial", "bhd:USD:digital:commercial", "bhd:USD:unspecified:commercial",
		"bhd:USD:unspecified:reference", "vimenca:USD:unspecified:commercial",
	}
	if !slices.Equal(rates, want) {
		t.Errorf("rates are in the order %v, want %v", rates, want)
	}
	currencies := now().Currencies().Items
	if !slices.IsSortedFunc(currencies, func(a, b CurrencyItem) int { return strings.Compare(a.Code, b.Code) }) {
		t.Error("currencies are not in the order of their codes")
	}
	institutions := now().Institutions(InstitutionsQuery{PageRequest: PageRequest{LimitMax, 0}}).Items
	if !slices.IsSortedFunc(institutions, func(a, b InstitutionItem) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("institutions are not in the order of their ids")
	}
}

func TestP6_Counts(t *testing.T) {
	_, now := newMarketFixture(t)
	counts := map[string]string{}
	for _, c := range now().Currencies().Items {
		counts[c.Code] = fmt.Sprint(c.QuoteCount, c.CurrentQuoteCount)
	}
	for code, want := range map[string]string{"USD": "2 2", "EUR": "1 0", "JPY": "0 0"} {
		if counts[code] != want {
			t.Errorf("%s counts %s, want %s", code, counts[code], want)
		}
	}
	all := now().Institutions(InstitutionsQuery{PageRequest: PageRequest{LimitMax, 0}})
	active := 0
	for _, institution := range DefaultCatalogue().Institutions() {
		if institution.Active {
			active++
		}
	}
	if all.Total != active {
		t.Errorf("lists %d institutions, want all %d active ones", all.Total, active)
	}
}

func TestP7_AnInactiveInstitutionIsAbsentButForHistory(t *testing.T) {
	f, now := newMarketFixture(t)
	if page := now().Rates(RatesQuery{Filter: Filter{Institution: "bancamerica"}, PageRequest: PageRequest{LimitMax, 0}}); page.Total != 0 {
		t.Error("its rates are listed")
	}
	if slices.Contains(f.ranking(Buy), "bancamerica/unspecified") {
		t.Error("it is ranked")
	}
	if _, err := now().Institution("bancamerica"); err == nil {
		t.Error("it has a detail")
	}
	today := DateOf(f.now)
	history := now().History(HistoryQuery{Filter: Filter{Institution: "bancamerica"}, PageRequest: PageRequest{LimitMax, 0}, From: today, To: today})
	if history.Total != 1 {
		t.Errorf("its history has %d rows, want 1", history.Total)
	}
}

func TestP8_InstitutionsByCurrency(t *testing.T) {
	_, now := newMarketFixture(t)
	page := now().Institutions(InstitutionsQuery{"EUR", PageRequest{LimitMax, 0}})
	if page.Total != 1 || page.Items[0].ID != "vimenca" || page.Items[0].CurrentQuoteCount != 1 || !slices.Equal(page.Items[0].Currencies, []string{"EUR", "USD"}) {
		t.Errorf("EUR gives %+v, want vimenca (expired) with both currencies and one current quote", page.Items)
	}
}

// shortHistory is a state with the shortest history that is allowed.
func shortHistory(currency string) *CurrencyState {
	rules := DefaultRules()
	rules.HistoryDays = HistoryDaysMin
	return NewCurrencyState(currency, testCatalogue(), rules)
}

// A replay without any snapshot drops the same days.
func TestX9_ReplayForgetsTheSameDays(t *testing.T) {
	live, silent := newFixture(t), newFixture(t)
	live.state, silent.state = shortHistory("USD"), shortHistory("USD")
	for day := range 500 {
		for _, f := range []*fixture{live, silent} {
			f.now = noon.Add(time.Duration(day) * 24 * time.Hour)
			f.accept("a", usd("bhd", "57", "60"))
			f.accept("bcrd-reference", reference("58.9", "59.3"))
			for _, ago := range []int{400, 360} {
				old := Refresh{SourceID: "a", ObservedAt: f.now.AddDate(0, 0, -ago), Observations: []Observation{usd("bhd", "56", "60")}}
				f.apply(Observe{[]Refresh{old}})
				old.SourceID, old.Observations = "bcrd-reference", []Observation{reference("58.8", "59.3")}
				f.apply(Observe{[]Refresh{old}})
			}
		}
		live.state.Snapshot()
	}
	a, b := live.state.Snapshot().Saved(), silent.state.Snapshot().Saved()
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%d rows with snapshots, %d without", len(a.History), len(b.History))
	}
	if back := RestoreCurrencyState(a, testCatalogue(), live.state.rules).Snapshot().Saved(); !reflect.DeepEqual(a, back) {
		t.Errorf("%d rows, %d after a snapshot", len(a.History), len(back.History))
	}
}

// Days that are too old lose all but their reference rows; older snapshots keep all.
func TestX9_ReferenceRowsAreKeptForGood(t *testing.T) {
	f := newFixture(t)
	f.state = shortHistory("USD")
	start := DateOf(noon)
	both := func() {
		f.accept("a", usd("bhd", "57", "60"), usd("caribe", "57.1", "60"))
		f.accept("bcrd-reference", reference("58.9", "59.3"))
	}
	both()
	f.advance(24 * time.Hour)
	f.accept("a", usd("bhd", "57", "60"))
	first := f.state.Snapshot()
	f.advance(3 * 366 * 24 * time.Hour)
	both()
	count := func(snapshot *CurrencySnapshot, from, to Date) int {
		return snapshot.History(HistoryQuery{PageRequest: PageRequest{LimitMax, 0}, From: from, To: to}).Total
	}
	page := f.state.Snapshot().History(HistoryQuery{PageRequest: PageRequest{LimitMax, 0}, From: start, To: start + 1})
	if page.Total != 1 || page.Items[0].Kind != Reference || page.Items[0].Date != start {
		t.Errorf("of the first days are kept %+v", page.Items)
	}
	if got := count(first, start, start+1); got != 4 {
		t.Errorf("the snapshot of then has %d rows, want 4", got)
	}
	for _, observation := range []Observation{usd("bhd", "12", "12.5"), reference("12.5", "12.7")} {
		observation.EffectiveDate = dayOf("1991-01-02")
		receipt := f.apply(Observe{[]Refresh{{SourceID: "past", ObservedAt: noon, Observations: []Observation{observation}}}})
		restored := RestoreCurrencyState(f.state.Snapshot().Saved(), testCatalogue(), f.state.rules)
		want := 0
		if observation.Kind == Reference {
			want = 1
		}
		if live, back := count(f.state.Snapshot(), 1, start-1), count(restored.Snapshot(), 1, start-1); receipt.Accepted != 1 || live != want || back != want {
			t.Errorf("%+v: %d rows, %d after a snapshot, want %d", receipt, live, back, want)
		}
	}
}

// longHistory is 35 years of business days of a reference currency.
func longHistory(currency string) *CurrencyState {
	state := NewCurrencyState(currency, testCatalogue(), DefaultRules())
	for date := dayOf("1991-06-17"); date <= DateOf(noon); date++ {
		observed := date.Start().Add(17 * time.Hour)
		if weekday := observed.In(Location()).Weekday(); weekday == time.Saturday || weekday == time.Sunday {
			continue
		}
		decimals := fmt.Sprintf("%04d", int(date)%10000)
		state.Apply(&Refreshed{Origin: Origin{Currency: currency, SourceID: "bcrd-reference", ObservedAt: observed, Priority: 100}, Quotes: []AcceptedQuote{{
			Key: QuoteKey{"bcrd", Unspecified, Reference}, Buy: decimalFrom("58." + decimals), Sell: decimalFrom("59." + decimals),
			EffectiveDate: date, ExpiresAt: observed.Add(98 * time.Hour),
		}}})
	}
	return state
}

func longHistories(count int) (states []*CurrencyState, snapshots []*CurrencySnapshot) {
	for i := range count {
		states = append(states, longHistory(fmt.Sprintf("X%02d", i)))
		snapshots = append(snapshots, states[i].Snapshot())
	}
	return states, snapshots
}

func TestX9_ALongHistoryFitsIntoMemory(t *testing.T) {
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	count := sweep(3, 15)
	states, snapshots := longHistories(count)
	used, rows := heap()-before, uint64(0)
	for _, snapshot := range snapshots {
		rows += uint64(len(snapshot.Saved().History))
	}
	t.Logf("%d rows take %.1f MB, %d bytes a row", rows, float64(used)/1e6, used/rows)
	if rows != uint64(count)*9133 || used/rows > 400 {
		t.Errorf("%d rows with %d bytes each, want %d with at most 400", rows, used/rows, count*9133)
	}
	runtime.KeepAlive(states)
}

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
		if err != nil || !slices.EqualFunc(detail.Items, rates, sameRate) {
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
	known := &Catalogue{institutions: map[string]*Institution{}, currencies: DefaultCatalogue().currencies}
	for i := range institutions {
		id := fmt.Sprintf("institution-%04d", i)
		c.institutions = append(c.institutions, id)
		known.institutions[id] = &Institution{ID: id, Name: "Institution " + id, Type: Bank, Active: true}
	}
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
