package suggest

import (
	"fmt"

	"golang.org/x/net/html"

	"github.com/tasard/tasard/collectors/markup"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/collectors/values"
)

// tableWriter collects what a definition says about a table.
type tableWriter struct {
	page         *page
	table        *html.Node
	headings     map[source.Side]string
	labels       map[string]target
	labelColumn  int
	labelHeading string
}

// add adds the row of a finding.
func (t *tableWriter) add(f *Finding) error {
	cell := cellOf(f.at.node)
	if cell == nil || f.at.attribute != "" || f.at.inScript || t.table != nil && t.table != markup.EnclosingTable(cell) {
		return errNoTable
	}
	t.table = markup.EnclosingTable(cell)
	grid, row, column := t.page.gridOf(cell)
	headingRow := t.headingRow(grid, row, column)
	if headingRow < 0 {
		return errNoTable
	}
	heading := markup.VisibleText(grid[headingRow][column])
	if known := t.headings[f.Side]; known != "" && known != heading {
		return errNoTable
	}
	t.headings[f.Side] = heading
	for j, other := range grid[row] {
		words := t.page.wordsIn(other)
		currency, _ := only(words, values.AboutCurrency)
		isLabel := currency.Meaning == f.Currency && (f.Channel == "" || has(words, values.AboutChannel))
		if t.page.pricesIn(other) > 0 || !isLabel || t.labelColumn >= 0 && t.labelColumn != j {
			continue
		}
		t.labelColumn = j
		t.labels[markup.VisibleText(other)] = f.target()
		if j < len(grid[headingRow]) {
			t.labelHeading = markup.VisibleText(grid[headingRow][j])
		}
		return nil
	}
	return errNoTable
}

// headingRow returns the nearest row above that has a text in a column, and no price in it, or -1.
func (t *tableWriter) headingRow(grid [][]*html.Node, row, column int) int {
	for i := row - 1; i >= 0; i-- {
		if column < len(grid[i]) && t.page.pricesIn(grid[i][column]) == 0 && markup.VisibleText(grid[i][column]) != "" {
			return i
		}
	}
	return -1
}

func (t *tableWriter) extract() *extract {
	buy, sell := t.headings[source.BuySide], t.headings[source.SellSide]
	if values.NormaliseLabel(buy) == values.NormaliseLabel(sell) {
		return nil
	}
	r := &rows{At: t.selector(), Label: locator{Column: t.labelHeading}, Labels: t.labels}
	if name := values.NormaliseLabel(t.labelHeading); name == "" || name == values.NormaliseLabel(buy) || name == values.NormaliseLabel(sell) {
		r.Label = locator{At: fmt.Sprintf("td:nth-child(%[1]d), th:nth-child(%[1]d)", t.labelColumn+1)}
	}
	if buy != "" {
		r.Buy = &locator{Column: buy}
	}
	if sell != "" {
		r.Sell = &locator{Column: sell}
	}
	return &extract{Method: string(source.HTMLRows), Rows: r}
}

// selector selects the rows of the table.
func (t *tableWriter) selector() string {
	if selector := selectorOf(t.table); selector != "" {
		return selector + " tr"
	}
	return "table tr"
}
