package source

import (
	"slices"
	"strconv"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of a table. Larger spans and tables are cut.
const (
	spanMax      = 50
	columnsMax   = 100
	tableRowsMax = 5000
)

// htmlRows finds the rows, grouped by the row of headings above them. If locators name columns, a row gets its cells
// by the headings of its table.
func (r *parser) htmlRows(document *goquery.Document) [][]scope {
	extract := r.page.Extract.Rows
	nodes := document.Find(extract.At).Nodes
	if len(nodes) == 0 {
		failf(Layout, "there is no row at %s", quoted(extract.At))
	}
	headings := extract.headings()
	tables, groups, numbers := map[*html.Node]*table{}, [][]scope{}, map[*html.Node]int{}
	for _, node := range nodes[:min(len(nodes), tableRowsMax)] {
		row := &htmlScope{selection: goquery.NewDocumentFromNode(node).Selection}
		var heading *html.Node
		if len(headings) > 0 {
			around := tableAround(node)
			if around != nil && tables[around] == nil {
				tables[around] = readTable(around, headings)
			}
			if row.columns, heading = tables[around].cells(node); row.columns == nil {
				continue
			}
		}
		number, known := numbers[heading]
		if !known {
			number = len(groups)
			numbers[heading], groups = number, append(groups, nil)
		}
		groups[number] = append(groups[number], row)
	}
	if len(groups) == 0 {
		failf(Layout, "nothing at %s is a row (tr) of a table that has the headings %s once each above it",
			quoted(extract.At), strings.Join(headings, ", "))
	}
	return groups
}

// headings returns the normalised headings of all columns that locators name.
func (e *Rows) headings() []string {
	locators := []*Locator{&e.Label, e.Buy, e.Sell, e.Value}
	if e.Date != nil {
		locators = append(locators, &e.Date.Locator)
	}
	var headings []string
	for _, locator := range locators {
		if locator == nil || locator.Column == "" {
			continue
		}
		if heading := normaliseLabel(locator.Column); !slices.Contains(headings, heading) {
			headings = append(headings, heading)
		}
	}
	return headings
}

// table is the cells of an HTML table by row and column, with spans resolved.
type table struct {
	rows     map[*html.Node]int
	grid     [][]*html.Node
	above    []*headingRow // of each row: the nearest row of headings above; nil = none
	nearest  *headingRow   // above the next row
	headings []string
	texts    map[*html.Node]string // of cells; a spanning cell has many positions
}

// headingRow is the column of each heading.
type headingRow struct {
	row     *html.Node
	columns map[string]int
}

func tableAround(node *html.Node) *html.Node {
	for node != nil && node.DataAtom != atom.Table {
		node = node.Parent
	}
	return node
}

func readTable(node *html.Node, headings []string) *table {
	t := &table{rows: map[*html.Node]int{}, headings: headings, texts: map[*html.Node]string{}}
	t.addRows(node, map[int]*rowspanCell{})
	return t
}

// rowspanCell is a cell that spans rows below.
type rowspanCell struct {
	cell *html.Node
	left int
}

// addRows adds the rows of a table, but not those of tables within its cells.
func (t *table) addRows(node *html.Node, reaching map[int]*rowspanCell) {
	for child := node.FirstChild; child != nil; child = child.NextSibling {
		switch child.DataAtom {
		case atom.Thead, atom.Tbody, atom.Tfoot:
			t.addRows(child, map[int]*rowspanCell{})
		case atom.Tr:
			if len(t.grid) < tableRowsMax {
				t.addRow(child, gridRow(child, reaching))
			}
		}
	}
}

// addRow adds a row. A row with headings replaces the headings for the rows below.
func (t *table) addRow(tr *html.Node, row []*html.Node) {
	t.rows[tr] = len(t.grid)
	t.grid = append(t.grid, row)
	if columns, some := t.columnsOf(row); some {
		t.above, t.nearest = append(t.above, nil), &headingRow{tr, columns} // columns is nil if a heading is missing or repeated: then the rows below are not read
		return
	}
	t.above = append(t.above, t.nearest)
}

// gridRow returns the cells of a row, including those that span it from above.
func gridRow(tr *html.Node, reaching map[int]*rowspanCell) []*html.Node {
	var row []*html.Node
	fill := func() {
		for len(row) < columnsMax {
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
			if len(row) < columnsMax {
				reaching[len(row)] = &rowspanCell{cell: cell, left: down - 1}
				row = append(row, cell)
			}
		}
	}
	fill()
	return row
}

func span(cell *html.Node, name string) int {
	text, _ := nodeText(cell, name)
	number, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || number < 1 {
		return 1
	}
	return min(number, spanMax)
}

// columnsOf returns the column of each heading, nil if one is missing or occurs twice in the row. It reports whether
// the row has any heading.
func (t *table) columnsOf(row []*html.Node) (map[string]int, bool) {
	columns, twice := map[string]int{}, false
	for i, cell := range row {
		text, read := t.texts[cell]
		if !read {
			text = headingText(cell)
			t.texts[cell] = text
		}
		if !slices.Contains(t.headings, text) {
			continue
		}
		_, known := columns[text]
		twice = twice || known
		columns[text] = i
	}
	if twice || len(columns) < len(t.headings) {
		return nil, len(columns) > 0
	}
	return columns, true
}

// headingText returns the normalised text of a cell, "" if it is too long for a heading.
func headingText(cell *html.Node) string {
	var b strings.Builder
	writeVisible(&b, cell, labelBytesMax)
	if b.Len() >= labelBytesMax {
		return ""
	}
	return normaliseLabel(b.String())
}

// cells returns the cells of a row by heading, and the row of headings; nil if the row is not below headings. A cell
// below two headings is left out, since one price for both sides is neither.
func (t *table) cells(tr *html.Node) (map[string]*html.Node, *html.Node) {
	if t == nil {
		return nil, nil
	}
	index, known := t.rows[tr]
	if !known || t.above[index] == nil || t.above[index].columns == nil {
		return nil, nil
	}
	row, columns, below := t.grid[index], t.above[index].columns, map[*html.Node]int{}
	for _, heading := range t.headings {
		if column := columns[heading]; column < len(row) {
			below[row[column]]++
		}
	}
	cells := map[string]*html.Node{}
	for _, heading := range t.headings {
		if column := columns[heading]; column < len(row) && below[row[column]] == 1 {
			cells[heading] = row[column]
		}
	}
	return cells, t.above[index].row
}
