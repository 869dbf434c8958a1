package pages

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/tasard/tasard/engine"
)

const (
	historyDaysMax   = engine.HistoryRangeDaysMax
	pastCachedFor    = 5 * time.Minute // later changes of past days appear after that
	historyCacheMax  = 64              // currencies, about 50 KiB each
	historyPagesMax  = 20              // of one query; a year of one rate has two
	medianScale      = 10_000          // a median is rounded to 1/10000 DOP
	unitsPerDOP      = 100_000_000     // as engine.Decimal.Units
	unitsOfMedianTwo = 2 * unitsPerDOP / medianScale
)

// sideSummary summarizes one side of a currency on one day. Missing values are null.
type sideSummary struct{ Best, Median, Reference engine.Decimal }

// marketDay summarizes one day of a currency.
type marketDay struct {
	Date         engine.Date
	Venta        sideSummary // the best is the lowest
	Compra       sideSummary // the best is the highest
	Institutions int         // with a commercial rate
}

// summarizeDay summarizes the rows of a day.
func summarizeDay(date engine.Date, rows []engine.HistoryEntry) marketDay {
	p := marketDay{Date: date}
	var asked, paid []engine.Decimal
	last := ""
	for i := range rows {
		row := &rows[i]
		if row.Kind == engine.Reference {
			p.Venta.Reference = firstOf(p.Venta.Reference, row.Sell)
			p.Compra.Reference = firstOf(p.Compra.Reference, row.Buy)
			continue
		}
		if row.InstitutionID != last { // rows are sorted by institution
			last = row.InstitutionID
			p.Institutions++
		}
		asked, paid = appendSide(asked, row.Sell), appendSide(paid, row.Buy)
	}
	compare := engine.Decimal.Compare
	slices.SortStableFunc(asked, compare)
	slices.SortStableFunc(paid, compare)
	if len(asked) > 0 {
		p.Venta.Best, p.Venta.Median = asked[0], median(asked)
	}
	if len(paid) > 0 {
		p.Compra.Best, p.Compra.Median = paid[len(paid)-1], median(paid)
	}
	return p
}

func firstOf(a, b engine.Decimal) engine.Decimal {
	if a.IsNull() {
		return b
	}
	return a
}

func appendSide(sides []engine.Decimal, side engine.Decimal) []engine.Decimal {
	if side.IsNull() {
		return sides
	}
	return append(sides, side)
}

// median returns the middle of sorted values. With an even number of values it is the exact mean of the middle two,
// rounded half even to four decimals, unless they are equal.
func median(sorted []engine.Decimal) engine.Decimal {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 || sorted[middle-1].Compare(sorted[middle]) == 0 {
		return sorted[middle]
	}
	a, b := sorted[middle-1].Units(), sorted[middle].Units()
	whole := a/unitsOfMedianTwo + b/unitsOfMedianTwo
	rest := a%unitsOfMedianTwo + b%unitsOfMedianTwo
	whole, rest = whole+rest/unitsOfMedianTwo, rest%unitsOfMedianTwo
	if half := int64(unitsOfMedianTwo / 2); rest > half || rest == half && whole%2 == 1 {
		whole++
	}
	mean, err := engine.ParseDecimal(formatFixed(whole, medianScale, 4))
	if err != nil {
		return engine.Decimal{} // out of range
	}
	return mean
}

// allPages returns the items of all pages of a query.
func allPages[T any](ask func(page engine.PageRequest) (*engine.Page[T], error)) ([]T, error) {
	cut := engine.PageRequest{Limit: engine.LimitMax}
	var items []T
	for range historyPagesMax {
		page, err := ask(cut)
		if err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
		if page.NextCursor == engine.NoNextCursor {
			break
		}
		cut.Cursor = page.NextCursor
	}
	return items, nil
}

// historyRows returns all rows of a query.
func historyRows(service engine.Service, q engine.HistoryQuery) ([]engine.HistoryEntry, error) {
	return allPages(func(page engine.PageRequest) (*engine.Page[engine.HistoryEntry], error) {
		q.PageRequest = page
		return service.History(q)
	})
}

// historyCache caches the past days of currencies. A year of a currency is read as 365 small queries, so that none of
// them blocks its actor for long; the current day is always read.
type historyCache struct {
	service engine.Service
	past    generationCache[string, pastDays] // by currency
}

func newHistoryCache(service engine.Service) historyCache {
	return historyCache{service, generationCache[string, pastDays]{youngMax: historyCacheMax / 2}}
}

// pastDays are the days of a currency up to yesterday.
type pastDays struct {
	mu     sync.Mutex
	today  engine.Date
	readAt time.Time
	days   []marketDay
}

// market returns the days of a currency in the last year that have rows.
func (c *historyCache) market(currency string, now time.Time) ([]marketDay, error) {
	past := c.past.get(currency)
	past.mu.Lock()
	defer past.mu.Unlock()
	today := engine.DateOf(now)
	if past.today != today || now.Before(past.readAt) || now.Sub(past.readAt) >= pastCachedFor {
		days := make([]marketDay, 0, historyDaysMax)
		for date := today.AddDays(-historyDaysMax); date < today; date++ {
			day, err := c.day(currency, date)
			if err != nil {
				return nil, err
			}
			days = appendDay(days, day)
		}
		past.today, past.readAt, past.days = today, now, days
	}
	day, err := c.day(currency, today)
	if err != nil {
		return nil, err
	}
	return appendDay(slices.Clip(past.days), day), nil
}

func (c *historyCache) day(currency string, date engine.Date) (marketDay, error) {
	rows, err := historyRows(c.service, engine.HistoryQuery{Filter: engine.Filter{Currency: currency}, From: date, To: date})
	return summarizeDay(date, rows), err
}

// appendDay appends a day that has values.
func appendDay(days []marketDay, day marketDay) []marketDay {
	if day == (marketDay{Date: day.Date}) {
		return days
	}
	return append(days, day)
}

// lastDays returns the days from a date on.
func lastDays(points []marketDay, from engine.Date) []marketDay {
	at, _ := slices.BinarySearchFunc(points, from, func(p marketDay, day engine.Date) int { return cmp.Compare(p.Date, day) })
	return points[at:]
}
