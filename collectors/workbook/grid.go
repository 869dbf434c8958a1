package workbook

import (
	"slices"
	"strconv"
)

// grid collects the cells of one sheet and holds them against the limits. Its memory follows from what was put in, never
// from what a file says of its own size.
type grid struct {
	rows  [][]string
	cells int // positions up to the last cell of each row
}

// put sets one cell; row and column count from 0. Cells may come in any order, but no two of them for one place: nobody can
// say which one is meant.
func (g *grid) put(row, column int, text string) error {
	switch {
	case text == "":
		return nil
	case row >= rowsMax:
		return tooLarge("cell %s is beyond the last row that is read, %d", cellName(row, column), rowsMax)
	case column >= columnsMax:
		return tooLarge("cell %s is beyond the last column that is read, %d", cellName(row, column), columnsMax)
	case len(text) > textBytesMax:
		return tooLarge("cell %s has %d bytes of text, the most is %d", cellName(row, column), len(text), textBytesMax)
	}
	if missing := row + 1 - len(g.rows); missing > 0 {
		g.rows = append(g.rows, make([][]string, missing)...)
	}
	cells := g.rows[row]
	if missing := column + 1 - len(cells); missing > 0 {
		if g.cells += missing; g.cells > cellsMax {
			return tooLarge("at %s there are more than %d cells", cellName(row, column), cellsMax)
		}
		cells = slices.Grow(cells, missing)[:column+1] // what grows is empty
		g.rows[row] = cells
	}
	if cells[column] != "" {
		return damaged("cell %s has two values, %.40q and %.40q", cellName(row, column), cells[column], text)
	}
	cells[column] = text
	return nil
}

// cellName is the name of a place as people write it: A1, AB12.
func cellName(row, column int) string {
	letters := ""
	for n := column + 1; n > 0; n = (n - 1) / 26 {
		letters = string(rune('A'+(n-1)%26)) + letters
	}
	return letters + strconv.Itoa(row+1)
}

// parseCellName reads what cellName writes. It says false for any other text, and for places beyond those that XLSX knows.
func parseCellName(name string) (row, column int, ok bool) {
	letters := 0
	for letters < len(name) && letters < 3 && name[letters] >= 'A' && name[letters] <= 'Z' {
		column = column*26 + int(name[letters]-'A') + 1
		letters++
	}
	if row, ok = parseRowNumber(name[letters:]); !ok || letters == 0 {
		return 0, 0, false
	}
	return row, column - 1, true
}

// parseRowNumber reads the number of a row, from 1, as index from 0.
func parseRowNumber(text string) (int, bool) {
	if len(text) == 0 || len(text) > 7 || text[0] < '1' || text[0] > '9' {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n - 1, err == nil
}
