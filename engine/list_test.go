package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

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
