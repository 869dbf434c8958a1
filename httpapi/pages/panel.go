package pages

import (
	"bytes"
	"fmt"
	"html/template"
	"strconv"
	"time"

	"github.com/tasard/tasard/engine"
)

// panelKept is how old the charts and tables of a page may be. They take longer to render than all the rest of it, and the past does not
// change.
const panelKept = time.Minute

// panel is the history that the template history.html shows: charts, and the same numbers as a table.
type panel struct {
	Currency string
	Single   bool // of one quote: one chart with both sides
	Charts   []*chart
	Days     []dayRow // newest first
}

// dayRow is a day of the table, its cells as texts: a template that asked for each by itself would take twice as long.
type dayRow struct {
	Date  string
	Cells []string
}

const noValue = "—"

func rowOf(date engine.Date, values ...engine.Decimal) dayRow {
	row := dayRow{date.String(), make([]string, 0, len(values))}
	for _, value := range values {
		row.Cells = append(row.Cells, shown(value))
	}
	return row
}

// drawn are the charts that hold something.
func drawn(all ...*chart) []*chart {
	var some []*chart
	for _, c := range all {
		if c != nil {
			some = append(some, c)
		}
	}
	return some
}

// marketHistory is the history of a currency: best, median and reference of both sides.
func (p *Pages) marketHistory(r *Request, q question) (template.HTML, error) {
	key := "market/" + q.Currency + "/" + strconv.Itoa(q.Days)
	return p.panel(r, key, func() (*panel, error) {
		points, err := p.chronicles.market(q.Currency, r.Now)
		if err != nil {
			return nil, err
		}
		today := engine.DateOf(r.Now)
		from := today.AddDays(1 - q.Days)
		points = lastDays(points, from)
		history := &panel{Currency: q.Currency, Charts: drawn(marketCharts(points, from, today)), Days: make([]dayRow, 0, len(points))}
		for i := range points {
			d := &points[len(points)-1-i]
			history.Days = append(history.Days, rowOf(d.Date, d.Venta.Best, d.Venta.Median, d.Venta.Reference, d.Compra.Best, d.Compra.Median, d.Compra.Reference))
		}
		return history, nil
	})
}

// quoteHistory is the history of one quote of an institution.
func (p *Pages) quoteHistory(r *Request, f engine.Filter, days int) (template.HTML, error) {
	key := fmt.Sprintf("quote/%s/%s/%s/%s/%d", f.Institution, f.Currency, f.Channel, f.Kind, days)
	return p.panel(r, key, func() (*panel, error) {
		rows, err := p.chronicles.quote(f, r.Now)
		if err != nil {
			return nil, err
		}
		today := engine.DateOf(r.Now)
		from := today.AddDays(1 - days)
		history := &panel{Currency: f.Currency, Single: true}
		for i := range rows {
			if row := &rows[len(rows)-1-i]; row.Date >= from {
				history.Days = append(history.Days, rowOf(row.Date, row.Sell, row.Buy))
			}
		}
		history.Charts = drawn(quoteChart(rows[len(rows)-len(history.Days):], from, today))
		return history, nil
	})
}

// panel renders a history, or takes what was rendered within the last minute.
func (p *Pages) panel(r *Request, key string, read func() (*panel, error)) (template.HTML, error) {
	kept, err := p.panels.take(keptKey{language: r.Language, page: key}, r.Now, func() (*rendered, time.Time, error) {
		history, err := read()
		if err != nil {
			return nil, time.Time{}, err
		}
		var text bytes.Buffer
		if err := p.historyBody.templates[r.Language].ExecuteTemplate(&text, "body", history); err != nil {
			return nil, time.Time{}, fmt.Errorf("render the history %s: %w", key, err)
		}
		return &rendered{body: text.Bytes()}, r.Now.Add(panelKept), nil
	})
	if err != nil {
		return "", err
	}
	return template.HTML(kept.body), nil // made by html/template, a few lines above
}
