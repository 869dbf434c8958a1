package engine

import (
	"cmp"
	"slices"
	"time"
)

// MarketView has the views (published rates and their ranking) of all currencies at one time, for queries over several
// currencies. Its methods must not be called concurrently. The pages that it returns are immutable and valid until
// changesAt.
type MarketView struct {
	catalogue *Catalogue
	snapshots []*CurrencySnapshot // by currency
	views     []*RankedView       // views of the same currencies, in the same order
	from      time.Time
	changesAt time.Time

	institutions []InstitutionItem // active institutions; nil until the first query
}

// NewMarketView returns the view of all snapshots at a time.
func NewMarketView(catalogue *Catalogue, snapshots []*CurrencySnapshot, now time.Time) *MarketView {
	market := &MarketView{catalogue: catalogue, from: now, snapshots: slices.Clone(snapshots), views: make([]*RankedView, len(snapshots))}
	slices.SortFunc(market.snapshots, func(a, b *CurrencySnapshot) int { return cmp.Compare(a.currency, b.currency) })
	for i, snapshot := range market.snapshots {
		market.views[i] = snapshot.View(now)
		market.changesAt = earlier(market.changesAt, market.views[i].changesAt)
	}
	return market
}

// ValidAt reports whether the view shows the rates as they are at a time, if no snapshot has changed.
func (m *MarketView) ValidAt(now time.Time) bool { return validAt(now, m.from, m.changesAt) }

// Currencies lists all currencies of the catalogue, including those without rates.
func (m *MarketView) Currencies() *Page[CurrencyItem] {
	var items []CurrencyItem
	for _, currency := range m.catalogue.Currencies() {
		item := CurrencyItem{Currency: *currency}
		if view := m.view(currency.Code); view != nil {
			item.QuoteCount, item.CurrentQuoteCount = len(view.rates), view.current
		}
		items = append(items, item)
	}
	return &Page[CurrencyItem]{Items: items, Total: len(items), NextCursor: NoNextCursor, ChangesAt: m.changesAt}
}

// Institutions lists the active institutions, including those without rates.
func (m *MarketView) Institutions(q InstitutionsQuery) *Page[InstitutionItem] {
	if m.institutions == nil {
		m.institutions = m.listInstitutions()
	}
	p := pager[InstitutionItem]{request: q.PageRequest}
	for _, item := range m.institutions {
		if q.Currency == "" || slices.Contains(item.Currencies, q.Currency) {
			p.add(item)
		}
	}
	return p.page(m.changesAt)
}

func (m *MarketView) listInstitutions() []InstitutionItem {
	items := []InstitutionItem{}
	for _, institution := range m.catalogue.Institutions() {
		if !institution.Active {
			continue
		}
		item := InstitutionItem{Institution: institution, Currencies: []string{}}
		for _, view := range m.views {
			rates := view.ofInstitution(institution.ID)
			if len(rates) > 0 {
				item.Currencies = append(item.Currencies, view.currency)
			}
			for _, rate := range rates {
				if !rate.Stale {
					item.CurrentQuoteCount++
				}
			}
		}
		items = append(items, item)
	}
	return items
}

// Institution returns an active institution with its rates, or an error with CodeInstitutionNotFound.
func (m *MarketView) Institution(id string) (*InstitutionDetail, error) {
	institution, known := m.catalogue.Institution(id)
	if !known || !institution.Active {
		message := "no active institution has this id; GET /v1/institutions lists them"
		if nearest := m.catalogue.NearestInstitution(id); nearest != "" {
			message += "; the nearest id is " + nearest
		}
		return nil, &Error{Code: CodeInstitutionNotFound, Message: message}
	}
	var rates []*Rate
	for _, view := range m.views {
		rates = append(rates, view.ofInstitution(id)...)
	}
	return &InstitutionDetail{Institution: institution, Rates: rates, ChangesAt: m.changesAt}, nil
}

// view returns the view of a currency, or nil.
func (m *MarketView) view(code string) *RankedView {
	compare := func(view *RankedView, code string) int { return cmp.Compare(view.currency, code) }
	if i, found := slices.BinarySearchFunc(m.views, code, compare); found {
		return m.views[i]
	}
	return nil
}

// Ranking returns the ranked rates that match the query. For an unknown currency it returns an empty page.
func (m *MarketView) Ranking(q RankingQuery) *Page[*Rate] {
	if view := m.view(q.Currency); view != nil {
		return view.Ranking(q)
	}
	return (&RankedView{}).Ranking(q)
}

// Rates returns the published rates that match the query, in all currencies.
func (m *MarketView) Rates(q RatesQuery) *Page[*Rate] { return ratesPage(m.views, q) }

// History returns the daily rows that match the query, in all currencies.
func (m *MarketView) History(q HistoryQuery) *Page[HistoryEntry] { return historyPage(m.snapshots, q) }
