package engine

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
)

// precedenceWithdrawn is the precedence of a row whose source was taken back: any other replaces it.
const precedenceWithdrawn = math.MaxInt64

// day is the history of one Dominican day, in list order (P4), which within one currency is the order of keys.
type day struct {
	date Date
	rows []HistoryEntry
}

func compareDay(d *day, date Date) int { return cmp.Compare(d.date, date) }

// findQuarantined is where the row of a quote stands, or would stand.
func (d *day) find(key QuoteKey) (at int, found bool) {
	return sort.Find(len(d.rows), func(i int) int { return key.Compare(d.rows[i].key()) })
}

func historyRow(currency string, from provenance, quoted *AcceptedQuote) HistoryEntry {
	date := quoted.EffectiveDate
	if date.IsZero() {
		date = DateOf(from.observedAt)
	}
	return HistoryEntry{
		Date: date, InstitutionID: quoted.Key.Institution, Currency: currency,
		Channel: quoted.Key.Channel, Kind: quoted.Key.Kind, Buy: quoted.Buy, Sell: quoted.Sell,
		SourceID: from.sourceID, DatePrecision: precisionOf(quoted.EffectiveDate, quoted.PublishedAt),
		ObservedAt: from.observedAt, Precedence: precedence(from.manual, from.priority),
	}
}

func (h *HistoryEntry) key() QuoteKey { return QuoteKey{h.InstitutionID, h.Channel, h.Kind} }

func (h *HistoryEntry) replaces(old *HistoryEntry) bool {
	if h.Precedence != old.Precedence {
		return h.Precedence < old.Precedence
	}
	return !h.ObservedAt.Before(old.ObservedAt) && *h != *old
}

// findRow is the row, nil when there is none, and where it stands among the state's own, or would stand.
func (s *quoteStore) findRow(date Date, key QuoteKey) (row *HistoryEntry, at int, own bool) {
	d := s.days[date]
	if d != nil {
		at, own = d.find(key)
	}
	switch {
	case own:
		row = &d.rows[at]
	case s.base != nil:
		row, _, _ = s.base.findRow(date, key)
	}
	return row, at, own
}

// oldestRetained is the first day within the depth of history. It counts from the newest day, not from a clock, so that a replay forgets
// the same days.
func (s *quoteStore) oldestRetained() Date { return s.newest.AddDays(1 - s.historyDays) }

// retains reports that a row of a day is kept: within the depth of history, or for good (X9).
func (s *quoteStore) retains(date Date, kind Kind) bool {
	return kind == Reference || date >= s.oldestRetained()
}

// record keeps one row a day (T5): the last value of the source that takes precedence.
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

// putRow puts a row where look has found, or missed, it.
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

// snapshotDays makes the list of days anew where it has changed; boards handed out before keep theirs.
func (b *CurrencyState) snapshotDays() {
	s, oldest := b.store, b.store.oldestRetained()
	if len(s.changedDays) == 0 {
		return // then none has left the depth of history either
	}
	for _, old := range b.days[b.dayAt(b.oldestFull):b.dayAt(oldest)] {
		s.changedDays[old.date] = true
	}
	days, rest := make([]*day, 0, len(b.days)+len(s.changedDays)), b.days
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
	b.days, b.oldestFull = append(days, rest...), oldest
	s.changedDays = map[Date]bool{} // a new one: after a replay the old one is as large as history
}

// dayAt is where a date stands, or would stand, in the days of the last board.
func (b *CurrencyState) dayAt(date Date) int {
	at, _ := slices.BinarySearchFunc(b.days, date, compareDay)
	return at
}

// trim takes from a day that has left the depth of history all but its reference rows.
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
