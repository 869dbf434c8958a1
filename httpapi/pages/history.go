package pages

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

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

// historyRow returns a row of a table of days.
func historyRow(date engine.Date, values ...engine.Decimal) Node {
	return Tr(Th(Scope("row"), Text(date.String())), Map(values, func(value engine.Decimal) Node { return Td(Text(sideOrDash(value))) }))
}

// marketHistory returns the history of a currency: best, median and reference rate, each for compra and venta. The
// chart for the visitor's operation comes first, because a phone shows only the first.
func marketHistory(l *Localizer, q pageQuery, days []marketDay) Node {
	today := engine.DateOf(l.now)
	from := today.AddDays(1 - q.Days)
	days = daysSince(days, from)
	draw := func(title string, sideOf func(*marketDay) *sideSummary) Node {
		best, median, reference := series{class: "best", key: "line.best"}, series{class: "median", key: "line.median"}, series{class: "reference", key: "line.reference"}
		for i := range days {
			side := sideOf(&days[i])
			best.add(days[i].Date, side.Best)
			median.add(days[i].Date, side.Median)
			reference.add(days[i].Date, side.Reference)
		}
		return l.chart(title, from, today, reference, median, best)
	}
	charts := Group{draw("chart.venta", ventaOf), draw("chart.compra", compraOf)}
	if q.Operation == engine.Sell {
		slices.Reverse(charts)
	}
	side := func(key string) Node { return Th(Scope("colgroup"), ColSpan("3"), l.T(key)) }
	three := Group{l.column("line.best"), l.column("line.median"), l.column("line.reference")}
	columns := THead(Tr(Th(Scope("col"), RowSpan("2"), l.T("history.day")), side("side.compra"), side("side.venta")), Tr(three, three))
	var rows Group
	for _, d := range slices.Backward(days) {
		rows = append(rows, historyRow(d.Date, d.Compra.Best, d.Compra.Median, d.Compra.Reference, d.Venta.Best, d.Venta.Median, d.Venta.Reference))
	}
	return l.historyOf(q.Currency, charts, columns, rows, P(Class("fine"), l.T("history.median")))
}

func (l *Localizer) column(key string) Node { return Th(Scope("col"), l.T(key)) }

// quoteHistory returns the history of one rate of one institution.
func (p *Pages) quoteHistory(l *Localizer, f engine.Filter, days int) (Node, error) {
	today := engine.DateOf(l.now)
	from := today.AddDays(1 - days)
	entries, err := historyRows(p.service, engine.HistoryQuery{Filter: f, From: from, To: today})
	if err != nil {
		return nil, err
	}
	compra, venta := series{class: "compra", key: "side.compra"}, series{class: "venta", key: "side.venta"}
	var rows Group
	for _, entry := range entries {
		compra.add(entry.Date, entry.Buy)
		venta.add(entry.Date, entry.Sell)
		rows = append(rows, historyRow(entry.Date, entry.Buy, entry.Sell))
	}
	slices.Reverse(rows)
	columns := THead(Tr(l.column("history.day"), l.column("side.compra"), l.column("side.venta")))
	return l.historyOf(f.Currency, Group{l.chart("chart.quote", from, today, compra, venta)}, columns, rows, nil), nil
}

// historyOf returns the charts of a currency, and a table of its days, newest first.
func (l *Localizer) historyOf(currency string, charts Group, columns Node, rows Group, note Node) Node {
	if len(rows) == 0 {
		return P(Class("empty"), l.T("history.empty"))
	}
	return Group{
		Div(Class("charts"), charts),
		Details(Class("table"), Summary(l.T("history.table")),
			Div(Class("scroll"), Role("region"), Aria("label", l.Str("history.table")), TabIndex("0"),
				Table(Class("days"), Caption(Class("quiet"), l.T("history.heading", currency)), columns, TBody(rows))),
			note),
	}
}
