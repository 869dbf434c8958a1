package workbook

import "encoding/binary"

// xlsBook is a BIFF8 workbook. The first substream of its stream, the globals, has the names of the sheets and the
// shared strings, which are texts that cells refer to by index. After it there is one substream for each sheet.
type xlsBook struct {
	stream        []byte
	starts        []int // positions of the worksheets in stream
	sharedStrings []string
}

func openXLS(body []byte) (*Book, error) {
	stream, err := workbookStream(body)
	if err != nil {
		return nil, err
	}
	records := &recordReader{stream: stream}
	substream, err := records.readBOF()
	if err != nil {
		return nil, err
	}
	if substream != globalsSubstream {
		return nil, notWorkbook("the stream begins with a substream of kind %#04x, a workbook with %#04x", substream, globalsSubstream)
	}
	book, sheets := &Book{}, &xlsBook{stream: stream}
	book.rows = sheets.rows
	for {
		r, err := records.next()
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
			err = sheets.addSharedStrings(records, r)
		}
		if err != nil {
			return nil, err
		}
	}
}

// addSheet adds the worksheet of a BoundSheet record. It skips chart sheets and macro sheets.
func (b *xlsBook) addSheet(book *Book, r record) error {
	const (
		kindOffset = 5
		nameOffset = 6
		worksheet  = 0
	)
	if len(r.data) < nameOffset {
		return r.tooShort()
	}
	if r.data[kindOffset] != worksheet {
		return nil
	}
	name, err := (&stringReader{first: r, chunks: [][]byte{r.data[nameOffset:]}}).readString(1)
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

func (b *xlsBook) addSharedStrings(records *recordReader, r record) error {
	if b.sharedStrings != nil {
		return damaged("%s is a second table of shared strings", r.describe())
	}
	data, err := records.continued(r)
	if err != nil {
		return err
	}
	b.sharedStrings, err = readSharedStrings(r, data)
	return err
}

// rows reads one sheet. It skips embedded charts, which are nested substreams.
func (b *xlsBook) rows(sheet int) ([][]string, error) {
	records := &recordReader{stream: b.stream, offset: b.starts[sheet]}
	substream, err := records.readBOF()
	if err != nil {
		return nil, err
	}
	if substream != sheetSubstream {
		return nil, damaged("at byte %d is a substream of kind %#04x, a worksheet has %#04x", b.starts[sheet], substream, sheetSubstream)
	}
	cells := &cellReader{records: records, sharedStrings: b.sharedStrings}
	for depth := 1; depth > 0; {
		r, err := records.next()
		if err != nil {
			return nil, err
		}
		switch {
		case r.kind == recordBOF:
			depth++
		case r.kind == recordEOF:
			depth--
		case depth == 1:
			if err := cells.readRecord(r); err != nil {
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
	pending       *record // the formula whose text result is in the next record; nil = none
}

func (c *cellReader) readRecord(r record) error {
	switch r.kind {
	case recordFormula, recordMulRK, recordRString, recordLabelSST, recordNumber, recordLabel, recordBoolErr, recordRK:
		return c.readCell(r)
	case recordString:
		return c.readFormulaText(r)
	}
	return nil
}

// Offsets in the record of a cell. Such a record has a row (at offset 0), a column, a format and a value.
const (
	cellColumnOffset = 2
	cellValueOffset  = 6
)

func (c *cellReader) readCell(r record) error {
	if c.pending != nil {
		return damaged("the text of the formula in %s is missing", c.pending.describe())
	}
	if len(r.data) < cellValueOffset {
		return r.tooShort()
	}
	row := int(binary.LittleEndian.Uint16(r.data))
	column := int(binary.LittleEndian.Uint16(r.data[cellColumnOffset:]))
	if r.kind == recordMulRK {
		return c.mulRK(r, row, column)
	}
	text, err := c.value(r, r.data[cellValueOffset:])
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

// valueBytes returns the minimum size of the value in a record. It returns 0 for strings, which stringReader checks.
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

// label reads a string that is stored in the record of the cell, and not among the shared strings.
func (c *cellReader) label(r record, value []byte) (string, error) {
	data, err := c.records.continued(r)
	if err != nil {
		return "", err
	}
	data[0] = value
	return (&stringReader{first: r, chunks: data}).readString(2)
}

// mulRK reads a record with the numbers of adjacent cells in the compact form RK. Before each number is its format. The
// record ends with the index of the last column.
func (c *cellReader) mulRK(r record, row, column int) error {
	const entryBytes, numberOffset = 6, 2
	values := r.data[cellColumnOffset+2:]
	if len(values)%entryBytes != 2 {
		return damaged("%s has %d bytes, which end within a number", r.describe(), len(r.data))
	}
	values, lastColumn := values[:len(values)-2], int(binary.LittleEndian.Uint16(values[len(values)-2:]))
	if column+len(values)/entryBytes-1 != lastColumn {
		return damaged("%s has %d numbers for the columns %d to %d", r.describe(), len(values)/entryBytes, column, lastColumn)
	}
	for ; len(values) > 0; values, column = values[entryBytes:], column+1 {
		text, err := r.number(rkText(binary.LittleEndian.Uint32(values[numberOffset:])))
		if err != nil {
			return err
		}
		if err := c.grid.put(row, column, text); err != nil {
			return err
		}
	}
	return nil
}

// formula reads the saved result of a formula. If the result is not a number, its final two bytes are 0xFFFF.
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

// readFormulaText reads a String record: the text result of the pending formula.
func (c *cellReader) readFormulaText(r record) error {
	if c.pending == nil {
		return damaged("%s is the text of a formula that is not there", r.describe())
	}
	formula := c.pending.data
	c.pending = nil
	text, err := c.label(r, r.data)
	if err != nil {
		return err
	}
	return c.grid.put(int(binary.LittleEndian.Uint16(formula)), int(binary.LittleEndian.Uint16(formula[cellColumnOffset:])), text)
}

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

// boolError returns the text of a cell with a boolean or, with isError, an error such as #N/A.
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
