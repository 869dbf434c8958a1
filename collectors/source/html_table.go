package source

import (
	"slices"
	"strconv"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of a table. A page may claim any span; what is beyond these is cut.
const (
	spanMost      = 50
	columnsMost   = 100
	tableRowsMost = 5000
)

// htmlRows finds the rows. Those of a table whose places name columns get their cells by the headings of that table, and
// each table is a group of its own.
func (r *reading) htmlRows(document *goquery.Document) ([][]scope, *Failure) {
	extract := r.page.Extract.Rows
	nodes := document.Find(extract.At).Nodes
	if len(nodes) == 0 {
		return nil, Fail(Layout, "no row stands at %s", quoted(extract.At))
	}
	headings := extract.headings()
	tables, groups := map[*html.Node]*table{}, [][]scope{}
	for _, node := range nodes[:min(len(nodes), tableRowsMost)] {
		row := &htmlScope{selection: goquery.NewDocumentFromNode(node).Selection}
		group := 0
		if len(headings) > 0 {
			around := tableAround(node)
			if around != nil && tables[around] == nil {
				tables[around] = readTable(around, headings)
				tables[around].group = len(tables) - 1
			}
			if row.columns = tables[around].cells(node, headings); row.columns == nil {
				continue
			}
			group = tables[around].group
		}
		for len(groups) <= group {
			groups = append(groups, nil)
		}
		groups[group] = append(groups[group], row)
	}
	if len(groups) == 0 {
		return nil, Fail(Layout, "no table with rows at %s has the headings %s once each and rows below them",
			quoted(extract.At), strings.Join(headings, ", "))
	}
	return groups, nil
}

// headings are the normalised headings of all columns that the places name.
func (e *Rows) headings() []string {
	places := []*Place{&e.Label, e.Buy, e.Sell, e.Value}
	if e.Date != nil {
		places = append(places, &e.Date.Place)
	}
	var headings []string
	for _, place := range places {
		if place == nil || place.Column == "" {
			continue
		}
		if heading := Normalise(place.Column); !slices.Contains(headings, heading) {
			headings = append(headings, heading)
		}
	}
	return headings
}

// table is the cells of an HTML table by row and column, spans taken into account.
type table struct {
	group   int // which of the tables of the page it is
	rows    map[*html.Node]int
	grid    [][]*html.Node
	columns []map[string]int // of each row: where each heading stands in the nearest row of headings above it; nil = nowhere
}

func tableAround(node *html.Node) *html.Node {
	for node != nil && node.DataAtom != atom.Table {
		node = node.Parent
	}
	return node
}

func readTable(node *html.Node, headings []string) *table {
	t := &table{rows: map[*html.Node]int{}}
	t.addRows(node, map[int]*spanned{})
	t.columns = make([]map[string]int, len(t.grid))
	var above map[string]int
	for i, row := range t.grid {
		if columns, some := columnsOf(row, headings); some {
			above = columns // a part of the headings only: nobody knows what stands in the rows below
			continue
		}
		t.columns[i] = above
	}
	return t
}

// spanned is a cell that reaches into the rows below it.
type spanned struct {
	cell *html.Node
	left int
}

// addRows goes through the rows of a table, but not of the tables inside its cells.
func (t *table) addRows(node *html.Node, reaching map[int]*spanned) {
	for child := node.FirstChild; child != nil; child = child.NextSibling {
		switch child.DataAtom {
		case atom.Thead, atom.Tbody, atom.Tfoot:
			t.addRows(child, map[int]*spanned{})
		case atom.Tr:
			if len(t.grid) < tableRowsMost {
				t.rows[child] = len(t.grid)
				t.grid = append(t.grid, gridRow(child, reaching))
			}
		}
	}
}

// gridRow lays the cells of a row beside those that reach into it from above.
func gridRow(tr *html.Node, reaching map[int]*spanned) []*html.Node {
	var row []*html.Node
	fill := func() {
		for len(row) < columnsMost {
			above := reaching[len(row)]
			if above == nil || above.left == 0 {
				return
			}
			above.left--
			row = append(row, above.cell)
		}
	}
	for cell := tr.FirstChild; cell != nil; cell = cell.NextSibling {
		if cell.DataAtom != atom.Td && cell.DataAtom != atom.Th {
			continue
		}
		fill()
		down := span(cell, "rowspan")
		for range span(cell, "colspan") {
			if len(row) < columnsMost {
				reaching[len(row)] = &spanned{cell: cell, left: down - 1}
				row = append(row, cell)
			}
		}
	}
	fill()
	return row
}

func span(cell *html.Node, name string) int {
	text, _ := textOf(cell, name)
	number, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || number < 1 {
		return 1
	}
	return min(number, spanMost)
}

// columnsOf finds every heading exactly once in a row; nil when one is missing or stands twice, because then nobody can say
// which column is meant. It reports whether any heading stands there.
func columnsOf(row []*html.Node, headings []string) (map[string]int, bool) {
	columns, twice := map[string]int{}, false
	for i, cell := range row {
		text := Normalise(visibleText(cell))
		if !slices.Contains(headings, text) {
			continue
		}
		_, known := columns[text]
		twice = twice || known
		columns[text] = i
	}
	if twice || len(columns) < len(headings) {
		return nil, len(columns) > 0
	}
	return columns, true
}

// cells are the cells of a row by heading; nil when the row is not below the headings, or no row of a table. A cell below two
// headings is left out: one price for both sides is neither.
func (t *table) cells(tr *html.Node, headings []string) map[string]*html.Node {
	if t == nil {
		return nil
	}
	index, known := t.rows[tr]
	if !known || t.columns[index] == nil {
		return nil
	}
	row, below := t.grid[index], map[*html.Node]int{}
	for _, heading := range headings {
		if column := t.columns[index][heading]; column < len(row) {
			below[row[column]]++
		}
	}
	cells := map[string]*html.Node{}
	for _, heading := range headings {
		if column := t.columns[index][heading]; column < len(row) && below[row[column]] == 1 {
			cells[heading] = row[column]
		}
	}
	return cells
}
