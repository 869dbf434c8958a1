package main

import (
	"fmt"
	"math"
	"strconv"
)

// axisTicksMax is how many numbers fit below a bar on a phone.
const axisTicksMax = 5

// htmlGroup is measures that follow each other in one unit: their bars have one scale, and can be compared.
type htmlGroup struct {
	Rows  []htmlRow
	Ticks []htmlTick
}

// htmlTick is a mark of an axis: its place and its text.
type htmlTick struct {
	At, Text string
	Anchor   string // which part of the text is at the place
	Fine     bool   // without its text where there is little room
}

// newTick makes a mark of a horizontal axis. Near the end the text ends at its place: it would leave the drawing.
func newTick(share float64, text string) htmlTick {
	const nearEnd = 0.96
	tick := htmlTick{At: percent(share), Text: text, Anchor: "middle"}
	if share > nearEnd {
		tick.Anchor = "end"
	}
	return tick
}

// htmlBar is a bar as it is drawn, in shares of the width.
type htmlBar struct {
	ID           string
	Verdict      verdict
	Label, About string // for those who do not see it
	Width        string
	Bound        string // "" without one
	Zone         string // where the part begins that keeps the bound
	ZoneWidth    string
	Half         string // where the middle half of the rounds begins, "" with fewer than two rounds
	HalfWidth    string
	Dots         []string // rounds
}

func htmlGroups(measures []measure, anchor string) []htmlGroup {
	var groups []htmlGroup
	for first := 0; first < len(measures); {
		after := first + 1
		for after < len(measures) && measures[after].Unit == measures[first].Unit {
			after++
		}
		top := axisTop(measures[first:after])
		group := htmlGroup{Ticks: axisTicks(top)}
		for i := first; i < after; i++ {
			row := newHTMLRow(&measures[i])
			row.Bar = newHTMLBar(&measures[i], row, top, fmt.Sprintf("bar_%s_%d", anchor, i+1))
			group.Rows = append(group.Rows, row)
		}
		groups = append(groups, group)
		first = after
	}
	return groups
}

// axisTop is the end of the scale: somewhat more than all that must be seen.
func axisTop(measures []measure) float64 {
	const room = 1.08
	top := 0.0
	for i := range measures {
		m := &measures[i]
		top = max(top, m.Value)
		if !m.Free {
			top = max(top, m.Want)
		}
		for _, v := range m.Rounds {
			top = max(top, v)
		}
	}
	if top <= 0 {
		return 1
	}
	return min(top*room, math.MaxFloat64)
}

// axisTicks are round numbers from 0 on.
func axisTicks(top float64) []htmlTick {
	step := niceStep(top, axisTicksMax)
	unit, letter := axisUnit(top)
	places := min(decimalsMax, max(0, int(-math.Floor(math.Log10(step/unit)))))
	ticks := []htmlTick{newTick(0, "0")}
	for i := 1; i <= axisTicksMax; i++ {
		if v := step * float64(i); v <= top {
			ticks = append(ticks, newTick(v/top, number(v/unit, places)+letter))
		}
	}
	return ticks
}

// axisUnit keeps the numbers of an axis short: 150k instead of 150,000.
func axisUnit(top float64) (unit float64, letter string) {
	switch {
	case top >= 1e9:
		return 1e9, "G"
	case top >= 1e6:
		return 1e6, "M"
	case top >= 1e4:
		return 1e3, "k"
	}
	return 1, ""
}

// niceStep is the smallest of 1, 2, 5, 10, 20 ... (or their tenths) that makes at most so many steps of a scale.
func niceStep(top float64, most int) float64 {
	power := math.Pow(10, math.Floor(math.Log10(top/float64(most))))
	for _, factor := range []float64{1, 2, 5} {
		if top/(factor*power) <= float64(most) {
			return factor * power
		}
	}
	return 10 * power
}

func newHTMLBar(m *measure, row htmlRow, top float64, id string) htmlBar {
	bar := htmlBar{ID: id, Verdict: row.Verdict, Label: row.Name + ": " + row.Value, Width: percent(m.Value / top)}
	if !m.Free {
		bar.Bound = percent(m.Want / top)
		bar.Zone, bar.ZoneWidth = "0%", bar.Bound
		if m.AtLeast {
			bar.Zone, bar.ZoneWidth = bar.Bound, percent(1-m.Want/top)
		}
	}
	bar.About = fmt.Sprintf("The bound is %s: %s.", row.Bound, m.verdict())
	if m.Free {
		bar.About = "There is no bound."
	}
	if low, high, ok := quartiles(m.Rounds); ok {
		bar.Half, bar.HalfWidth = percent(low/top), percent((high-low)/top)
		bar.About += " The middle half of the rounds is " + row.Spread + "."
	}
	for _, v := range m.Rounds {
		bar.Dots = append(bar.Dots, percent(v/top))
	}
	return bar
}

// percent is a place within a drawing: a share of its width or height, never outside of it.
func percent(share float64) string {
	const places = 2
	return strconv.FormatFloat(100*min(max(share, 0), 1), 'f', places, 64) + "%"
}
