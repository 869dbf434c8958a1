package engine

import (
	"cmp"
	"slices"
	"time"
)

// Market is every board at one instant, for the questions that span currencies. It is immutable, and right for every instant from
// now until ChangesAt.
type Market struct {
	catalogue *Catalogue
	boards    []*Board // by currency
	views     []*View  // of the same currencies
	byOwner   map[string][]*Rate
	changesAt time.Time
}

// NewMarket looks at all boards at one instant.
func NewMarket(catalogue *Catalogue, boards []*Board, now time.Time) *Market {
	market := &Market{catalogue: catalogue, boards: slices.Clone(boards), byOwner: map[string][]*Rate{}}
	slices.SortFunc(market.boards, func(a, b *Board) int { return cmp.Compare(a.currency, b.currency) })
	for _, board := range market.boards {
		view := board.View(now)
		market.views = append(market.views, view)
		market.changesAt = earlier(market.changesAt, view.changesAt)
		for _, rate := range view.rates {
			market.byOwner[rate.InstitutionID] = append(market.byOwner[rate.InstitutionID], rate)
		}
	}
	return market
}

// ChangesAt is the next expiry of a published rate in any currency, zero when none is ahead.
func (m *Market) ChangesAt() time.Time { return m.changesAt }

// Loaded reports that some rate was ever published, also of an institution that is inactive today.
func (m *Market) Loaded() bool {
	return slices.ContainsFunc(m.boards, func(b *Board) bool { return len(b.days) > 0 })
}

// Currencies lists every currency of the catalogue (P4, P6).
func (m *Market) Currencies() *Page[CurrencyItem] {
	views := make(map[string]*View, len(m.views))
	for _, view := range m.views {
		views[view.currency] = view
	}
	var items []CurrencyItem
	for _, currency := range m.catalogue.Currencies() {
		item := CurrencyItem{Currency: *currency}
		if view := views[currency.Code]; view != nil {
			item.QuoteCount, item.CurrentQuoteCount = len(view.rates), current(view.rates)
		}
		items = append(items, item)
	}
	return &Page[CurrencyItem]{Items: items, Total: len(items), Next: NoNext, ChangesAt: m.changesAt}
}

func current(rates []*Rate) int {
	n := 0
	for _, rate := range rates {
		if !rate.Stale {
			n++
		}
	}
	return n
}

// Institutions lists the active institutions (P4, P6, P8).
func (m *Market) Institutions(q InstitutionsQuery) *Page[InstitutionItem] {
	var items []InstitutionItem
	for _, institution := range m.catalogue.Institutions() {
		rates := m.byOwner[institution.ID]
		currencies := currenciesOf(rates)
		if !institution.Active || q.Currency != "" && !slices.Contains(currencies, q.Currency) {
			continue
		}
		items = append(items, InstitutionItem{institution, currencies, current(rates)})
	}
	return pageOf(items, q.Cut, m.changesAt)
}

// currenciesOf relies on the order of rates: by currency.
func currenciesOf(rates []*Rate) []string {
	codes := make([]string, 0, len(rates))
	for _, rate := range rates {
		codes = append(codes, rate.Currency)
	}
	return slices.Compact(codes)
}

// Institution is the detail of an active institution (P7).
func (m *Market) Institution(id string) (*InstitutionDetail, error) {
	institution, known := m.catalogue.Institution(id)
	if !known || !institution.Active {
		return nil, &Error{Code: CodeInstitutionNotFound, Message: "no active institution has this id; GET /v1/institutions lists them"}
	}
	return &InstitutionDetail{Institution: institution, Rates: m.byOwner[id], ChangesAt: m.changesAt}, nil
}

// Rates is the part of all published rates that a query asks for.
func (m *Market) Rates(q RatesQuery) *Page[*Rate] { return ratesPage(m.views, q) }

// History is the part of all daily rows that a query asks for.
func (m *Market) History(q HistoryQuery) *Page[HistoryEntry] { return historyPage(m.boards, q) }
