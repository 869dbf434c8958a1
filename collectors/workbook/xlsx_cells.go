package workbook

import (
	"encoding/xml"
	"strconv"
	"strings"
	"unicode/utf16"
)

// richText is the text of a cell or a shared string, without formats and without phonetic text (rPh).
type richText string

// UnmarshalXML implements xml.Unmarshaler.
func (t *richText) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	var parts struct {
		Plain []string `xml:"t"`
		Runs  []string `xml:"r>t"`
	}
	err := d.DecodeElement(&parts, &start)
	*t = richText(unescape(strings.Join(append(parts.Plain, parts.Runs...), "")))
	return err
}

// sheetCells decodes the rows of a sheet.
type sheetCells struct {
	sharedStrings []richText
	grid          grid
	row, column   int // indexes of the last decoded row and cell
}

// rowCells decodes the cells of the current row.
type rowCells sheetCells

// UnmarshalXML decodes one row. A row without a number comes directly after the previous row.
func (s *sheetCells) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	s.row, s.column = s.row+1, -1
	for _, a := range start.Attr {
		if a.Name.Local != "r" || a.Value == "" {
			continue
		}
		row, ok := parseRowNumber(a.Value)
		if !ok {
			return damaged("a row has the number %.40q", a.Value)
		}
		s.row = row
	}
	return d.DecodeElement(&struct {
		Cells *rowCells `xml:"c"`
	}{(*rowCells)(s)}, &start)
}

// UnmarshalXML decodes one cell. A cell without a name comes directly after the previous cell.
func (r *rowCells) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	var cell struct {
		Name   string `xml:"r,attr"`
		Kind   string `xml:"t,attr"`
		Values []struct {
			Text  string     `xml:",chardata"`
			Inner []struct{} `xml:",any"`
		} `xml:"v"`
		Inline []richText `xml:"is"`
	}
	if err := d.DecodeElement(&cell, &start); err != nil {
		return err
	}
	r.column++
	if cell.Name != "" {
		row, column, ok := parseCellName(cell.Name)
		if !ok || row != r.row {
			return damaged("row %d has a cell named %.40q", r.row+1, cell.Name)
		}
		r.column = column
	}
	var text string
	switch { // the digits of two XML elements must not be joined to one number
	case len(cell.Values) > 1 || len(cell.Inline) > 1 || len(cell.Values) == 1 && len(cell.Values[0].Inner) > 0:
		return damaged("cell %s has a value in several elements", cellName(r.row, r.column))
	case cell.Kind == "inlineStr" && len(cell.Inline) == 1:
		text = string(cell.Inline[0])
	case cell.Kind != "inlineStr" && len(cell.Values) == 1:
		var err error
		if text, err = (*sheetCells)(r).cellText(cell.Kind, cell.Values[0].Text); err != nil {
			return err
		}
	}
	return r.grid.put(r.row, r.column, text)
}

// cellText returns the text of a cell with a value. kind is the attribute t of the cell. A value that is invalid for
// its kind is an error, because a wrong guess would publish a wrong rate.
func (s *sheetCells) cellText(kind, value string) (string, error) {
	switch kind {
	case "str": // text result of a formula
		return unescape(value), nil
	case "e", "d": // name of an error; ISO date
		return value, nil
	}
	value = strings.TrimSpace(value)
	if value == "" {
		return "", nil
	}
	switch kind {
	case "", "n":
		if text, ok := numberText(value); ok {
			return text, nil
		}
		return "", damaged("cell %s should be a number and holds %.40q", cellName(s.row, s.column), value)
	case "s":
		index, err := strconv.ParseUint(value, 10, 32)
		if err != nil || index >= uint64(len(s.sharedStrings)) {
			return "", damaged("cell %s wants shared string %.40q, there are %d", cellName(s.row, s.column), value, len(s.sharedStrings))
		}
		return string(s.sharedStrings[index]), nil
	case "b":
		switch value {
		case "1", "true":
			return "TRUE", nil
		case "0", "false":
			return "FALSE", nil
		}
		return "", damaged("cell %s should be a boolean and holds %.40q", cellName(s.row, s.column), value)
	}
	return "", damaged("cell %s is of kind %.40q, which does not exist", cellName(s.row, s.column), kind)
}

// unescape replaces escapes such as _x000D_ by their characters. XLSX escapes characters that XML can't contain.
func unescape(text string) string {
	const escapeBytes = len("_x000D_")
	var out []byte
	for remaining := text; ; {
		index := strings.Index(remaining, "_x")
		if index < 0 {
			if out == nil {
				return text
			}
			return string(append(out, remaining...))
		}
		end := index + escapeBytes
		if end <= len(remaining) && remaining[end-1] == '_' {
			if unit, err := strconv.ParseUint(remaining[index+2:end-1], 16, 16); err == nil {
				out = append(out, remaining[:index]...)
				out = append(out, string(utf16.Decode([]uint16{uint16(unit)}))...)
				remaining = remaining[end:]
				continue
			}
		}
		out = append(out, remaining[:index+2]...)
		remaining = remaining[index+2:]
	}
}
