package pages

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
)

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
