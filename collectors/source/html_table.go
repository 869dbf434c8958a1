package source

import (
	"slices"
	"strconv"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of a table. Rows, columns and spans beyond them are ignored.
const (
	spanMax      = 50
	columnsMax   = 100
	tableRowsMax = 5000
)

// htmlRows returns the rows that the CSS selector Rows.At selects. If the definition names no columns, all rows are in
// one group. If it names columns by their headings (Locator.Column), htmlRows omits rows without these columns, and
// groups the others by the row of headings above them.
func (r *parser) htmlRows(document *goquery.Document) [][]scope {
	extract := r.page.Extract.Rows
	nodes := document.Find(extract.At).Nodes
	if len(nodes) == 0 {
		failf(Layout, "there is no row at %s", quoted(extract.At))
	}
	headings := extract.headings()
	tables, groups, groupIndexes := map[*html.Node]*table{}, [][]scope{}, map[*html.Node]int{}
	for _, node := range nodes[:min(len(nodes), tableRowsMax)] {
		row := &htmlScope{selection: goquery.NewDocumentFromNode(node).Selection}
		var heading *html.Node
		if len(headings) > 0 {
			tableNode := enclosingTable(node)
			if tableNode != nil && tables[tableNode] == nil {
				tables[tableNode] = readTable(tableNode, headings)
			}
			if row.columns, heading = tables[tableNode].cells(node); row.columns == nil {
				continue
			}
		}
		index, known := groupIndexes[heading]
		if !known {
			index = len(groups)
			groupIndexes[heading], groups = index, append(groups, nil)
		}
		groups[index] = append(groups[index], row)
	}
	if len(groups) == 0 {
		failf(Layout, "nothing at %s is a row (tr) of a table that has the headings %s once each above it",
			quoted(extract.At), strings.Join(headings, ", "))
	}
	return groups
}

// headings returns the headings of the columns that the definition names (Locator.Column), in the form of
// normaliseLabel.
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

// table has the cells of an HTML table.
type table struct {
	rows         map[*html.Node]int    // index in grid of a row (tr)
	grid         [][]*html.Node        // cells by row and column; a cell that spans several positions is at each of them
	headingRows  []*headingRow         // by row: the nearest row of headings above it; nil = none
	lastHeadings *headingRow           // the lowest row of headings so far
	headings     []string              // headings that the definition names, normalised
	texts        map[*html.Node]string // cache of headingText
}

// headingRow is a row with headings.
type headingRow struct {
	row     *html.Node
	columns map[string]int // column of each heading; nil = one of table.headings is missing or repeated
}

func enclosingTable(node *html.Node) *html.Node {
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

// rowspanCell is the lowest cell in a column so far. It may span rows below it.
type rowspanCell struct {
	cell     *html.Node
	rowsLeft int // number of further rows that it spans
}

// addRows adds the rows of a table, but not the rows of tables within its cells. rowspans has the lowest cell of each
// column so far.
func (t *table) addRows(node *html.Node, rowspans map[int]*rowspanCell) {
	for child := node.FirstChild; child != nil; child = child.NextSibling {
		switch child.DataAtom {
		case atom.Thead, atom.Tbody, atom.Tfoot:
			t.addRows(child, map[int]*rowspanCell{})
		case atom.Tr:
			if len(t.grid) < tableRowsMax {
				t.addRow(child, gridRow(child, rowspans))
			}
		}
	}
}

// addRow adds a row. If one of its cells is one of t.headings, the row is the row of headings for the rows below.
func (t *table) addRow(tr *html.Node, row []*html.Node) {
	t.rows[tr] = len(t.grid)
	t.grid = append(t.grid, row)
	if columns, hasHeading := t.columnsOf(row); hasHeading {
		t.headingRows, t.lastHeadings = append(t.headingRows, nil), &headingRow{tr, columns}
		return
	}
	t.headingRows = append(t.headingRows, t.lastHeadings)
}

// gridRow returns the cells of a row. They include cells of rows above that span this row.
func gridRow(tr *html.Node, rowspans map[int]*rowspanCell) []*html.Node {
	var row []*html.Node
	fill := func() {
		for len(row) < columnsMax {
			spanning := rowspans[len(row)]
			if spanning == nil || spanning.rowsLeft == 0 {
				return
			}
			spanning.rowsLeft--
			row = append(row, spanning.cell)
		}
	}
	for cell := tr.FirstChild; cell != nil; cell = cell.NextSibling {
		if cell.DataAtom != atom.Td && cell.DataAtom != atom.Th {
			continue
		}
		fill()
		rows := span(cell, "rowspan")
		for range span(cell, "colspan") {
			if len(row) < columnsMax {
				rowspans[len(row)] = &rowspanCell{cell: cell, rowsLeft: rows - 1}
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

// columnsOf returns the column of each of t.headings, or nil if one is missing or repeated in the row. The second
// result reports whether the row has any of them.
func (t *table) columnsOf(row []*html.Node) (map[string]int, bool) {
	columns, repeated := map[string]int{}, false
	for i, cell := range row {
		text, cached := t.texts[cell]
		if !cached {
			text = headingText(cell)
			t.texts[cell] = text
		}
		if !slices.Contains(t.headings, text) {
			continue
		}
		_, exists := columns[text]
		repeated = repeated || exists
		columns[text] = i
	}
	if repeated || len(columns) < len(t.headings) {
		return nil, len(columns) > 0
	}
	return columns, true
}

// headingText returns the normalised text of a cell, or "" if the text is too long for a heading.
func headingText(cell *html.Node) string {
	var b strings.Builder
	writeVisible(&b, cell, labelBytesMax)
	if b.Len() >= labelBytesMax {
		return ""
	}
	return normaliseLabel(b.String())
}

// cells returns the cells of a row by heading, and the row with the headings. It returns nil if the row is not below a
// complete row of headings. It omits a cell below two headings, because its price could belong to either of them.
func (t *table) cells(tr *html.Node) (map[string]*html.Node, *html.Node) {
	if t == nil {
		return nil, nil
	}
	index, known := t.rows[tr]
	if !known || t.headingRows[index] == nil || t.headingRows[index].columns == nil {
		return nil, nil
	}
	row, columns, headingCount := t.grid[index], t.headingRows[index].columns, map[*html.Node]int{}
	for _, heading := range t.headings {
		if column := columns[heading]; column < len(row) {
			headingCount[row[column]]++
		}
	}
	cells := map[string]*html.Node{}
	for _, heading := range t.headings {
		if column := columns[heading]; column < len(row) && headingCount[row[column]] == 1 {
			cells[heading] = row[column]
		}
	}
	return cells, t.headingRows[index].row
}
