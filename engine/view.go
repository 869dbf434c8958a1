package engine

import (
	"cmp"
	"slices"
	"sort"
	"sync/atomic"
	"time"
)

// CurrencySnapshot is an immutable copy of the state of one currency. For data that depends on the time, such as which
// rates are stale, use MarketView.
type CurrencySnapshot struct {
	contents
	Currency   string    // code
	CheckedAt  time.Time // latest time at which a source confirmed any quote, or zero
	FreshUntil time.Time // latest expiry of a quote of an active institution, or zero
	catalogue  *Catalogue
	newestView atomic.Pointer[currencyView] // the view that was made most recently; nil at first
}

// Quarantine returns the refused observations in quarantine, oldest first.
func (s *CurrencySnapshot) Quarantine() []Quarantined { return s.quarantine }

// HasRates reports whether any rate was ever published, including rates of institutions that are now inactive.
func (s *CurrencySnapshot) HasRates() bool { return len(s.days) > 0 }

// HasReference reports whether a source has given a reference rate, which may have expired.
func (s *CurrencySnapshot) HasReference() bool {
	return slices.ContainsFunc(s.quotes, func(q *quote) bool { return q.key.Kind == Reference && len(q.sourceQuotes) > 0 })
}

// Saved returns the state for backups and for snapshots of the log. It copies the whole history, so do not call it on
// the goroutine that owns the CurrencyState.
func (s *CurrencySnapshot) Saved() SavedCurrency {
	saved := SavedCurrency{Currency: s.Currency, Quarantine: s.quarantine, LastQuarantineID: s.lastQuarantineID, Slots: s.slots}
	for _, q := range s.quotes {
		for _, quote := range q.sourceQuotes {
			saved.SourceQuotes = append(saved.SourceQuotes, *quote)
		}
		saved.Pending = append(saved.Pending, q.pending...)
	}
	for _, day := range s.days {
		for _, row := range day.rows {
			saved.History = append(saved.History, *row)
		}
	}
	return saved
}

func (s *CurrencySnapshot) setFreshness() {
	for _, q := range s.quotes {
		institution, known := s.catalogue.Institution(q.key.Institution)
		for _, quote := range q.sourceQuotes {
			if quote.LastCheckedAt.After(s.CheckedAt) {
				s.CheckedAt = quote.LastCheckedAt
			}
			if known && institution.Active && quote.ExpiresAt.After(s.FreshUntil) {
				s.FreshUntil = quote.ExpiresAt
			}
		}
	}
}

// currencyView is the published rates of a CurrencySnapshot at one time, with their ranking and stale rates marked. It
// is immutable and valid from that time until changesAt.
type currencyView struct {
	currency  string
	from      time.Time
	rates     []*Rate // sorted by quote key
	toBuy     []*Rate // current rates with a sell side, lowest first
	toSell    []*Rate // current rates with a buy side, highest first
	current   int     // number of rates that are not stale
	changesAt time.Time
}

// view returns the view at a time. The snapshot caches the newest view while it is valid.
func (s *CurrencySnapshot) view(now time.Time) *currencyView {
	if view := s.newestView.Load(); view != nil && validAt(now, view.from, view.changesAt) {
		return view
	}
	view := s.makeView(now)
	s.newestView.Store(view)
	return view
}

func (s *CurrencySnapshot) makeView(now time.Time) *currencyView {
	view := &currencyView{currency: s.Currency, from: now, rates: make([]*Rate, 0, len(s.quotes))}
	for _, q := range s.quotes {
		rate := s.rate(q, now)
		if rate == nil {
			continue
		}
		view.rates = append(view.rates, rate)
		if rate.Stale {
			continue
		}
		view.current++
		view.changesAt = earlier(view.changesAt, rate.ExpiresAt)
		if !rate.Sell.IsNull() {
			view.toBuy = append(view.toBuy, rate)
		}
		if !rate.Buy.IsNull() {
			view.toSell = append(view.toSell, rate)
		}
	}
	slices.SortFunc(view.toBuy, func(a, b *Rate) int { return compareRanked(Buy, a, b) })
	slices.SortFunc(view.toSell, func(a, b *Rate) int { return compareRanked(Sell, a, b) })
	return view
}

// validAt reports whether a view is valid now: not before the time from, because the clock may be set back, and only
// until changesAt. A zero changesAt means that the view does not change.
func validAt(now, from, changesAt time.Time) bool {
	return !now.Before(from) && (changesAt.IsZero() || now.Before(changesAt))
}

// earlier returns the earlier of two times, where zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// rate returns the published rate of a quote, or nil.
func (s *CurrencySnapshot) rate(q *quote, now time.Time) *Rate {
	institution, known := s.catalogue.Institution(q.key.Institution)
	published := q.published(now)
	if published == nil || !known || !institution.Active {
		return nil
	}
	source := s.catalogue.Source(published.SourceID)
	return &Rate{
		ID: q.key.ID(s.Currency), InstitutionID: institution.ID, InstitutionName: institution.Name,
		InstitutionType: institution.Type, Website: institution.Website, Currency: s.Currency,
		Buy: published.Buy, Sell: published.Sell, Channel: published.Key.Channel, Kind: published.Key.Kind,
		EffectiveDate: published.EffectiveDate, PublishedAt: published.PublishedAt, UpstreamSource: published.UpstreamSource,
		SourceID: source.ID, SourceName: source.Name, SourceURL: source.URL,
		CollectedAt: published.CollectedAt, LastCheckedAt: published.LastCheckedAt, ExpiresAt: published.ExpiresAt,
		Priority: published.Priority, Manual: published.Manual, Stale: published.staleAt(now),
		DatePrecision: precisionOf(published.EffectiveDate, published.PublishedAt),
	}
}

func (v *currencyView) ofInstitution(id string) []*Rate {
	return ofInstitution(v.rates, id, func(rate *Rate) string { return rate.InstitutionID })
}

// ofInstitution returns the items of one institution. The items are sorted by institution.
func ofInstitution[T any](items []T, id string, institution func(T) string) []T {
	start := sort.Search(len(items), func(i int) bool { return institution(items[i]) >= id })
	end := start
	for end < len(items) && institution(items[end]) == id {
		end++
	}
	return items[start:end:end] // an append of the caller copies
}

// MarketView combines the views (published rates and their ranking) of all currencies at one time. It is immutable. The
// returned pages are valid until changesAt.
type MarketView struct {
	catalogue *Catalogue
	snapshots []*CurrencySnapshot // by currency
	views     []*currencyView     // views of the same currencies, in the same order
	from      time.Time
	changesAt time.Time
}

// NewMarketView returns the view of all snapshots at a time.
func NewMarketView(catalogue *Catalogue, snapshots []*CurrencySnapshot, now time.Time) *MarketView {
	market := &MarketView{catalogue: catalogue, from: now, snapshots: slices.Clone(snapshots), views: make([]*currencyView, len(snapshots))}
	slices.SortFunc(market.snapshots, func(a, b *CurrencySnapshot) int { return cmp.Compare(a.Currency, b.Currency) })
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
	p := pager[InstitutionItem]{request: q.PageRequest}
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
		if q.Currency == "" || slices.Contains(item.Currencies, q.Currency) {
			p.add(item)
		}
	}
	return p.page(m.changesAt)
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
	return &InstitutionDetail{institution, Page[*Rate]{
		Items: rates, Total: len(rates), NextCursor: NoNextCursor, ChangesAt: m.changesAt,
	}}, nil
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

// addMatching adds the rates selected by a filter. It ignores the filter's currency.
func addMatching(p *pager[*Rate], rates []*Rate, f *Filter) {
	for _, rate := range rates {
		if f.matchesKey(QuoteKey{rate.InstitutionID, rate.Channel, rate.Kind}) {
			p.add(rate)
		}
	}
}

// History returns the daily rows that match the query, in all currencies, sorted by date, then institution, then
// currency. It counts all matching rows, but copies only the page.
func (m *MarketView) History(q HistoryQuery) *Page[HistoryEntry] {
	p := pager[HistoryEntry]{request: q.PageRequest}
	for days := daysInRange(m.snapshots, q); len(days) > 0; {
		n := 1
		for n < len(days) && days[n].date == days[0].date {
			n++
		}
		group := dayGroup(days[:n])
		days = days[n:]
		matches := group.count(&q.Filter)
		if p.total+matches > q.Cursor && len(p.items) < q.Limit {
			group.addMatching(&p, &q.Filter)
		} else {
			p.total += matches
		}
	}
	return p.page(time.Time{})
}

// daysInRange returns the days of a query, sorted by date, then currency.
func daysInRange(snapshots []*CurrencySnapshot, q HistoryQuery) []*day {
	var days []*day
	for _, snapshot := range snapshots {
		if q.Currency != "" && q.Currency != snapshot.Currency {
			continue
		}
		start, _ := slices.BinarySearchFunc(snapshot.days, q.From, compareDay)
		end, _ := slices.BinarySearchFunc(snapshot.days, q.To+1, compareDay)
		if start < end {
			days = append(days, snapshot.days[start:end]...)
		}
	}
	slices.SortStableFunc(days, func(a, b *day) int { return cmp.Compare(a.date, b.date) })
	return days
}

// dayGroup is the history of one date in one or several currencies, sorted by currency.
type dayGroup []*day

func (g dayGroup) count(f *Filter) int {
	n := 0
	for _, day := range g {
		rows := day.ofInstitution(f.Institution)
		if f.Channel == "" && f.Kind == "" {
			n += len(rows)
			continue
		}
		for _, row := range rows {
			if f.matchesKey(row.key()) {
				n++
			}
		}
	}
	return n
}

// addMatching adds the matching rows, sorted by institution, then currency.
func (g dayGroup) addMatching(p *pager[HistoryEntry], f *Filter) {
	var rows []*HistoryEntry
	for _, day := range g {
		for _, row := range day.ofInstitution(f.Institution) {
			switch {
			case !f.matchesKey(row.key()):
			case len(g) == 1:
				p.add(*row)
			default:
				rows = append(rows, row)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b *HistoryEntry) int { return cmp.Compare(a.InstitutionID, b.InstitutionID) })
	for _, row := range rows {
		p.add(*row)
	}
}

// ofInstitution returns the rows of one institution, or all rows for "".
func (d *day) ofInstitution(id string) []*HistoryEntry {
	if id == "" {
		return d.rows
	}
	return ofInstitution(d.rows, id, func(row *HistoryEntry) string { return row.InstitutionID })
}
