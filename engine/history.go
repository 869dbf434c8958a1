package engine

import (
	"cmp"
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
