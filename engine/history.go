package engine

import (
	"cmp"
	"slices"
	"time"
)

// History is the part of the daily rows that a query asks for. Rows of inactive institutions stay (P7).
func (b *Board) History(q HistoryQuery) *Page[HistoryEntry] { return historyPage([]*Board{b}, q) }

// historyPage merges the days of several currencies in list order (P4): by date, then institution, currency and so on. It counts
// every match and copies only those of the page.
func historyPage(boards []*Board, q HistoryQuery) *Page[HistoryEntry] {
	var items []HistoryEntry
	total := 0
	for _, group := range daysBetween(boards, q) {
		matches := group.count(&q.Filter)
		if total+matches > q.Cursor && len(items) < q.Limit {
			rows := group.rows(&q.Filter)
			from := max(0, q.Cursor-total)
			to := min(len(rows), from+q.Limit-len(items))
			items = append(items, rows[from:to]...)
		}
		total += matches
	}
	return newPage(items, total, q.Cut, time.Time{})
}

// sameDay is one date in one or several currencies.
type sameDay []*day

func daysBetween(boards []*Board, q HistoryQuery) []sameDay {
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
	return slices.Collect(chunkByDate(days))
}

func chunkByDate(days []*day) func(yield func(sameDay) bool) {
	return func(yield func(sameDay) bool) {
		for len(days) > 0 {
			end := 1
			for end < len(days) && days[end].date == days[0].date {
				end++
			}
			if !yield(days[:end]) {
				return
			}
			days = days[end:]
		}
	}
}

func (s sameDay) count(f *Filter) int {
	n := 0
	for _, day := range s {
		if f.Institution == "" && f.Channel == "" && f.Kind == "" {
			n += len(day.rows)
			continue
		}
		for i := range day.rows {
			if f.matchesKey(day.rows[i].key()) {
				n++
			}
		}
	}
	return n
}

func (s sameDay) rows(f *Filter) []HistoryEntry {
	var rows []HistoryEntry
	for _, day := range s {
		for i := range day.rows {
			if f.matchesKey(day.rows[i].key()) {
				rows = append(rows, day.rows[i])
			}
		}
	}
	if len(s) > 1 {
		slices.SortFunc(rows, compareRows)
	}
	return rows
}
