package workbook

import "encoding/binary"

// xlsBook is the stream of a BIFF8 workbook: the globals, with the names of the sheets and the shared strings, then
// one substream for each sheet.
type xlsBook struct {
	stream        []byte
	starts        []int // positions of the sheets in the stream
	sharedStrings []string
}

func openXLS(body []byte) (*Book, error) {
	stream, err := workbookStream(body)
	if err != nil {
		return nil, err
	}
	read := &recordReader{stream: stream}
	part, err := read.readBOF()
	if err != nil {
		return nil, err
	}
	if part != globalsSubstream {
		return nil, notWorkbook("the stream begins with a substream of kind %#04x, a workbook with %#04x", part, globalsSubstream)
	}
	book, sheets := &Book{}, &xlsBook{stream: stream}
	book.rows = sheets.rows
	for {
		r, err := read.next()
		if err != nil {
			return nil, err
		}
		switch r.kind {
		case recordEOF:
			return book, nil
		case recordFilePass:
			return nil, damaged("it is encrypted: it needs a password")
		case recordBoundSheet:
			err = sheets.addSheet(book, r)
		case recordSST:
			err = sheets.addSharedStrings(read, r)
		}
		if err != nil {
			return nil, err
		}
	}
}

// addSheet adds the name and position of a worksheet. Charts and macro sheets have no table and are skipped.
func (b *xlsBook) addSheet(book *Book, r record) error {
	const (
		kindAt    = 5
		nameAt    = 6
		worksheet = 0
	)
	if len(r.data) < nameAt {
		return r.tooShort()
	}
	if r.data[kindAt] != worksheet {
		return nil
	}
	name, err := (&stringReader{first: r, chunks: [][]byte{r.data[nameAt:]}}).readString(1)
	if err != nil {
		return err
	}
	start := int64(binary.LittleEndian.Uint32(r.data))
	if start >= int64(len(b.stream)) {
		return damaged("sheet %q should begin at byte %d, the stream has %d: truncated?", name, start, len(b.stream))
	}
	if len(b.starts) == sheetsMax {
		return tooLarge("it has more than %d sheets", sheetsMax)
	}
	book.sheets = append(book.sheets, name)
	b.starts = append(b.starts, int(start))
	return nil
}

func (b *xlsBook) addSharedStrings(read *recordReader, r record) error {
	if b.sharedStrings != nil {
		return damaged("%s is a second table of shared strings", r.describe())
	}
	data, err := read.continued(r)
	if err != nil {
		return err
	}
	b.sharedStrings, err = readSharedStrings(r, data)
	return err
}

// rows reads one sheet. Embedded charts, which are substreams within it, are skipped.
func (b *xlsBook) rows(sheet int) ([][]string, error) {
	read := &recordReader{stream: b.stream, offset: b.starts[sheet]}
	part, err := read.readBOF()
	if err != nil {
		return nil, err
	}
	if part != sheetSubstream {
		return nil, damaged("at byte %d is a substream of kind %#04x, a worksheet has %#04x", b.starts[sheet], part, sheetSubstream)
	}
	cells := &cellReader{records: read, sharedStrings: b.sharedStrings}
	for depth := 1; depth > 0; {
		r, err := read.next()
		if err != nil {
			return nil, err
		}
		switch {
		case r.kind == recordBOF:
			depth++
		case r.kind == recordEOF:
			depth--
		case depth == 1:
			if err := cells.take(r); err != nil {
				return nil, err
			}
		}
	}
	return cells.finish()
}

// cellReader turns the records of a sheet into cells.
type cellReader struct {
	records       *recordReader
	sharedStrings []string
	grid          grid
	pending       *record // a formula whose text follows in a record of its own
}

// take handles one record of a sheet.
func (c *cellReader) take(r record) error {
	switch r.kind {
	case recordFormula, recordMulRK, recordRString, recordLabelSST, recordNumber, recordLabel, recordBoolErr, recordRK:
		return c.cell(r)
	case recordString:
		return c.formulaText(r)
	}
	return nil
}

// Offsets in the record of a cell, which begins with its row.
const (
	cellColumnAt = 2
	cellValueAt  = 6
)

// cell reads a record that begins with row, column and format.
func (c *cellReader) cell(r record) error {
	if c.pending != nil {
		return damaged("the text of the formula in %s is missing", c.pending.describe())
	}
	if len(r.data) < cellValueAt {
		return r.tooShort()
	}
	row := int(binary.LittleEndian.Uint16(r.data))
	column := int(binary.LittleEndian.Uint16(r.data[cellColumnAt:]))
	if r.kind == recordMulRK {
		return c.mulRK(r, row, column)
	}
	text, err := c.value(r, r.data[cellValueAt:])
	if err != nil {
		return err
	}
	return c.grid.put(row, column, text)
}

func (c *cellReader) value(r record, value []byte) (string, error) {
	if len(value) < valueBytes(r.kind) {
		return "", r.tooShort()
	}
	switch r.kind {
	case recordRK:
		return r.number(rkText(binary.LittleEndian.Uint32(value)))
	case recordNumber:
		return r.number(doubleText(binary.LittleEndian.Uint64(value)))
	case recordFormula:
		return c.formula(r, value)
	case recordLabelSST:
		index := int64(binary.LittleEndian.Uint32(value))
		if index >= int64(len(c.sharedStrings)) {
			return "", damaged("%s wants shared string %d, there are %d", r.describe(), index, len(c.sharedStrings))
		}
		return c.sharedStrings[index], nil
	case recordBoolErr:
		return r.boolError(value[0], value[1] != 0)
	}
	return c.label(r, value)
}

// valueBytes is the minimum size of a cell's value; strings have a length of their own.
func valueBytes(kind int) int {
	switch kind {
	case recordNumber, recordFormula:
		return 8
	case recordRK, recordLabelSST:
		return 4
	case recordBoolErr:
		return 2
	}
	return 0
}

// label reads a string that is stored in the cell itself.
func (c *cellReader) label(r record, value []byte) (string, error) {
	data, err := c.records.continued(r)
	if err != nil {
		return "", err
	}
	data[0] = value
	return (&stringReader{first: r, chunks: data}).readString(2)
}

// mulRK reads adjacent RK numbers: a format and a number each, then the last column.
func (c *cellReader) mulRK(r record, row, column int) error {
	const each, numberAt = 6, 2
	values := r.data[cellColumnAt+2:]
	if len(values)%each != 2 {
		return damaged("%s has %d bytes, which end within a number", r.describe(), len(r.data))
	}
	values, last := values[:len(values)-2], int(binary.LittleEndian.Uint16(values[len(values)-2:]))
	if column+len(values)/each-1 != last {
		return damaged("%s has %d numbers for the columns %d to %d", r.describe(), len(values)/each, column, last)
	}
	for ; len(values) > 0; values, column = values[each:], column+1 {
		text, err := r.number(rkText(binary.LittleEndian.Uint32(values[numberAt:])))
		if err != nil {
			return err
		}
		if err := c.grid.put(row, column, text); err != nil {
			return err
		}
	}
	return nil
}

// formula reads the result of a formula when the file was saved: a number, or another type if the last two bytes are
// FFFF.
func (c *cellReader) formula(r record, value []byte) (string, error) {
	const (
		isText  = 0
		isBool  = 1
		isError = 2
		isEmpty = 3
	)
	if binary.LittleEndian.Uint16(value[6:]) != 0xFFFF {
		return r.number(doubleText(binary.LittleEndian.Uint64(value)))
	}
	switch value[0] {
	case isText:
		c.pending = &r
		return "", nil
	case isBool, isError:
		return r.boolError(value[2], value[0] == isError)
	case isEmpty:
		return "", nil
	}
	return "", damaged("%s has a value of kind %d, which does not exist", r.describe(), value[0])
}

// formulaText reads the text result of the preceding formula.
func (c *cellReader) formulaText(r record) error {
	if c.pending == nil {
		return damaged("%s is the text of a formula that is not there", r.describe())
	}
	formula := c.pending.data
	c.pending = nil
	text, err := c.label(r, r.data)
	if err != nil {
		return err
	}
	return c.grid.put(int(binary.LittleEndian.Uint16(formula)), int(binary.LittleEndian.Uint16(formula[cellColumnAt:])), text)
}

// finish returns the rows at the end of the sheet.
func (c *cellReader) finish() ([][]string, error) {
	if c.pending != nil {
		return nil, damaged("the text of the formula in %s is missing", c.pending.describe())
	}
	return c.grid.rows, nil
}

func (r record) number(text string, ok bool) (string, error) {
	if !ok {
		return "", damaged("%s holds no number", r.describe())
	}
	return text, nil
}

// boolError returns the text of a boolean or an error value.
func (r record) boolError(value byte, isError bool) (string, error) {
	names := map[byte]string{0: "FALSE", 1: "TRUE"}
	if isError {
		names = map[byte]string{0x00: "#NULL!", 0x07: "#DIV/0!", 0x0F: "#VALUE!", 0x17: "#REF!", 0x1D: "#NAME?", 0x24: "#NUM!", 0x2A: "#N/A",
			0x2B: "#GETTING_DATA"}
	}
	name, ok := names[value]
	if !ok {
		return "", damaged("%s has the value %d, which is neither a boolean nor an error", r.describe(), value)
	}
	return name, nil
}
