package engine

import (
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
	a, b := live.state.Saved(), silent.state.Saved()
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%d rows with snapshots, %d without", len(a.History), len(b.History))
	}
	if back := RestoreCurrencyState(a, testCatalogue(), live.state.rules).Saved(); !reflect.DeepEqual(a, back) {
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
		restored := RestoreCurrencyState(f.state.Saved(), testCatalogue(), f.state.rules)
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
		state.Apply(&Refreshed{Currency: currency, SourceID: "bcrd-reference", ObservedAt: observed, Priority: 100, Quotes: []AcceptedQuote{{
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
