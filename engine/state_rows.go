package engine

import "slices"

// restoreRows takes in the history of a snapshot. It is sorted, so a day comes as one piece that needs no search and grows no list;
// whatever is not sorted goes the way of single rows.
func (s *quoteStore) restoreRows(rows []HistoryEntry) {
	for len(rows) > 0 {
		n := sameDayPrefix(rows)
		date := rows[0].Date
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

// sameDayPrefix is how many rows at the front are of one day and in order, each of another quote.
func sameDayPrefix(rows []HistoryEntry) int {
	n := 1
	for n < len(rows) && rows[n].Date == rows[0].Date && rows[n-1].key().Compare(rows[n].key()) < 0 {
		n++
	}
	return n
}
