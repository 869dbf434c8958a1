package engine

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// History is the part of the daily rows that a query asks for. Rows of inactive institutions stay (P7).
func (b *CurrencySnapshot) History(q HistoryQuery) *Page[HistoryEntry] {
	return historyPage([]*CurrencySnapshot{b}, q)
}

// historyPage merges the days of several currencies in list order (P4): by date, then institution, currency and so on. It counts
// every match and copies only those of the page.
func historyPage(boards []*CurrencySnapshot, q HistoryQuery) *Page[HistoryEntry] {
	cut := pager[HistoryEntry]{request: q.PageRequest}
	for days := daysInRange(boards, q); len(days) > 0; {
		same := 1
		for same < len(days) && days[same].date == days[0].date {
			same++
		}
		group := dayGroup(days[:same])
		days = days[same:]
		matches := group.count(&q.Filter)
		if cut.total+matches > q.Cursor && len(cut.items) < q.Limit {
			group.addMatching(&cut, &q.Filter)
		} else {
			cut.total += matches
		}
	}
	return cut.page(time.Time{})
}

// dayGroup is one date in one or several currencies, by currency.
type dayGroup []*day

// daysInRange are the days that a query asks for, by date.
func daysInRange(boards []*CurrencySnapshot, q HistoryQuery) []*day {
	var days []*day
	for _, board := range boards {
		if q.Currency != "" && q.Currency != board.currency {
			continue
		}
		from, _ := slices.BinarySearchFunc(board.days, q.From, compareDay)
		to, _ := slices.BinarySearchFunc(board.days, q.To+1, compareDay)
		if from < to {
			days = append(days, board.days[from:to]...)
		}
	}
	slices.SortStableFunc(days, func(a, b *day) int { return cmp.Compare(a.date, b.date) })
	return days
}

func (s dayGroup) count(f *Filter) int {
	n := 0
	for _, day := range s {
		rows := day.ofInstitution(f.Institution)
		if f.Channel == "" && f.Kind == "" {
			n += len(rows)
			continue
		}
		for i := range rows {
			if f.matchesKey(rows[i].key()) {
				n++
			}
		}
	}
	return n
}

// ofInstitution are the rows of an institution, "" of all. Rows of one day are sorted by institution.
func (d *day) ofInstitution(institution string) []HistoryEntry {
	if institution == "" {
		return d.rows
	}
	from := sort.Search(len(d.rows), func(i int) bool { return d.rows[i].InstitutionID >= institution })
	return d.rows[from : from+leadingRows(d.rows[from:], institution)]
}

// leadingRows is how many of the first rows are of an institution.
func leadingRows(rows []HistoryEntry, institution string) int {
	n := 0
	for n < len(rows) && rows[n].InstitutionID == institution {
		n++
	}
	return n
}

// addMatching passes the rows of all currencies side by side, institution by institution.
func (s dayGroup) addMatching(cut *pager[HistoryEntry], f *Filter) {
	rest := make([][]HistoryEntry, len(s))
	for i, day := range s {
		rest[i] = day.ofInstitution(f.Institution)
	}
	for {
		institution, any := "", false
		for _, rows := range rest {
			if len(rows) > 0 && (!any || rows[0].InstitutionID < institution) {
				institution, any = rows[0].InstitutionID, true
			}
		}
		if !any {
			return
		}
		for i, rows := range rest {
			n := leadingRows(rows, institution)
			for j := range n {
				if f.matchesKey(rows[j].key()) {
					cut.add(rows[j])
				}
			}
			rest[i] = rows[n:]
		}
	}
}
