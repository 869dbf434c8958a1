package pages

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
)

// panelCacheDuration is how long a rendered panel is cached. That is longer than for a page, because charts and tables
// take the longest to render, and past days rarely change.
const panelCacheDuration = time.Minute

// panel is the history of a rate or of a currency, as charts and as a table.
type panel struct {
	currency string
	charts   Group
	columns  func(l *Localizer) Node // header rows of the table
	days     Group                   // rows of the table, newest day first
	note     string                  // key of a note below the table in the texts of the pages; "" means none
}

func rowOf(date engine.Date, values ...engine.Decimal) Node {
	return Tr(Th(Scope("row"), Text(date.String())), Map(values, func(value engine.Decimal) Node { return Td(Text(sideOrDash(value))) }))
}

// marketHistory returns the history of a currency: best, median and reference rate, each of compra (institutions buy)
// and venta (institutions sell).
func (p *Pages) marketHistory(l *Localizer, q pageQuery) (Node, error) {
	return p.panel(l, "market/"+q.Currency+"/"+strconv.Itoa(q.Days), func() (*panel, error) {
		days, err := p.history.market(q.Currency, l.now)
		if err != nil {
			return nil, err
		}
		today := engine.DateOf(l.now)
		from := today.AddDays(1 - q.Days)
		days = daysSince(days, from)
		venta, compra := marketCharts(days, from, today)
		history := &panel{currency: q.Currency, charts: Group{venta.node(l), compra.node(l)}, columns: marketColumns, note: "history.median"}
		for _, d := range slices.Backward(days) {
			history.days = append(history.days,
				rowOf(d.Date, d.Venta.Best, d.Venta.Median, d.Venta.Reference, d.Compra.Best, d.Compra.Median, d.Compra.Reference))
		}
		return history, nil
	})
}

func (l *Localizer) column(key string) Node { return Th(Scope("col"), l.T(key)) }

func marketColumns(l *Localizer) Node {
	side := func(key string) Node { return Th(Scope("colgroup"), ColSpan("3"), l.T(key)) }
	three := Group{l.column("line.best"), l.column("line.median"), l.column("line.reference")}
	return THead(Tr(Th(Scope("col"), RowSpan("2"), l.T("history.day")), side("side.venta"), side("side.compra")), Tr(three, three))
}

func quoteColumns(l *Localizer) Node {
	return THead(Tr(l.column("history.day"), l.column("side.venta"), l.column("side.compra")))
}

// quoteHistory returns the history of one rate of one institution.
func (p *Pages) quoteHistory(l *Localizer, f engine.Filter, days int) (Node, error) {
	key := fmt.Sprintf("quote/%s/%s/%s/%s/%d", f.Institution, f.Currency, f.Channel, f.Kind, days)
	return p.panel(l, key, func() (*panel, error) {
		today := engine.DateOf(l.now)
		from := today.AddDays(1 - days)
		rows, err := historyRows(p.service, engine.HistoryQuery{Filter: f, From: from, To: today})
		if err != nil {
			return nil, err
		}
		history := &panel{currency: f.Currency, charts: Group{quoteChart(rows, from, today).node(l)}, columns: quoteColumns}
		for _, row := range slices.Backward(rows) {
			history.days = append(history.days, rowOf(row.Date, row.Sell, row.Buy))
		}
		return history, nil
	})
}

// panel returns a rendered panel, from the cache if possible.
func (p *Pages) panel(l *Localizer, key string, build func() (*panel, error)) (Node, error) {
	page, err := p.panels.getOrRender(cacheKey{language: l.Language, page: key}, l.now, func() (*rendered, time.Time, error) {
		history, err := build()
		if err != nil {
			return nil, time.Time{}, err
		}
		var text bytes.Buffer
		if err := history.node(l).Render(&text); err != nil {
			return nil, time.Time{}, fmt.Errorf("render the history %s: %w", key, err)
		}
		return &rendered{body: text.Bytes()}, l.now.Add(panelCacheDuration), nil
	})
	if err != nil {
		return nil, err
	}
	return Raw(string(page.body)), nil
}

func (h *panel) node(l *Localizer) Node {
	if len(h.days) == 0 {
		return P(Class("empty"), l.T("history.empty"))
	}
	charts := "charts"
	if len(h.charts) == 1 {
		charts += " single"
	}
	return Group{
		Div(Class(charts), h.charts),
		Details(Class("table"), Summary(l.T("history.table")),
			Div(Class("scroll"), Role("region"), Aria("label", l.Str("history.table")), TabIndex("0"),
				Table(Class("days"), Caption(Class("quiet"), l.T("history.heading", h.currency)), h.columns(l), TBody(h.days))),
			If(h.note != "", P(Class("fine"), l.T(h.note)))),
	}
}
