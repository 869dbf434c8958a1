package markup

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/tasard/tasard/collectors/values"
)

// Limits of a table. Rows, columns and spans beyond them are ignored.
const (
	spanMax    = 50
	columnsMax = 100
	RowsMax    = 5000 // of a table, and of a page

	headingBytesMax = 500 // a longer text is not a heading
)

// Table is an HTML table as a grid.
type Table struct {
	rows         map[*html.Node]int    // index in grid of a row (tr)
	grid         [][]*html.Node        // cells by row and column; a cell over several positions is at each of them
	headingRows  []*headingRow         // by row: the nearest row of headings above; nil = none
	lastHeadings *headingRow           // lowest row of headings so far
	headings     []string              // headings named by the definition, normalised
	texts        map[*html.Node]string // cache of headingText
}

// headingRow is a row with headings.
type headingRow struct {
	row     *html.Node
	columns map[string]int // column of each heading; nil = one of table.headings is missing or repeated
}

// EnclosingTable returns the innermost table around a node, or nil.
func EnclosingTable(node *html.Node) *html.Node {
	for node != nil && node.DataAtom != atom.Table {
		node = node.Parent
	}
	return node
}

// ReadTable reads a table whose columns are named by headings, in the form of values.NormaliseLabel.
func ReadTable(node *html.Node, headings []string) *Table {
	t := &Table{rows: map[*html.Node]int{}, headings: headings, texts: map[*html.Node]string{}}
	t.addRows(node, map[int]*rowspanCell{})
	return t
}

// rowspanCell is the lowest cell in a column so far. It may span further rows.
type rowspanCell struct {
	cell     *html.Node
	rowsLeft int // number of further rows
}

// Grid returns the cells by row and column. A cell over several positions is at each of them. Do not change the grid.
func (t *Table) Grid() [][]*html.Node { return t.grid }

// addRows adds the rows of a table, but not of tables within its cells. rowspans maps each column to its lowest cell so
// far.
func (t *Table) addRows(node *html.Node, rowspans map[int]*rowspanCell) {
	for child := node.FirstChild; child != nil; child = child.NextSibling {
		switch child.DataAtom {
		case atom.Thead, atom.Tbody, atom.Tfoot:
			t.addRows(child, map[int]*rowspanCell{})
		case atom.Tr:
			if len(t.grid) < RowsMax {
				t.addRow(child, gridRow(child, rowspans))
			}
		}
	}
}

// addRow adds a row. A row with one of t.headings becomes the row of headings for the rows below.
func (t *Table) addRow(tr *html.Node, row []*html.Node) {
	t.rows[tr] = len(t.grid)
	t.grid = append(t.grid, row)
	if columns, hasHeading := t.columnsOf(row); hasHeading {
		t.headingRows, t.lastHeadings = append(t.headingRows, nil), &headingRow{tr, columns}
		return
	}
	t.headingRows = append(t.headingRows, t.lastHeadings)
}

// gridRow returns the cells of a row, including cells from above that span it.
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
	text, _ := Text(cell, name)
	number, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || number < 1 {
		return 1
	}
	return min(number, spanMax)
}

// columnsOf returns the column of each of t.headings, or nil if one is missing or repeated in the row. The second
// result reports whether the row contains any of them.
func (t *Table) columnsOf(row []*html.Node) (map[string]int, bool) {
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
	writeVisible(&b, cell, headingBytesMax)
	if b.Len() >= headingBytesMax {
		return ""
	}
	return values.NormaliseLabel(b.String())
}

// Cells returns the cells of a row by heading, and the row with the headings. It returns nil for a row without a
// complete row of headings above. It omits a cell below two headings, because its price could belong to either. aligned
// is false if a cell below a heading is missing, or a number stands to the right of the headings. Then a cell was left
// out or inserted, and the other cells may belong to other headings.
func (t *Table) Cells(tr *html.Node) (cells map[string]*html.Node, heading *html.Node, aligned bool) {
	if t == nil {
		return nil, nil, false
	}
	index, known := t.rows[tr]
	if !known || t.headingRows[index] == nil || t.headingRows[index].columns == nil {
		return nil, nil, false
	}
	row, columns, headingCount := t.grid[index], t.headingRows[index].columns, map[*html.Node]int{}
	aligned = true
	for _, column := range columns {
		if column < len(row) {
			headingCount[row[column]]++
		} else {
			aligned = false
		}
	}
	cells, heading = map[string]*html.Node{}, t.headingRows[index].row
	for name, column := range columns {
		if column < len(row) && headingCount[row[column]] == 1 {
			cells[name] = row[column]
		}
	}
	surplus := row[min(len(t.grid[t.rows[heading]]), len(row)):]
	return cells, heading, aligned && !slices.ContainsFunc(surplus, isNumber)
}

var bareNumber = regexp.MustCompile(`(?i)^(?:[^\p{L}/:]|RD|US|DOP)*\p{Nd}(?:[^\p{L}/:]|DOP)*$`)

// isNumber reports whether a cell contains only a number, perhaps with signs and the currency. A date is not a number.
func isNumber(cell *html.Node) bool {
	return bareNumber.MatchString(strings.TrimSpace(VisibleText(cell)))
}
