package engine

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
	"time"
)

// precedenceWithdrawn is the precedence of a history row whose value was withdrawn. Every other row takes precedence
// over such a row.
const precedenceWithdrawn = math.MaxInt64

// day has the history of one currency on one day in Santo Domingo: rows sorted by QuoteKey.
type day struct {
	date Date
	rows []HistoryEntry
}

func compareDay(d *day, date Date) int { return cmp.Compare(d.date, date) }

// historyDate returns the day of a value: its effective date, or else the day of its observation.
func historyDate(effective Date, observedAt time.Time) Date {
	if effective.IsZero() {
		return DateOf(observedAt)
	}
	return effective
}

func historyRow(event *Refreshed, quote *AcceptedQuote) HistoryEntry {
	return HistoryEntry{
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

// findRow returns the row of a quote on a day, or nil. own is true if the row is in s, and false if it is in the base
// of s: the store to which the draft s adds changes (see quoteStore). index is the position of the row in its day in s,
// or the position where s would insert it.
func (s *quoteStore) findRow(date Date, key QuoteKey) (row *HistoryEntry, index int, own bool) {
	d := s.days[date]
	if d != nil {
		index, own = sort.Find(len(d.rows), func(i int) int { return key.Compare(d.rows[i].key()) })
	}
	switch {
	case own:
		row = &d.rows[index]
	case s.base != nil:
		row, _, _ = s.base.findRow(date, key)
	}
	return row, index, own
}

// eachRow calls visit for the rows of a day.
func (s *quoteStore) eachRow(date Date, visit func(*HistoryEntry)) {
	own := s.days[date]
	if own != nil {
		for i := range own.rows {
			visit(&own.rows[i])
		}
	}
	if s.base == nil {
		return
	}
	s.base.eachRow(date, func(row *HistoryEntry) {
		if own == nil {
			visit(row)
		} else if _, found := sort.Find(len(own.rows), func(i int) int { return row.key().Compare(own.rows[i].key()) }); !found {
			visit(row)
		}
	})
}

// oldestRetained returns the first day whose commercial rows are kept. It depends on the newest day of history and not
// on a clock, so that a replay drops the same days.
func (s *quoteStore) oldestRetained() Date { return s.newest.AddDays(1 - s.historyDays) }

// retains reports whether rows of a day and kind are kept.
func (s *quoteStore) retains(date Date, kind Kind) bool {
	return kind == Reference || date >= s.oldestRetained()
}

// record stores a row, unless the stored row of the same quote and day takes precedence. A day therefore has one row
// for each quote: the newest value of the source with the highest precedence.
func (s *quoteStore) record(row HistoryEntry) {
	old, index, own := s.findRow(row.Date, row.key())
	if old != nil && !row.replaces(old) || !s.retains(row.Date, row.Kind) {
		return
	}
	s.putRow(row, index, own)
	s.newest = max(s.newest, row.Date)
}

func (s *quoteStore) setRow(row HistoryEntry) {
	_, index, own := s.findRow(row.Date, row.key())
	s.putRow(row, index, own)
}

// putRow replaces or inserts a row at the position that findRow returned.
func (s *quoteStore) putRow(row HistoryEntry, index int, own bool) {
	d := s.days[row.Date]
	switch {
	case d == nil:
		d = &day{date: row.Date}
	case !s.changedDays[row.Date]:
		d = &day{row.Date, slices.Clone(d.rows)}
	}
	s.days[row.Date], s.changedDays[row.Date] = d, true
	if own {
		d.rows[index] = row
	} else {
		d.rows = slices.Insert(d.rows, index, row)
	}
}

// restoreRows adds saved history. Rows of one day that are sorted by key are added together, all other rows one by one.
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

// snapshotDays replaces c.days by a new list with the days that have changed since the newest CurrencySnapshot.
func (c *CurrencyState) snapshotDays() {
	s, oldest := c.store, c.store.oldestRetained()
	if len(s.changedDays) == 0 {
		return // then the oldest retained day has not changed either
	}
	for _, old := range c.days[c.dayIndex(c.oldestFull):c.dayIndex(oldest)] {
		s.changedDays[old.date] = true
	}
	days, remaining := make([]*day, 0, len(c.days)+len(s.changedDays)), c.days
	for _, date := range slices.Sorted(maps.Keys(s.changedDays)) {
		i, found := slices.BinarySearchFunc(remaining, date, compareDay)
		days = append(days, remaining[:i]...)
		if remaining = remaining[i:]; found {
			remaining = remaining[1:]
		}
		if s.trim(date, oldest); s.days[date] != nil {
			days = append(days, s.days[date])
		}
	}
	c.days, c.oldestFull = append(days, remaining...), oldest
	s.changedDays = map[Date]bool{} // clear would keep the memory of the map, which has all days after a replay
}

// dayIndex returns the position of a date in the days of the last snapshot, or the position where it would be inserted.
func (c *CurrencyState) dayIndex(date Date) int {
	i, _ := slices.BinarySearchFunc(c.days, date, compareDay)
	return i
}

// trim drops the commercial rows of a day before oldest.
func (s *quoteStore) trim(date, oldest Date) {
	d := s.days[date]
	if d == nil || date >= oldest {
		return
	}
	var retained []HistoryEntry
	for i := range d.rows {
		if s.retains(date, d.rows[i].Kind) {
			retained = append(retained, d.rows[i])
		}
	}
	switch {
	case len(retained) == 0:
		delete(s.days, date)
	case len(retained) < len(d.rows):
		s.days[date] = &day{date, retained}
	}
}
