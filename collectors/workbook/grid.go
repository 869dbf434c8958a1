package workbook

import (
	"slices"
	"strconv"
)

// grid collects the cells of one sheet and checks the limits.
type grid struct {
	rows  [][]string
	cells int // sum of the lengths of rows
}

// put sets one cell; row and column count from 0. Cells may come in any order. A second text for a cell is an error.
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
	if added := row + 1 - len(g.rows); added > 0 {
		g.rows = append(g.rows, make([][]string, added)...)
	}
	cells := g.rows[row]
	if added := column + 1 - len(cells); added > 0 {
		if g.cells += added; g.cells > cellsMax {
			return tooLarge("at %s there are more than %d cells", cellName(row, column), cellsMax)
		}
		cells = slices.Grow(cells, added)[:column+1] // the new cells are empty, because rows never get shorter
		g.rows[row] = cells
	}
	if cells[column] != "" {
		return damaged("cell %s has two values, %.40q and %.40q", cellName(row, column), cells[column], text)
	}
	cells[column] = text
	return nil
}

// cellName returns the name of a cell in spreadsheets, such as A1 or AB12. row and column count from 0.
func cellName(row, column int) string {
	letters := ""
	for n := column + 1; n > 0; n = (n - 1) / 26 {
		letters = string(rune('A'+(n-1)%26)) + letters
	}
	return letters + strconv.Itoa(row+1)
}

// parseCellName is the inverse of cellName. ok is false for any other text, and for columns after ZZZ.
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

// parseRowNumber parses the number of a row, which counts from 1. It returns the index of the row, which counts from 0.
func parseRowNumber(text string) (int, bool) {
	if len(text) == 0 || len(text) > 7 || text[0] < '1' || text[0] > '9' {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n - 1, err == nil
}
