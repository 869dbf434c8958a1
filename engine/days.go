package engine

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
)

// rankWithdrawn is the precedence of a row whose source was taken back: any other replaces it.
const rankWithdrawn = math.MaxInt64

// day is the history of one Dominican day, in list order (P4), which within one currency is the order of keys.
type day struct {
	date Date
	rows []HistoryEntry
}

func compareDay(d *day, date Date) int { return cmp.Compare(d.date, date) }

// find is where the row of a quote stands, or would stand.
func (d *day) find(key QuoteKey) (at int, found bool) {
	return sort.Find(len(d.rows), func(i int) int { return key.Compare(d.rows[i].key()) })
}

func historyRow(currency string, from origin, quoted *Quoted) HistoryEntry {
	date := quoted.EffectiveDate
	if date.IsZero() {
		date = DateOf(from.observedAt)
	}
	return HistoryEntry{
		Date: date, InstitutionID: quoted.Key.Institution, Currency: currency,
		Channel: quoted.Key.Channel, Kind: quoted.Key.Kind, Buy: quoted.Buy, Sell: quoted.Sell,
		SourceID: from.sourceID, DatePrecision: precisionOf(quoted.EffectiveDate, quoted.PublishedAt),
		ObservedAt: from.observedAt, Rank: rank(from.manual, from.priority),
	}
}

func (h *HistoryEntry) key() QuoteKey { return QuoteKey{h.InstitutionID, h.Channel, h.Kind} }

func (h *HistoryEntry) replaces(old *HistoryEntry) bool {
	if h.Rank != old.Rank {
		return h.Rank < old.Rank
	}
	return !h.ObservedAt.Before(old.ObservedAt) && *h != *old
}

// look is the row, nil when there is none, and where it stands among the state's own, or would stand.
func (s *state) look(date Date, key QuoteKey) (row *HistoryEntry, at int, own bool) {
	d := s.days[date]
	if d != nil {
		at, own = d.find(key)
	}
	switch {
	case own:
		row = &d.rows[at]
	case s.base != nil:
		row, _, _ = s.base.look(date, key)
	}
	return row, at, own
}

// oldest is the first day within the depth of history. It counts from the newest day, not from a clock, so that a replay forgets
// the same days.
func (s *state) oldest() Date { return s.newest.AddDays(1 - s.depth) }

// keeps reports that a row of a day is kept: within the depth of history, or for good (X9).
func (s *state) keeps(date Date, kind Kind) bool { return kind == Reference || date >= s.oldest() }

// record keeps one row a day (T5): the last value of the source that takes precedence.
func (s *state) record(row HistoryEntry) {
	old, at, own := s.look(row.Date, row.key())
	if old != nil && !row.replaces(old) || !s.keeps(row.Date, row.Kind) {
		return
	}
	s.place(row, at, own)
	s.newest = max(s.newest, row.Date)
}

func (s *state) setRow(row HistoryEntry) {
	_, at, own := s.look(row.Date, row.key())
	s.place(row, at, own)
}

// place puts a row where look has found, or missed, it.
func (s *state) place(row HistoryEntry, at int, own bool) {
	d := s.days[row.Date]
	switch {
	case d == nil:
		d = &day{date: row.Date}
	case !s.dirty[row.Date]:
		d = &day{row.Date, slices.Clone(d.rows)}
	}
	s.days[row.Date], s.dirty[row.Date] = d, true
	if own {
		d.rows[at] = row
	} else {
		d.rows = slices.Insert(d.rows, at, row)
	}
}

// freezeDays makes the list of days anew where it has changed; boards handed out before keep theirs.
func (b *Book) freezeDays() {
	s, oldest := b.state, b.state.oldest()
	if len(s.dirty) == 0 {
		return // then none has left the depth of history either
	}
	for _, old := range b.days[b.dayAt(b.oldest):b.dayAt(oldest)] {
		s.dirty[old.date] = true
	}
	days, rest := make([]*day, 0, len(b.days)+len(s.dirty)), b.days
	for _, date := range slices.Sorted(maps.Keys(s.dirty)) {
		before, found := slices.BinarySearchFunc(rest, date, compareDay)
		days = append(days, rest[:before]...)
		if rest = rest[before:]; found {
			rest = rest[1:]
		}
		if s.trim(date, oldest); s.days[date] != nil {
			days = append(days, s.days[date])
		}
	}
	b.days, b.oldest = append(days, rest...), oldest
	s.dirty = map[Date]bool{} // a new one: after a replay the old one is as large as history
}

// dayAt is where a date stands, or would stand, in the days of the last board.
func (b *Book) dayAt(date Date) int {
	at, _ := slices.BinarySearchFunc(b.days, date, compareDay)
	return at
}

// trim takes from a day that has left the depth of history all but its reference rows.
func (s *state) trim(date, oldest Date) {
	d := s.days[date]
	if d == nil || date >= oldest {
		return
	}
	var kept []HistoryEntry
	for i := range d.rows {
		if s.keeps(date, d.rows[i].Kind) {
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
