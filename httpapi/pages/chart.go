package pages

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
)

// A chart is drawn in integer units of a box that scales with the page, so that rates are never floats.
const (
	chartWidth    = 4000
	chartHeight   = 2200
	chartDigit    = 72 // width of a digit of a label
	chartMargin   = 130
	chartRight    = 3960
	chartTop      = 160
	chartBottom   = 1880
	chartLabelY   = 2100    // of dates
	chartTicks    = 4       // approximate number of steps
	drawnUnitsMax = 1 << 61 // 23 thousand million DOP; calculations fit 64 bits
	chartGapDays  = 7       // longest gap in a line: weekends and holidays
)

// chartPoint is a point of a line.
type chartPoint struct {
	date  engine.Date
	value engine.Decimal
}

// series is a line to draw: its CSS class, the key of its label, and its points by date.
type series struct {
	class, key string
	points     []chartPoint
}

// chart is a chart with the coordinates of all its parts.
type chart struct {
	Width, Height, Left, Right int
	LabelX, LabelY             int // of labels of values, of dates
	Title                      string
	Lines                      []chartLine
	Ticks                      []tick
	Dates                      []dateTick
}

// chartLine is a line as an SVG path, with its newest value.
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
	Anchor string
	Date   engine.Date
}

// scale maps values and dates to coordinates.
type scale struct {
	low, high int64
	left      int // where lines begin, right of the labels
	from, to  engine.Date
}

// newChart draws lines over a range of dates. It returns nil if they are empty, or for a value beyond drawnUnitsMax.
func newChart(title string, from, to engine.Date, lines []series) *chart {
	low, high := int64(math.MaxInt64), int64(-1)
	for _, l := range lines {
		for _, r := range l.points {
			low, high = min(low, r.value.Units()), max(high, r.value.Units())
		}
	}
	if high < 0 || high > drawnUnitsMax {
		return nil
	}
	step := niceStep(high - low)
	low -= low % step
	if rest := high % step; rest > 0 {
		high += step - rest
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
	return c
}

// node renders the chart.
func (c *chart) node(l *Localizer) Node {
	if c == nil {
		return nil
	}
	var last []string
	for _, line := range c.Lines {
		last = append(last, l.Str(line.Key)+" "+line.Last.String())
	}
	label := func(x, y int, anchor, text string) Node {
		return El("text", Class("tick"), intAttr("x", x), intAttr("y", y), Attr("text-anchor", anchor), Text(text))
	}
	return Figure(Class("chart"), FigCaption(l.T(c.Title)),
		SVG(Attr("viewBox", fmt.Sprintf("0 0 %d %d", c.Width, c.Height)), Role("img"),
			Aria("label", l.Str(c.Title)+": "+strings.Join(last, ", ")),
			El("g", Aria("hidden", "true"),
				Map(c.Ticks, func(t tick) Node {
					return Group{
						El("path", Class("grid"), Attr("d", fmt.Sprintf("M%d %dH%d", c.Left, t.Y, c.Right))),
						label(c.LabelX, t.LabelY, "end", t.Label),
					}
				}),
				Map(c.Dates, func(d dateTick) Node { return label(d.X, c.LabelY, d.Anchor, l.ShortDate(d.Date)) }),
				Map(c.Lines, func(line chartLine) Node {
					return Group{
						El("path", Class("line "+line.Class), Attr("d", line.Path)),
						El("circle", Class("end "+line.Class), intAttr("cx", line.LastX), intAttr("cy", line.LastY), Attr("r", "42")),
					}
				}))),
		Ul(Class("legend"), Map(c.Lines, func(line chartLine) Node {
			return Li(Class(line.Class), Span(l.T(line.Key)), Text(" "), Strong(Text(line.Last.String())))
		})))
}

func intAttr(name string, value int) Node { return Attr(name, strconv.Itoa(value)) }

// niceStep returns 1, 2 or 5 times a power of ten, so that the span has about chartTicks steps. An empty span has
// steps of 0.10.
func niceStep(span int64) int64 {
	if span == 0 {
		return unitsPerDOP / 10
	}
	least := max(1, span/chartTicks)
	for power := int64(1); ; power *= 10 { // drawnUnitsMax/chartTicks is below the last power that fits
		for _, step := range []int64{power, 2 * power, 5 * power} {
			if step >= least {
				return step
			}
		}
	}
}

// tickLabel formats a value with the decimals of the step, at least two.
func tickLabel(value, step int64) string {
	places, scale := 8, int64(unitsPerDOP)
	for places > 2 && step%10 == 0 {
		places, scale, step, value = places-1, scale/10, step/10, value/10
	}
	return formatFixed(value, scale, places)
}

func (s scale) y(value int64) int {
	span, above := s.high-s.low, s.high-value
	for span > math.MaxInt32 { // the product with the height must fit
		span, above = span/10, above/10
	}
	return chartTop + int(above*(chartBottom-chartTop)/span)
}

func (s scale) x(date engine.Date) int {
	if s.to <= s.from {
		return chartRight
	}
	return s.left + int(date-s.from)*(chartRight-s.left)/int(s.to-s.from)
}

// dates returns both ends and the middle.
func (s scale) dates() []dateTick {
	middle := s.from + (s.to-s.from)/2
	return []dateTick{{s.x(s.from), "start", s.from}, {s.x(middle), "middle", middle}, {s.x(s.to), "end", s.to}}
}

func (s scale) draw(l series) chartLine {
	var path strings.Builder
	var before engine.Date
	d := chartLine{Class: l.class, Key: l.key}
	for _, r := range l.points {
		d.LastX, d.LastY, d.Last = s.x(r.date), s.y(r.value.Units()), r.value
		command := "L"
		if before == 0 || r.date-before > chartGapDays {
			command = "M"
		}
		path.WriteString(command + strconv.Itoa(d.LastX) + " " + strconv.Itoa(d.LastY))
		if command == "M" { // makes a single point visible
			path.WriteString("h1")
		}
		before = r.date
	}
	d.Path = path.String()
	return d
}

// marketCharts returns the charts of a currency for buyers and for sellers.
func marketCharts(points []marketDay, from, to engine.Date) (venta, compra *chart) {
	side := func(title string, of func(*marketDay) *sideSummary) *chart {
		lines := []series{{class: "reference", key: "line.reference"}, {class: "median", key: "line.median"}, {class: "best", key: "line.best"}}
		for i := range points {
			t := of(&points[i])
			for j, value := range []engine.Decimal{t.Reference, t.Median, t.Best} {
				if !value.IsNull() {
					lines[j].points = append(lines[j].points, chartPoint{points[i].Date, value})
				}
			}
		}
		return newChart(title, from, to, lines)
	}
	return side("chart.venta", func(p *marketDay) *sideSummary { return &p.Venta }), side("chart.compra", func(p *marketDay) *sideSummary { return &p.Compra })
}

// quoteChart returns the chart of the rate of one institution.
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
	return newChart("chart.quote", from, to, []series{venta, compra})
}
