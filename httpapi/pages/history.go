package pages

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

const (
	historyDaysMax    = engine.HistoryRangeDaysMax
	pastCacheDuration = 5 * time.Minute // cache lifetime of past days
	historyCacheMax   = 64              // maximum number of cached currencies, about 50 KiB each
	queryPagesMax     = 20              // maximum number of result pages for one query; a year of one rate has two
	unitsPerDOP       = 100_000_000     // units of engine.Decimal in one DOP (Dominican peso)
)

// sideSummary summarizes one side (compra or venta) of all rates of a currency on one day. Missing values are null.
type sideSummary struct{ Best, Worst, Median, Reference engine.Decimal }

// marketDay summarizes the rates of a currency on one day.
type marketDay struct {
	Date   engine.Date
	Venta  sideSummary // the best price is the lowest
	Compra sideSummary // the best price is the highest
}

// summarizeDay summarizes the history entries of one day.
func summarizeDay(date engine.Date, rows []engine.HistoryEntry) marketDay {
	day := marketDay{Date: date}
	var sells, buys []engine.Decimal
	for i := range rows {
		row := &rows[i]
		if row.Kind == engine.Reference {
			day.Venta.Reference = cmp.Or(day.Venta.Reference, row.Sell)
			day.Compra.Reference = cmp.Or(day.Compra.Reference, row.Buy)
			continue
		}
		sells, buys = append(sells, row.Sell), append(buys, row.Buy)
	}
	for _, sides := range []*[]engine.Decimal{&sells, &buys} {
		*sides = slices.DeleteFunc(*sides, engine.Decimal.IsNull)
		slices.SortStableFunc(*sides, engine.Decimal.Compare)
	}
	if len(sells) > 0 {
		day.Venta.Best, day.Venta.Worst, day.Venta.Median = sells[0], sells[len(sells)-1], median(sells)
	}
	if len(buys) > 0 {
		day.Compra.Best, day.Compra.Worst, day.Compra.Median = buys[len(buys)-1], buys[0], median(buys)
	}
	return day
}

// median returns the median of sorted values. For an even number of values it is the mean of the middle two, rounded
// half up to four decimals unless both are equal.
func median(sorted []engine.Decimal) engine.Decimal {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 || sorted[middle-1].Compare(sorted[middle]) == 0 {
		return sorted[middle]
	}
	mean := big.NewRat(sorted[middle-1].Units(), 2*unitsPerDOP)
	result, err := engine.ParseDecimal(mean.Add(mean, big.NewRat(sorted[middle].Units(), 2*unitsPerDOP)).FloatString(4))
	if err != nil {
		return engine.Decimal{} // the mean is out of the range of Decimal
	}
	return result
}

// historyRows returns all history entries of a query.
func historyRows(service engine.Service, q engine.HistoryQuery) ([]engine.HistoryEntry, error) {
	return engine.AllItems(queryPagesMax, func(page engine.PageRequest) (*engine.Page[engine.HistoryEntry], error) {
		q.PageRequest = page
		return service.History(q)
	})
}

// historyCache caches the summaries of the days before today, by currency. It reads a year with a small query for each
// day, because one large query would block the actor that owns the currency for long.
type historyCache struct {
	service engine.Service
	past    *rendered.Cache[string, []marketDay] // by currency code
}

func newHistoryCache(service engine.Service) historyCache {
	return historyCache{service, rendered.NewCache[string, []marketDay](historyCacheMax, 0)}
}

// market returns the summaries of today and the historyDaysMax days before, except days without rates.
func (c *historyCache) market(currency string, now time.Time) ([]marketDay, error) {
	today := engine.DateOf(now)
	past, err := c.past.Get(currency, now, func([]marketDay) (kept rendered.Kept[[]marketDay], err error) {
		kept.Value, kept.Until = make([]marketDay, 0, historyDaysMax), now.Add(pastCacheDuration)
		if midnight := engine.NextMidnight(now); midnight.Before(kept.Until) {
			kept.Until = midnight
		}
		for date := today.AddDays(-historyDaysMax); date < today && err == nil; date++ {
			var day marketDay
			day, err = c.day(currency, date)
			kept.Value = appendDay(kept.Value, day)
		}
		return kept, err
	})
	if err != nil {
		return nil, err
	}
	day, err := c.day(currency, today)
	if err != nil {
		return nil, err
	}
	return appendDay(slices.Clip(past), day), nil
}

// closes contains closing rates: the last values of a day, by institution and channel.
type closes struct {
	date   engine.Date
	values map[string]engine.HistoryEntry
}

// closesOf returns the closing commercial rates of a currency on a day. For day 0 it returns no rates.
func closesOf(service engine.Service, currency string, date engine.Date) (closes, error) {
	c := closes{date, map[string]engine.HistoryEntry{}}
	if date == 0 {
		return c, nil
	}
	rows, err := historyRows(service, engine.HistoryQuery{Filter: engine.Filter{Currency: currency, Kind: engine.Commercial}, From: date, To: date})
	for _, row := range rows {
		c.values[row.InstitutionID+"/"+string(row.Channel)] = row
	}
	return c, err
}

// of returns the closing value of the rate's side for an operation, or null.
func (c closes) of(rate *engine.Rate, operation engine.Operation) engine.Decimal {
	row := c.values[rate.InstitutionID+"/"+string(rate.Channel)]
	if operation == engine.Sell {
		return row.Buy
	}
	return row.Sell
}

func (c *historyCache) day(currency string, date engine.Date) (marketDay, error) {
	rows, err := historyRows(c.service, engine.HistoryQuery{Filter: engine.Filter{Currency: currency}, From: date, To: date})
	return summarizeDay(date, rows), err
}

// appendDay appends the summary of a day, unless the summary has no values.
func appendDay(days []marketDay, day marketDay) []marketDay {
	if day == (marketDay{Date: day.Date}) {
		return days
	}
	return append(days, day)
}

// previousDay returns the newest of days before today, or a zero marketDay.
func previousDay(days []marketDay, today engine.Date) marketDay {
	for _, day := range slices.Backward(days) {
		if day.Date < today {
			return day
		}
	}
	return marketDay{}
}

// daysSince returns the days from a date on. days must be sorted.
func daysSince(days []marketDay, from engine.Date) []marketDay {
	index, _ := slices.BinarySearchFunc(days, from, func(d marketDay, day engine.Date) int { return cmp.Compare(d.Date, day) })
	return days[index:]
}
