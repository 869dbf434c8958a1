package engine

import (
	"cmp"
	"slices"
	"time"
)

// MarketView combines the views (published rates and their ranking) of all currencies at one time. Its methods must not
// be called concurrently. The returned pages are immutable and valid until changesAt.
type MarketView struct {
	catalogue *Catalogue
	snapshots []*CurrencySnapshot // by currency
	views     []*currencyView     // views of the same currencies, in the same order
	from      time.Time
	changesAt time.Time

	institutions []InstitutionItem // active institutions; nil until the first query
}

// NewMarketView returns the view of all snapshots at a time.
func NewMarketView(catalogue *Catalogue, snapshots []*CurrencySnapshot, now time.Time) *MarketView {
	market := &MarketView{catalogue: catalogue, from: now, snapshots: slices.Clone(snapshots), views: make([]*currencyView, len(snapshots))}
	slices.SortFunc(market.snapshots, func(a, b *CurrencySnapshot) int { return cmp.Compare(a.currency, b.currency) })
	for i, snapshot := range market.snapshots {
		market.views[i] = snapshot.view(now)
		market.changesAt = earlier(market.changesAt, market.views[i].changesAt)
	}
	return market
}

// ValidAt reports whether the view is valid at a time. It does not know of newer snapshots.
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
func (m *MarketView) view(code string) *currencyView {
	compare := func(view *currencyView, code string) int { return cmp.Compare(view.currency, code) }
	if i, found := slices.BinarySearchFunc(m.views, code, compare); found {
		return m.views[i]
	}
	return nil
}

// Ranking returns the ranked rates that match the query. For an unknown currency it returns an empty page.
func (m *MarketView) Ranking(q RankingQuery) *Page[*Rate] {
	p := pager[*Rate]{request: q.PageRequest}
	q.Kind = cmp.Or(q.Kind, Commercial)
	view := m.view(q.Currency)
	if view == nil || q.Kind == Reference && !q.ForConvert { // institutions do not trade at reference rates
		return p.page(time.Time{})
	}
	list := view.toBuy
	if q.Operation == Sell {
		list = view.toSell
	}
	addMatching(&p, list, &q.Filter)
	return p.page(view.changesAt)
}

// Rates returns the published rates that match the query, in all currencies.
func (m *MarketView) Rates(q RatesQuery) *Page[*Rate] {
	p := pager[*Rate]{request: q.PageRequest}
	var changesAt time.Time
	for _, view := range m.views {
		if q.Currency != "" && q.Currency != view.currency {
			continue
		}
		changesAt = earlier(changesAt, view.changesAt)
		rates := view.rates
		if q.Institution != "" {
			rates = view.ofInstitution(q.Institution)
		}
		addMatching(&p, rates, &q.Filter)
	}
	return p.page(changesAt)
}

// History returns the daily rows that match the query, in all currencies.
func (m *MarketView) History(q HistoryQuery) *Page[HistoryEntry] { return historyPage(m.snapshots, q) }

// addMatching adds the rates selected by a filter. It ignores the filter's currency.
func addMatching(p *pager[*Rate], rates []*Rate, f *Filter) {
	for _, rate := range rates {
		if f.matchesKey(QuoteKey{rate.InstitutionID, rate.Channel, rate.Kind}) {
			p.add(rate)
		}
	}
}
