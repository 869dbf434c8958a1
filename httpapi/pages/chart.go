package pages

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
)

// Dimensions of a chart in its SVG viewBox. Coordinates are integers, so that rates are never converted to floats.
const (
	chartWidth    = 4000
	chartHeight   = 2200
	chartDigit    = 72 // width of a digit in a label
	chartMargin   = 130
	chartRight    = 3960
	chartTop      = 160
	chartBottom   = 1880
	chartBandY    = 70      // y of the values of a band
	chartLabelY   = 2100    // y of the labels of dates
	chartTicks    = 4       // approximate number of grid lines
	chartUnitsMax = 1 << 61 // largest value, 23 thousand million DOP; the arithmetic would overflow with larger values
	chartBandsMax = 60      // most bands that show their values; a year has one a week
	chartGapDays  = 7       // more days in a row without values break the line; weekends and holidays are shorter
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

// chart has the coordinates of all parts of a chart.
type chart struct {
	Width, Height, Left, Right int
	LabelX                     int    // x of the labels of values
	LabelY                     int    // y of the labels of dates
	Title                      string // key of the title in the texts of the pages
	Lines                      []chartLine
	Ticks                      []tick
	Dates                      []dateTick
	Bands                      []band
	BandWidth                  int
}

// chartLine is a line of a chart. Path is its SVG path, Last the value of its last point.
type chartLine struct {
	Class, Key, Path string
	Last             engine.Decimal
	LastX, LastY     int
}

// tick is a horizontal grid line.
type tick struct {
	Y, LabelY int
	Label     string
}

// dateTick is a date on the horizontal axis.
type dateTick struct {
	X      int
	Anchor string // value of the attribute text-anchor
	Date   engine.Date
}

// band is a part of the horizontal axis. It shows the values of its newest date while a mouse or a finger is on it.
type band struct {
	X      int // of the middle
	Date   engine.Date
	Values []engine.Decimal // of each line; null if it has none
}

// scale maps values and dates to coordinates.
type scale struct {
	low, high int64 // the range of values, in units of engine.Decimal
	left      int   // x of the first date
	from, to  engine.Date
}

// newChart returns a chart of lines over a range of dates. It returns nil if no line has a point or if a value exceeds
// chartUnitsMax. title is the key of the title in the texts of the pages.
func newChart(title string, from, to engine.Date, lines []series) *chart {
	low, high := int64(math.MaxInt64), int64(-1)
	for _, l := range lines {
		for _, r := range l.points {
			low, high = min(low, r.value.Units()), max(high, r.value.Units())
		}
	}
	if high < 0 || high > chartUnitsMax {
		return nil
	}
	step := niceStep(high - low)
	low -= low % step
	if remainder := high % step; remainder > 0 {
		high += step - remainder
	}
	if low == high {
		low, high = max(0, low-step), high+step
	}
	s := scale{low, high, chartMargin + chartDigit*len(tickLabel(high, step)), from, to}
	c := &chart{
		Width: chartWidth, Height: chartHeight, Left: s.left, Right: chartRight, LabelX: s.left - chartMargin/2, LabelY: chartLabelY,
		Title: title, Dates: s.dates(),
	}
	for value := low; value <= high; value += step {
		c.Ticks = append(c.Ticks, tick{s.y(value), s.y(value) + chartDigit/2, tickLabel(value, step)})
	}
	for _, l := range lines {
		if len(l.points) > 0 {
			c.Lines = append(c.Lines, s.draw(l))
		}
	}
	c.Bands, c.BandWidth = s.bands(lines)
	return c
}

// node returns the chart as an SVG with a legend, or nil if c is nil.
func (c *chart) node(l *Localizer) Node {
	if c == nil {
		return nil
	}
	var values []string
	for _, line := range c.Lines {
		values = append(values, l.Str(line.Key)+" "+sideOrDash(line.Last))
	}
	label := func(x, y int, anchor, text string) Node {
		return El("text", Class("tick"), intAttr("x", x), intAttr("y", y), Attr("text-anchor", anchor), Text(text))
	}
	return Figure(Class("chart"), FigCaption(l.T(c.Title)),
		SVG(Attr("viewBox", fmt.Sprintf("0 0 %d %d", c.Width, c.Height)), Role("img"),
			Aria("label", l.Str(c.Title)+": "+strings.Join(values, ", ")),
			El("g", Aria("hidden", "true"),
				Map(c.Ticks, func(t tick) Node {
					return Group{
						El("path", Class("grid"), Attr("d", fmt.Sprintf("M%d %dH%d", c.Left, t.Y, c.Right))),
						label(c.LabelX, t.LabelY, "end", t.Label),
					}
				}),
				Map(c.Dates, func(d dateTick) Node { return label(d.X, c.LabelY, d.Anchor, l.axisDate(d.Date, c.Dates)) }),
				Map(c.Lines, func(line chartLine) Node {
					return Group{
						El("path", Class("line "+line.Class), Attr("d", line.Path)),
						El("circle", Class("end "+line.Class), intAttr("cx", line.LastX), intAttr("cy", line.LastY), Attr("r", "42")),
					}
				}),
				El("g", intAttr("stroke-width", c.BandWidth), Map(c.Bands, func(b band) Node { return c.bandNode(b, l) })))),
		Ul(Class("legend"), Map(c.Lines, func(line chartLine) Node {
			return Li(Class(line.Class), Span(l.T(line.Key)), Text(" "), Strong(Text(sideOrDash(line.Last))))
		})))
}

// bandNode returns a band with its values. CSS shows them, so they need no script.
func (c *chart) bandNode(b band, l *Localizer) Node {
	text := l.ShortDate(b.Date)
	for i, line := range c.Lines {
		if !b.Values[i].IsNull() {
			text += " · " + l.Str(line.Key) + " " + sideOrDash(b.Values[i])
		}
	}
	return El("g", Class("band"), El("path", Attr("d", fmt.Sprintf("M%d %dV%d", b.X, chartTop, chartBottom))),
		El("text", intAttr("x", c.Width/2), intAttr("y", chartBandY), Text(text)))
}

// axisDate formats a date of the axis, with the year if the axis has two of them.
func (l *Localizer) axisDate(date engine.Date, axis []dateTick) string {
	if first, last := axis[0].Date.String()[:4], axis[len(axis)-1].Date.String()[:4]; first != last {
		return l.ShortDate(date) + " " + date.String()[:4]
	}
	return l.ShortDate(date)
}

func intAttr(name string, value int) Node { return Attr(name, strconv.Itoa(value)) }

// niceStep returns the distance between grid lines, so that a span of values has about chartTicks of them. The distance
// is 1, 2 or 5 times a power of ten. For an empty span it is 0.10.
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

// tickLabel formats a value with as many decimals as step (the distance between grid lines) has, but at least two.
func tickLabel(value, step int64) string {
	places, scale := 8, int64(unitsPerDOP)
	for places > 2 && step%10 == 0 {
		places, scale, step, value = places-1, scale/10, step/10, value/10
	}
	return formatFixed(value, scale, places)
}

func (s scale) y(value int64) int {
	span, distance := s.high-s.low, s.high-value
	for span > math.MaxInt32 { // otherwise the product below could overflow
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

// dates returns ticks for the first, the middle and the last date.
func (s scale) dates() []dateTick {
	middle := s.from + (s.to-s.from)/2
	return []dateTick{{s.x(s.from), "start", s.from}, {s.x(middle), "middle", middle}, {s.x(s.to), "end", s.to}}
}

// bands returns the bands that have values, and the width of all. Values are of the lines that have points.
func (s scale) bands(lines []series) (bands []band, width int) {
	days := int(s.to-s.from) + 1
	daysOfBand := (days + chartBandsMax - 1) / chartBandsMax
	byStart := map[engine.Date]*band{}
	drawn := 0
	for _, l := range lines {
		if len(l.points) == 0 {
			continue
		}
		for _, point := range l.points {
			start := point.date - (point.date-s.from)%engine.Date(daysOfBand)
			if byStart[start] == nil {
				byStart[start] = &band{}
			}
			b := byStart[start]
			if point.date > b.Date {
				b.X, b.Date, b.Values = s.x(point.date), point.date, make([]engine.Decimal, len(lines))
			}
			if point.date == b.Date {
				b.Values[drawn] = point.value
			}
		}
		drawn++
	}
	for _, start := range slices.Sorted(maps.Keys(byStart)) {
		bands = append(bands, *byStart[start])
	}
	return bands, (chartRight - s.left) * daysOfBand / max(1, days-1)
}

// spark returns a small line of the best values of a side, without labels, or nil if there are fewer than two.
func spark(days []marketDay, sideOf func(*marketDay) *sideSummary) Node {
	line := series{}
	low, high := int64(math.MaxInt64), int64(0)
	for i := range days {
		if best := sideOf(&days[i]).Best; !best.IsNull() {
			line.points = append(line.points, chartPoint{days[i].Date, best})
			low, high = min(low, best.Units()), max(high, best.Units())
		}
	}
	if len(line.points) < 2 || high > chartUnitsMax {
		return nil
	}
	if low == high {
		low, high = low-1, high+1
	}
	s := scale{low, high, chartMargin, line.points[0].date, line.points[len(line.points)-1].date}
	return SVG(Class("spark"), Attr("viewBox", fmt.Sprintf("0 0 %d %d", chartWidth, chartBottom+chartTop)), Attr("preserveAspectRatio", "none"),
		Aria("hidden", "true"), El("path", Class("line"), Attr("d", s.draw(line).Path)))
}

func (s scale) draw(data series) chartLine {
	var path strings.Builder
	var previous engine.Date
	line := chartLine{Class: data.class, Key: data.key}
	for _, point := range data.points {
		line.LastX, line.LastY, line.Last = s.x(point.date), s.y(point.value.Units()), point.value
		command := "L"
		if previous == 0 || point.date-previous > chartGapDays {
			command = "M"
		}
		path.WriteString(command + strconv.Itoa(line.LastX) + " " + strconv.Itoa(line.LastY))
		if command == "M" { // a line of one unit makes a single point visible
			path.WriteString("h1")
		}
		previous = point.date
	}
	line.Path = path.String()
	return line
}

func ventaOf(day *marketDay) *sideSummary  { return &day.Venta }
func compraOf(day *marketDay) *sideSummary { return &day.Compra }

func marketCharts(days []marketDay, from, to engine.Date) (venta, compra *chart) {
	draw := func(title string, sideOf func(*marketDay) *sideSummary) *chart {
		lines := []series{{class: "reference", key: "line.reference"}, {class: "median", key: "line.median"}, {class: "best", key: "line.best"}}
		for i := range days {
			summary := sideOf(&days[i])
			for j, value := range []engine.Decimal{summary.Reference, summary.Median, summary.Best} {
				if !value.IsNull() {
					lines[j].points = append(lines[j].points, chartPoint{days[i].Date, value})
				}
			}
		}
		return newChart(title, from, to, lines)
	}
	return draw("chart.venta", ventaOf), draw("chart.compra", compraOf)
}

// quoteChart returns the chart of one rate of one institution.
func quoteChart(rows []engine.HistoryEntry, from, to engine.Date) *chart {
	venta, compra := series{class: "venta", key: "side.venta"}, series{class: "compra", key: "side.compra"}
	for i := range rows {
		row := &rows[i]
		if !row.Sell.IsNull() {
			venta.points = append(venta.points, chartPoint{row.Date, row.Sell})
		}
		if !row.Buy.IsNull() {
			compra.points = append(compra.points, chartPoint{row.Date, row.Buy})
		}
	}
	return newChart("chart.quote", from, to, []series{compra, venta})
}
