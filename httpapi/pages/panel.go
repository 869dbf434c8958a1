package pages

import (
	"slices"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
)

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
