package engine

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
)

// precedenceWithdrawn is the precedence of a row whose source quote was withdrawn: any other row replaces it.
const precedenceWithdrawn = math.MaxInt64

// day is the history of one currency on one Dominican day, sorted by quote key.
type day struct {
	date Date
	rows []HistoryEntry
}

func compareDay(d *day, date Date) int { return cmp.Compare(d.date, date) }

func historyRow(from *Refreshed, quote *AcceptedQuote) HistoryEntry {
	date := quote.EffectiveDate
	if date.IsZero() {
		date = DateOf(from.ObservedAt)
	}
	return HistoryEntry{
		Date: date, InstitutionID: quote.Key.Institution, Currency: from.Currency,
		Channel: quote.Key.Channel, Kind: quote.Key.Kind, Buy: quote.Buy, Sell: quote.Sell,
		SourceID: from.SourceID, DatePrecision: precisionOf(quote.EffectiveDate, quote.PublishedAt),
		ObservedAt: from.ObservedAt, Precedence: precedence(from.Manual, from.Priority),
	}
}

func (h *HistoryEntry) key() QuoteKey { return QuoteKey{h.InstitutionID, h.Channel, h.Kind} }

func (h *HistoryEntry) replaces(old *HistoryEntry) bool {
	if h.Precedence != old.Precedence {
		return h.Precedence < old.Precedence
	}
	return !h.ObservedAt.Before(old.ObservedAt) && *h != *old
}

// findRow returns the row of a quote on a day, nil when there is none. Own reports that the store itself has it, at a
// position; otherwise that is where the store would insert it.
func (s *quoteStore) findRow(date Date, key QuoteKey) (row *HistoryEntry, at int, own bool) {
	d := s.days[date]
	if d != nil {
		at, own = sort.Find(len(d.rows), func(i int) int { return key.Compare(d.rows[i].key()) })
	}
	switch {
	case own:
		row = &d.rows[at]
	case s.base != nil:
		row, _, _ = s.base.findRow(date, key)
	}
	return row, at, own
}

// oldestRetained returns the first day of which commercial rows are kept. It depends on the newest day and not on a
// clock, so that a replay drops the same days.
func (s *quoteStore) oldestRetained() Date { return s.newest.AddDays(1 - s.historyDays) }

// retains reports that rows of a day and kind are kept. Reference rows always are.
func (s *quoteStore) retains(date Date, kind Kind) bool {
	return kind == Reference || date >= s.oldestRetained()
}

// record keeps one row for each quote and day: the last value of the source with the highest precedence.
func (s *quoteStore) record(row HistoryEntry) {
	old, at, own := s.findRow(row.Date, row.key())
	if old != nil && !row.replaces(old) || !s.retains(row.Date, row.Kind) {
		return
	}
	s.putRow(row, at, own)
	s.newest = max(s.newest, row.Date)
}

func (s *quoteStore) setRow(row HistoryEntry) {
	_, at, own := s.findRow(row.Date, row.key())
	s.putRow(row, at, own)
}

// putRow replaces or inserts a row at the position that findRow returned.
func (s *quoteStore) putRow(row HistoryEntry, at int, own bool) {
	d := s.days[row.Date]
	switch {
	case d == nil:
		d = &day{date: row.Date}
	case !s.changedDays[row.Date]:
		d = &day{row.Date, slices.Clone(d.rows)}
	}
	s.days[row.Date], s.changedDays[row.Date] = d, true
	if own {
		d.rows[at] = row
	} else {
		d.rows = slices.Insert(d.rows, at, row)
	}
}

// restoreRows adds saved history. It is sorted, so each day is one run of rows; rows out of order are added one by one.
func (s *quoteStore) restoreRows(rows []HistoryEntry) {
	for len(rows) > 0 {
		date, n := rows[0].Date, 1
		for n < len(rows) && rows[n].Date == date && rows[n-1].key().Compare(rows[n].key()) < 0 {
			n++
		}
		if s.days[date] == nil {
			s.days[date], s.changedDays[date] = &day{date, slices.Clone(rows[:n])}, true
		} else {
			for _, row := range rows[:n] {
				s.setRow(row)
			}
		}
		s.newest = max(s.newest, date)
		rows = rows[n:]
	}
}

// snapshotDays replaces the list of days by one with the days that have changed.
func (c *CurrencyState) snapshotDays() {
	s, oldest := c.store, c.store.oldestRetained()
	if len(s.changedDays) == 0 {
		return // then the oldest day has not moved either
	}
	for _, old := range c.days[c.dayIndex(c.oldestFull):c.dayIndex(oldest)] {
		s.changedDays[old.date] = true
	}
	days, rest := make([]*day, 0, len(c.days)+len(s.changedDays)), c.days
	for _, date := range slices.Sorted(maps.Keys(s.changedDays)) {
		before, found := slices.BinarySearchFunc(rest, date, compareDay)
		days = append(days, rest[:before]...)
		if rest = rest[before:]; found {
			rest = rest[1:]
		}
		if s.trim(date, oldest); s.days[date] != nil {
			days = append(days, s.days[date])
		}
	}
	c.days, c.oldestFull = append(days, rest...), oldest
	s.changedDays = map[Date]bool{} // not cleared: after a replay it is as large as the history
}

// dayIndex returns the position of a date in the days of the last snapshot, or the one where it would be inserted.
func (c *CurrencyState) dayIndex(date Date) int {
	at, _ := slices.BinarySearchFunc(c.days, date, compareDay)
	return at
}

// trim drops the commercial rows of a day before oldest.
func (s *quoteStore) trim(date, oldest Date) {
	d := s.days[date]
	if d == nil || date >= oldest {
		return
	}
	var kept []HistoryEntry
	for i := range d.rows {
		if s.retains(date, d.rows[i].Kind) {
			kept = append(kept, d.rows[i])
		}
	}
	switch {
	case len(kept) == 0:
		delete(s.days, date)
	case len(kept) < len(d.rows):
		s.days[date] = &day{date, kept}
	}
}
