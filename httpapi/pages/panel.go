package pages

import (
	"slices"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
)

// panel is the history of a rate or of a currency, as charts and as a table.
type panel struct {
	currency string
	charts   Group
	columns  Node   // header rows of the table
	days     Group  // rows of the table, newest day first
	note     string // key of a note below the table in the texts of the pages; "" means none
}

func rowOf(date engine.Date, values ...engine.Decimal) Node {
	return Tr(Th(Scope("row"), Text(date.String())), Map(values, func(value engine.Decimal) Node { return Td(Text(sideOrDash(value))) }))
}

// marketHistory returns the history of a currency: best, median and reference rate, each of compra (institutions buy)
// and venta (institutions sell). The chart of the side that the visitor needs is first; a phone shows only this one.
func marketHistory(l *Localizer, q pageQuery, days []marketDay) Node {
	today := engine.DateOf(l.now)
	from := today.AddDays(1 - q.Days)
	days = daysSince(days, from)
	venta, compra := marketCharts(days, from, today)
	h := &panel{currency: q.Currency, charts: Group{venta.node(l), compra.node(l)}, note: "history.median"}
	if q.Operation == engine.Sell {
		slices.Reverse(h.charts)
	}
	side := func(key string) Node { return Th(Scope("colgroup"), ColSpan("3"), l.T(key)) }
	three := Group{l.column("line.best"), l.column("line.median"), l.column("line.reference")}
	h.columns = THead(Tr(Th(Scope("col"), RowSpan("2"), l.T("history.day")), side("side.compra"), side("side.venta")), Tr(three, three))
	for _, d := range slices.Backward(days) {
		h.days = append(h.days, rowOf(d.Date, d.Compra.Best, d.Compra.Median, d.Compra.Reference, d.Venta.Best, d.Venta.Median, d.Venta.Reference))
	}
	return h.node(l)
}

func (l *Localizer) column(key string) Node { return Th(Scope("col"), l.T(key)) }

// quoteHistory returns the history of one rate of one institution.
func (p *Pages) quoteHistory(l *Localizer, f engine.Filter, days int) (Node, error) {
	today := engine.DateOf(l.now)
	from := today.AddDays(1 - days)
	rows, err := historyRows(p.service, engine.HistoryQuery{Filter: f, From: from, To: today})
	if err != nil {
		return nil, err
	}
	h := &panel{currency: f.Currency, charts: Group{quoteChart(rows, from, today).node(l)}}
	h.columns = THead(Tr(l.column("history.day"), l.column("side.compra"), l.column("side.venta")))
	for _, row := range slices.Backward(rows) {
		h.days = append(h.days, rowOf(row.Date, row.Buy, row.Sell))
	}
	return h.node(l), nil
}

func (h *panel) node(l *Localizer) Node {
	if len(h.days) == 0 {
		return P(Class("empty"), l.T("history.empty"))
	}
	return Group{
		Div(Class("charts"), h.charts),
		Details(Class("table"), Summary(l.T("history.table")),
			Div(Class("scroll"), Role("region"), Aria("label", l.Str("history.table")), TabIndex("0"),
				Table(Class("days"), Caption(Class("quiet"), l.T("history.heading", h.currency)), h.columns, TBody(h.days))),
			If(h.note != "", P(Class("fine"), l.T(h.note)))),
	}
}
