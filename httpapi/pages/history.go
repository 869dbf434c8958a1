package pages

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
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

// Dimensions of a chart, in units of the SVG viewBox. Coordinates are integers, so that no rate is converted to a
// float.
const (
	chartWidth    = 4000
	chartHeight   = 2200
	chartDigit    = 72 // width of a digit in a label
	chartMargin   = 130
	chartRight    = 3960
	chartTop      = 160
	chartBottom   = 1880
	chartBandY    = 70      // y of the text of a band (see bands)
	chartLabelY   = 2100    // y of the dates
	chartTicks    = 4       // approximate number of grid lines
	chartUnitsMax = 1 << 61 // largest value, 23 thousand million DOP; larger values would overflow in calculations
	chartBandsMax = 60      // maximum number of bands; for a year, a band is a week
	chartGapDays  = 7       // days without values that break the line; more than weekends and holidays
)

type chartPoint struct {
	date  engine.Date
	value engine.Decimal
}

// series is the data of one line.
type series struct {
	class  string       // CSS class
	key    string       // key of the label in the texts of the pages
	points []chartPoint // sorted by date
}

// add adds a point, unless the value is null.
func (s *series) add(date engine.Date, value engine.Decimal) {
	if !value.IsNull() {
		s.points = append(s.points, chartPoint{date, value})
	}
}

// scale maps values and dates to coordinates.
type scale struct {
	low, high int64 // the range of values, in units of engine.Decimal
	step      int64 // distance between two grid lines
	left      int   // x of the first date
	from, to  engine.Date
}

// newScale returns the scale of a chart. It returns false if there is no point, or if a value exceeds chartUnitsMax.
func newScale(from, to engine.Date, lines []series) (scale, bool) {
	s := scale{low: math.MaxInt64, high: -1, from: from, to: to}
	for _, line := range lines {
		for _, point := range line.points {
			s.low, s.high = min(s.low, point.value.Units()), max(s.high, point.value.Units())
		}
	}
	if s.high < 0 || s.high > chartUnitsMax {
		return s, false
	}
	s.step = niceStep(s.high - s.low)
	s.low -= s.low % s.step
	if remainder := s.high % s.step; remainder > 0 {
		s.high += s.step - remainder
	}
	if s.low == s.high {
		s.low, s.high = max(0, s.low-s.step), s.high+s.step
	}
	s.left = chartMargin + chartDigit*len(tickLabel(s.high, s.step))
	return s, true
}

// chart returns an SVG of lines over a range of dates, with a legend, or nil if no line has points. title is the key of
// a text.
func (l *Localizer) chart(title string, from, to engine.Date, lines ...series) Node {
	lines = slices.DeleteFunc(lines, func(line series) bool { return len(line.points) == 0 })
	s, ok := newScale(from, to, lines)
	if !ok {
		return nil
	}
	label := func(x, y int, anchor, text string) Node {
		return El("text", Class("tick"), intAttr("x", x), intAttr("y", y), Attr("text-anchor", anchor), Text(text))
	}
	var drawing, legend Group
	for value := s.low; value <= s.high; value += s.step {
		drawing = append(drawing, El("path", Class("grid"), Attr("d", fmt.Sprintf("M%d %dH%d", s.left, s.y(value), chartRight))),
			label(s.left-chartMargin/2, s.y(value)+chartDigit/2, "end", tickLabel(value, s.step)))
	}
	for _, date := range []struct {
		anchor string
		engine.Date
	}{{"start", from}, {"middle", from + (to-from)/2}, {"end", to}} {
		drawing = append(drawing, label(s.x(date.Date), chartLabelY, date.anchor, s.dateText(l, date.Date)))
	}
	var values []string
	for _, line := range lines {
		last := line.points[len(line.points)-1]
		text := sideOrDash(last.value)
		drawing = append(drawing, El("path", Class("line "+line.class), Attr("d", s.path(line.points))),
			El("circle", Class("end "+line.class), intAttr("cx", s.x(last.date)), intAttr("cy", s.y(last.value.Units())), Attr("r", "42")))
		legend = append(legend, Li(Class(line.class), Span(l.T(line.key)), Text(" "), Strong(Text(text))))
		values = append(values, l.Str(line.key)+" "+text)
	}
	return Figure(Class("chart"), FigCaption(l.T(title)),
		SVG(Attr("viewBox", fmt.Sprintf("0 0 %d %d", chartWidth, chartHeight)), Role("img"), Aria("label", l.Str(title)+": "+strings.Join(values, ", ")),
			El("g", Aria("hidden", "true"), drawing, l.bands(s, lines))),
		Ul(Class("legend"), legend))
}

// bands divides the chart into vertical bands, each with the values of its newest date as text. CSS shows the text
// while the mouse is on the band or the band has the focus (after a tap). Every line must have points.
func (l *Localizer) bands(s scale, lines []series) Node {
	days := int(s.to-s.from) + 1
	daysOfBand := (days + chartBandsMax - 1) / chartBandsMax
	newest := map[int]engine.Date{} // of each band
	for _, line := range lines {
		for _, point := range line.points {
			number := int(point.date-s.from) / daysOfBand
			newest[number] = max(newest[number], point.date)
		}
	}
	return El("g", intAttr("stroke-width", (chartRight-s.left)*daysOfBand/max(1, days-1)), Map(slices.Sorted(maps.Values(newest)), func(date engine.Date) Node {
		text := s.dateText(l, date)
		for _, line := range lines {
			if i := slices.IndexFunc(line.points, func(point chartPoint) bool { return point.date == date }); i >= 0 {
				text += " · " + l.Str(line.key) + " " + sideOrDash(line.points[i].value)
			}
		}
		return El("g", Class("band"), TabIndex("-1"), El("path", Attr("d", fmt.Sprintf("M%d %dV%d", s.x(date), chartTop, chartBottom))),
			El("text", intAttr("x", chartWidth/2), intAttr("y", chartBandY), Text(text)))
	}))
}

func intAttr(name string, value int) Node { return Attr(name, strconv.Itoa(value)) }

// niceStep returns the distance between grid lines so that a span of values has about chartTicks lines. The distance is
// 1, 2 or 5 times a power of ten; for an empty span it is 0.10 DOP.
func niceStep(span int64) int64 {
	if span == 0 {
		return unitsPerDOP / 10
	}
	minStep := max(1, span/chartTicks)
	for power := int64(1); ; power *= 10 { // can't overflow: chartUnitsMax/chartTicks is below the largest power of ten
		for _, step := range []int64{power, 2 * power, 5 * power} {
			if step >= minStep {
				return step
			}
		}
	}
}

// tickLabel formats a value with as many decimals as step has, but at least two.
func tickLabel(value, step int64) string {
	places := 8
	for places > 2 && step%10 == 0 {
		places, step = places-1, step/10
	}
	return big.NewRat(value, unitsPerDOP).FloatString(places)
}

// dateText formats a date, with the year if the range of dates is in two years.
func (s scale) dateText(l *Localizer, date engine.Date) string {
	if s.from.String()[:4] == s.to.String()[:4] {
		return l.ShortDate(date)
	}
	return l.ShortDate(date) + " " + date.String()[:4]
}

func (s scale) y(value int64) int {
	span, distance := s.high-s.low, s.high-value
	for span > math.MaxInt32 { // prevents an overflow of the product below
		span, distance = span/10, distance/10
	}
	return chartTop + int(distance*(chartBottom-chartTop)/span)
}

func (s scale) x(date engine.Date) int {
	if s.to <= s.from {
		return chartRight
	}
	return s.left + int(date-s.from)*(chartRight-s.left)/int(s.to-s.from)
}

// path returns the SVG path of a line.
func (s scale) path(points []chartPoint) string {
	var path strings.Builder
	var previous engine.Date
	for _, point := range points {
		command, dot := "L", ""
		if previous == 0 || point.date-previous > chartGapDays {
			command, dot = "M", "h1" // h1, a line of one unit, makes a single point visible
		}
		fmt.Fprintf(&path, "%s%d %d%s", command, s.x(point.date), s.y(point.value.Units()), dot)
		previous = point.date
	}
	return path.String()
}

// spark returns a sparkline of the best values of a side, or nil for fewer than two values.
func spark(days []marketDay, sideOf func(*marketDay) *sideSummary) Node {
	var line series
	for i := range days {
		line.add(days[i].Date, sideOf(&days[i]).Best)
	}
	if len(line.points) < 2 {
		return nil
	}
	s, ok := newScale(line.points[0].date, line.points[len(line.points)-1].date, []series{line})
	if !ok {
		return nil
	}
	s.left = chartMargin
	return SVG(Class("spark"), Attr("viewBox", fmt.Sprintf("0 0 %d %d", chartWidth, chartBottom+chartTop)), Attr("preserveAspectRatio", "none"),
		Aria("hidden", "true"), El("path", Class("line"), Attr("d", s.path(line.points))))
}

func ventaOf(day *marketDay) *sideSummary  { return &day.Venta }
func compraOf(day *marketDay) *sideSummary { return &day.Compra }
