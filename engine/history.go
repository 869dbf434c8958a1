package engine

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

// historyPage returns one page of several currencies' rows, sorted by date, then institution, then currency. It counts
// all matching rows, but copies only the page.
func historyPage(snapshots []*CurrencySnapshot, q HistoryQuery) *Page[HistoryEntry] {
	p := pager[HistoryEntry]{request: q.PageRequest}
	for days := daysInRange(snapshots, q); len(days) > 0; {
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
		if q.Currency != "" && q.Currency != snapshot.currency {
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

// ofInstitution returns the rows of one institution, or all rows for "". The rows of a day are sorted by institution.
func (d *day) ofInstitution(id string) []*HistoryEntry {
	if id == "" {
		return d.rows
	}
	start := sort.Search(len(d.rows), func(i int) bool { return d.rows[i].InstitutionID >= id })
	end := start
	for end < len(d.rows) && d.rows[end].InstitutionID == id {
		end++
	}
	return d.rows[start:end]
}

// precedenceWithdrawn is the precedence of a history row with a withdrawn value. Every other row takes precedence over
// it.
const precedenceWithdrawn = math.MaxInt64

// day is the history of one currency on one day in Santo Domingo: rows sorted by QuoteKey.
type day struct {
	date       Date
	rows       []*HistoryEntry // immutable
	generation uint64          // quoteStore.generation when the day was made
}

func compareDay(d *day, date Date) int { return cmp.Compare(d.date, date) }

// historyDate returns the day of a value: its effective date, or else the day of its observation.
func historyDate(effective Date, observedAt time.Time) Date {
	if effective.IsZero() {
		return DateOf(observedAt)
	}
	return effective
}

func historyRow(event *Refreshed, quote *AcceptedQuote) *HistoryEntry {
	return &HistoryEntry{
		Date: historyDate(quote.EffectiveDate, event.ObservedAt), InstitutionID: quote.Key.Institution, Currency: event.Currency,
		Channel: quote.Key.Channel, Kind: quote.Key.Kind, Buy: quote.Buy, Sell: quote.Sell,
		SourceID: event.SourceID, DatePrecision: precisionOf(quote.EffectiveDate, pastOnly(quote.PublishedAt, event.ObservedAt)),
		ObservedAt: event.ObservedAt, Precedence: precedence(event.Manual, event.Priority),
	}
}

func (h *HistoryEntry) key() QuoteKey { return QuoteKey{h.InstitutionID, h.Channel, h.Kind} }

func (h *HistoryEntry) replaces(old *HistoryEntry) bool {
	if h.Precedence != old.Precedence {
		return h.Precedence < old.Precedence
	}
	return !h.ObservedAt.Before(old.ObservedAt) && *h != *old
}

// findRow returns the row of a quote on a day, or nil.
func (c *contents) findRow(date Date, key QuoteKey) *HistoryEntry {
	rows := c.rowsOf(date)
	if i, found := slices.BinarySearchFunc(rows, key, compareRow); found {
		return rows[i]
	}
	return nil
}

// rowsOf returns the rows of a day.
func (c *contents) rowsOf(date Date) []*HistoryEntry {
	if i, found := slices.BinarySearchFunc(c.days, date, compareDay); found {
		return c.days[i].rows
	}
	return nil
}

func compareRow(row *HistoryEntry, key QuoteKey) int { return row.key().Compare(key) }

// oldestRetained returns the first day with retained commercial rows. It depends on the newest day of history, not on a
// clock, so that a replay drops the same days.
func (s *quoteStore) oldestRetained() Date { return s.newest.AddDays(1 - s.historyDays) }

// retains reports whether rows of a day and kind are kept.
func (s *quoteStore) retains(date Date, kind Kind) bool {
	return kind == Reference || date >= s.oldestRetained()
}

// record stores a row, unless the stored row of the same quote and day takes precedence. Each quote thus has one row a
// day: the newest value of the source with the highest precedence.
func (s *quoteStore) record(row *HistoryEntry) {
	old := s.findRow(row.Date, row.key())
	if old != nil && !row.replaces(old) || !s.retains(row.Date, row.Kind) {
		return
	}
	s.setRow(row)
}

// setRow inserts or replaces the row of a quote on a day.
func (s *quoteStore) setRow(row *HistoryEntry) {
	d := s.mutableDay(row.Date)
	if i, found := slices.BinarySearchFunc(d.rows, row.key(), compareRow); found {
		d.rows[i] = row
	} else {
		d.rows = slices.Insert(d.rows, i, row)
	}
	s.newest = max(s.newest, row.Date)
}

// removeRows removes a day's rows selected by drop, and the day itself if none is left.
func (s *quoteStore) removeRows(date Date, drop func(*HistoryEntry) bool) {
	d := s.mutableDay(date)
	if d.rows = slices.DeleteFunc(d.rows, drop); len(d.rows) == 0 {
		s.days = slices.DeleteFunc(s.days, func(other *day) bool { return other == d })
	}
}

// mutableDay returns the day of a date, for changes.
func (s *quoteStore) mutableDay(date Date) *day {
	i, found := slices.BinarySearchFunc(s.days, date, compareDay)
	if found && s.days[i].generation == s.generation {
		return s.days[i]
	}
	d := &day{date: date, generation: s.generation}
	if found {
		d.rows = slices.Clone(s.days[i].rows)
		s.days[i] = d
	} else {
		s.days = slices.Insert(s.days, i, d)
	}
	return d
}

// trim drops the commercial rows that are no longer retained.
func (s *quoteStore) trim() {
	oldest := s.oldestRetained()
	start, _ := slices.BinarySearchFunc(s.days, s.trimmed, compareDay)
	end, _ := slices.BinarySearchFunc(s.days, oldest, compareDay)
	expired := func(row *HistoryEntry) bool { return !s.retains(row.Date, row.Kind) }
	for _, d := range slices.Clone(s.days[start:max(start, end)]) {
		if slices.ContainsFunc(d.rows, expired) {
			s.removeRows(d.date, expired)
		}
	}
	s.trimmed = max(s.trimmed, oldest)
}
