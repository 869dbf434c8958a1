package main

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	curveStyles = 6    // different lines: colour, dashes and marks; with more they begin again
	plotSize    = 1000 // units of a plot's inside, each way; it is stretched to the room that there is
	afterLast   = 0.5  // nines between the last percentile below 100 and 100, which would be infinitely far
)

// htmlChart is a picture of the distributions of one goal.
type htmlChart struct {
	ID, Goal, About string
	X, Y            []htmlTick
	Lines           []htmlLine
	Rows            []htmlPercentile // of the table below it
}

// htmlPercentile is a row of the table: what each line has there.
type htmlPercentile struct {
	Name  string
	Cells []string
}

// htmlLine is one distribution.
type htmlLine struct {
	Name   string
	Style  int    // 1 to curveStyles
	Points string // of a polyline
	Marks  []htmlMark
}

// htmlMark is a point that is marked, with what it says.
type htmlMark struct{ X, Y, Text string }

// columnPercentiles are those that people ask for: of the table, and marked on the lines.
func columnPercentiles() []float64 { return []float64{50, 90, 99, 99.9, 99.99, 100} }

// htmlCharts draws the curves of each goal together: they are there to be compared.
func htmlCharts(curves []curve) []htmlChart {
	var charts []htmlChart
	var goals []string
	for _, c := range curves {
		if !slices.Contains(goals, c.Goal) {
			goals = append(goals, c.Goal)
		}
	}
	for _, goal := range goals {
		var own []curve
		for _, c := range curves {
			if c.Goal == goal && len(c.Points) > 0 {
				own = append(own, sorted(c))
			}
		}
		if len(own) > 0 {
			charts = append(charts, newHTMLChart(goal, own, "curve_"+strconv.Itoa(len(charts)+1)))
		}
	}
	return charts
}

// sorted puts the points of a curve in order: a report may have been edited.
func sorted(c curve) curve {
	c.Points = slices.SortedFunc(slices.Values(c.Points), func(a, b point) int { return cmp.Compare(a.Percentile, b.Percentile) })
	return c
}

func newHTMLChart(goal string, curves []curve, id string) htmlChart {
	s := newScale(curves)
	chart := htmlChart{ID: id, Goal: goal, X: s.percentileTicks(), Y: s.latencyTicks(), Rows: percentileRows(curves)}
	about := make([]string, len(curves))
	for i, c := range curves {
		chart.Lines = append(chart.Lines, s.line(c, i%curveStyles+1))
		about[i] = c.Name + ":"
		for _, row := range chart.Rows {
			if row.Cells[i] != noCell {
				about[i] += " " + row.Name + " " + row.Cells[i] + ","
			}
		}
		about[i] = strings.TrimRight(about[i], ",:")
	}
	chart.About = strings.Join(about, "; ") + "."
	return chart
}

// percentileRows is the table; a percentile that no curve reaches has no row.
func percentileRows(curves []curve) []htmlPercentile {
	var rows []htmlPercentile
	for _, percentile := range columnPercentiles() {
		row := htmlPercentile{Name: percentileName(percentile)}
		known := false
		for i := range curves {
			cell := noCell
			if p, ok := curves[i].at(percentile); ok {
				cell, known = latency(p.Latency), true
			}
			row.Cells = append(row.Cells, cell)
		}
		if known {
			rows = append(rows, row)
		}
	}
	return rows
}

// at finds the point of a percentile.
func (c *curve) at(percentile float64) (point, bool) {
	for _, p := range c.Points {
		if p.Percentile == percentile {
			return p, true
		}
	}
	return point{}, false
}

// noCell stands where a distribution says nothing.
const noCell = "–"

// scale places points: percentiles by their nines, latencies by their logarithm.
type scale struct {
	last      float64 // nines of the last percentile below 100
	low, high float64 // logarithms of the latencies at the ends
}

func newScale(curves []curve) scale {
	s := scale{last: 1}
	least, most := math.Inf(1), math.Inf(-1)
	for _, c := range curves {
		for _, p := range c.Points {
			if p.Percentile < 100 {
				s.last = max(s.last, nines(p.Percentile))
			}
			ns := float64(max(p.Latency, 1))
			least, most = min(least, ns), max(most, ns)
		}
	}
	s.low, s.high = math.Log10(roundDown(least)), math.Log10(roundUp(most))
	if s.high <= s.low {
		s.high = s.low + 1
	}
	return s
}

// nines is how many nines a percentile has: 90 one, 99 two, 99.9 three. Nine are the most: no run has so many answers.
func nines(percentile float64) float64 {
	const least = 1e-9
	return -math.Log10(min(max(1-percentile/100, least), 1))
}

func (s scale) x(percentile float64) float64 {
	if percentile >= 100 {
		return 1
	}
	return nines(percentile) / (s.last + afterLast)
}

func (s scale) y(latency time.Duration) float64 {
	return 1 - (math.Log10(float64(max(latency, 1)))-s.low)/(s.high-s.low)
}

// latencySteps are the round numbers of a logarithmic axis.
func latencySteps() []float64 { return []float64{1, 2, 5, 10} }

func roundDown(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range slices.Backward(latencySteps()) {
		if step*power <= v {
			return step * power
		}
	}
	return power
}

func roundUp(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range latencySteps() {
		if step*power >= v {
			return step * power
		}
	}
	return 10 * power
}

// percentileTicks are 0, each nine, and the slowest.
func (s scale) percentileTicks() []htmlTick {
	const many, veryMany = 4, 5 // nines, with which a phone has no room for every text
	ticks := []htmlTick{newTick(0, "0")}
	add := func(p float64, places int, fine bool) {
		tick := newTick(s.x(p), strconv.FormatFloat(p, 'f', places, 64))
		tick.Fine = fine
		ticks = append(ticks, tick)
	}
	if s.last <= many {
		add(50, 0, true)
	}
	for n := 1; float64(n) <= s.last+1e-9; n++ {
		add(100-math.Pow(10, float64(2-n)), max(0, n-2), s.last > veryMany && n%2 == 1 || s.last >= many && s.last-float64(n) < afterLast/2)
	}
	return append(ticks, newTick(1, "max"))
}

// latencyTicks are 1, 2 and 5 of each power of ten; over many powers the 2 and 5 have no text.
func (s scale) latencyTicks() []htmlTick {
	const fewPowers = 2.5
	var ticks []htmlTick
	for power := math.Floor(s.low); power <= s.high; power++ {
		for _, step := range []float64{1, 2, 5} {
			v := step * math.Pow(10, power)
			if at := math.Log10(v); at >= s.low-1e-9 && at <= s.high+1e-9 {
				ticks = append(ticks, htmlTick{
					At:   percent(1 - (at-s.low)/(s.high-s.low)),
					Text: latency(time.Duration(math.Round(v))),
					Fine: step != 1 && s.high-s.low > fewPowers,
				})
			}
		}
	}
	return ticks
}

func (s scale) line(c curve, style int) htmlLine {
	line := htmlLine{Name: c.Name, Style: style}
	var points []string
	for _, p := range c.Points {
		points = append(points, plotPlace(s.x(p.Percentile))+","+plotPlace(s.y(p.Latency)))
	}
	line.Points = strings.Join(points, " ")
	for _, percentile := range columnPercentiles() {
		if p, ok := c.at(percentile); ok {
			line.Marks = append(line.Marks, htmlMark{
				X: percent(s.x(percentile)), Y: percent(s.y(p.Latency)),
				Text: c.Name + ", " + percentileName(percentile) + ": " + latency(p.Latency),
			})
		}
	}
	return line
}

// plotPlace is a place inside of a plot.
func plotPlace(share float64) string {
	return strconv.FormatFloat(plotSize*min(max(share, 0), 1), 'f', 1, 64)
}

// percentileName is p99.9; 100 is the slowest.
func percentileName(p float64) string {
	if p >= 100 {
		return "max"
	}
	return "p" + strconv.FormatFloat(p, 'f', -1, 64)
}
