package engine

import (
	"cmp"
	"slices"
	"time"
)

// MarketView is every board at one instant, for the questions that span currencies. It has one owner; what it answers is immutable, and
// right for every instant from now until ChangesAt.
type MarketView struct {
	catalogue *Catalogue
	snapshots []*CurrencySnapshot // by currency
	views     []*RankedView       // of the same currencies
	changesAt time.Time

	institutions []InstitutionItem // active ones; made when they are asked for
}

// NewMarketView looks at all boards at one instant.
func NewMarketView(catalogue *Catalogue, boards []*CurrencySnapshot, now time.Time) *MarketView {
	return NextMarketView(catalogue, boards, nil, now)
}

// NextMarketView is NewMarketView, made of older views as far as they still hold: views[i] is one of a board of the same book as boards[i],
// or nil. Without views there are none.
func NextMarketView(catalogue *Catalogue, boards []*CurrencySnapshot, views []*RankedView, now time.Time) *MarketView {
	market := &MarketView{catalogue: catalogue, snapshots: slices.Clone(boards), views: make([]*RankedView, len(boards))}
	for i, board := range boards {
		var old *RankedView
		if i < len(views) {
			old = views[i]
		}
		market.views[i] = board.NextView(old, now)
		market.changesAt = earlier(market.changesAt, market.views[i].changesAt)
	}
	slices.SortFunc(market.snapshots, func(a, b *CurrencySnapshot) int { return cmp.Compare(a.currency, b.currency) })
	slices.SortFunc(market.views, func(a, b *RankedView) int { return cmp.Compare(a.currency, b.currency) })
	return market
}

// Views are those of the boards, by currency: the older views of the next market.
func (m *MarketView) Views() []*RankedView { return m.views }

// ChangesAt is the next expiry of a published rate in any currency, zero when none is ahead.
func (m *MarketView) ChangesAt() time.Time { return m.changesAt }

// Loaded reports that some rate was ever published, also of an institution that is inactive today.
func (m *MarketView) Loaded() bool {
	return slices.ContainsFunc(m.snapshots, func(b *CurrencySnapshot) bool { return len(b.days) > 0 })
}

// Currencies lists every currency of the catalogue (P4, P6).
func (m *MarketView) Currencies() *Page[CurrencyItem] {
	views := make(map[string]*RankedView, len(m.views))
	for _, view := range m.views {
		views[view.currency] = view
	}
	var items []CurrencyItem
	for _, currency := range m.catalogue.Currencies() {
		item := CurrencyItem{Currency: *currency}
		if view := views[currency.Code]; view != nil {
			item.QuoteCount, item.CurrentQuoteCount = len(view.rates), view.current
		}
		items = append(items, item)
	}
	return &Page[CurrencyItem]{Items: items, Total: len(items), NextCursor: NoNextCursor, ChangesAt: m.changesAt}
}

// Institutions lists the active institutions (P4, P6, P8).
func (m *MarketView) Institutions(q InstitutionsQuery) *Page[InstitutionItem] {
	if m.institutions == nil {
		m.institutions = m.listInstitutions()
	}
	cut := pager[InstitutionItem]{request: q.PageRequest}
	for _, item := range m.institutions {
		if q.Currency == "" || slices.Contains(item.Currencies, q.Currency) {
			cut.add(item)
		}
	}
	return cut.page(m.changesAt)
}

// listInstitutions counts the rates of all currencies by institution.
func (m *MarketView) listInstitutions() []InstitutionItem {
	items := []InstitutionItem{}
	at := map[string]int{}
	for _, institution := range m.catalogue.Institutions() {
		if institution.Active {
			at[institution.ID] = len(items)
			items = append(items, InstitutionItem{Institution: institution, Currencies: []string{}})
		}
	}
	for _, view := range m.views {
		for _, rate := range view.rates {
			i, active := at[rate.InstitutionID]
			if !active {
				continue
			}
			item := &items[i]
			if n := len(item.Currencies); n == 0 || item.Currencies[n-1] != view.currency {
				item.Currencies = append(item.Currencies, view.currency)
			}
			if !rate.Stale {
				item.CurrentQuoteCount++
			}
		}
	}
	return items
}

// Institution is the detail of an active institution (P7).
func (m *MarketView) Institution(id string) (*InstitutionDetail, error) {
	institution, known := m.catalogue.Institution(id)
	if !known || !institution.Active {
		return nil, &Error{Code: CodeInstitutionNotFound, Message: "no active institution has this id; GET /v1/institutions lists them"}
	}
	var rates []*Rate
	for _, view := range m.views {
		rates = append(rates, view.ofInstitution(id)...)
	}
	return &InstitutionDetail{Institution: institution, Rates: rates, ChangesAt: m.changesAt}, nil
}

// Rates is the part of all published rates that a query asks for.
func (m *MarketView) Rates(q RatesQuery) *Page[*Rate] { return ratesPage(m.views, q) }

// History is the part of all daily rows that a query asks for.
func (m *MarketView) History(q HistoryQuery) *Page[HistoryEntry] { return historyPage(m.snapshots, q) }
