package workbook

import (
	"encoding/xml"
	"strconv"
	"strings"
	"unicode/utf16"
)

// collected is a text that comes in several pieces.
type collected struct{ letters []byte }

func (c *collected) add(letters []byte) error {
	if len(c.letters)+len(letters) > textBytesMax {
		return tooLarge("a text of more than %d bytes", textBytesMax)
	}
	c.letters = append(c.letters, letters...)
	return nil
}

// take gives the text and begins a new one.
func (c *collected) take() string {
	text := string(c.letters)
	c.letters = c.letters[:0]
	return text
}

// textReader reads the shared texts. A text is plain, or a row of runs with formats of their own; readings of Far Eastern
// letters (rPh) are no part of it.
type textReader struct {
	texts []string
	item  collected
}

func (t *textReader) open([]string, []xml.Attr) error { return nil }

func (t *textReader) text(path []string, letters []byte) error {
	if under(path, "sst", "si", "t") || under(path, "sst", "si", "r", "t") {
		return t.item.add(letters)
	}
	return nil
}

func (t *textReader) close(path []string) error {
	if !under(path, "sst", "si") {
		return nil
	}
	if len(t.texts) == stringsMax {
		return tooLarge("more than %d shared texts", stringsMax)
	}
	t.texts = append(t.texts, unescape(t.item.take()))
	return nil
}

// sheetCells reads the cells of a sheet.
type sheetCells struct {
	texts         []string
	grid          grid
	row, column   int // of the cell at hand, from 0
	kind          string
	hasValue      bool
	value, inline collected
}

// cellDepth is the length of the path of a cell.
const cellDepth = 4

func (s *sheetCells) open(path []string, attributes []xml.Attr) error {
	switch {
	case under(path, "worksheet", "sheetData", "row"):
		return s.beginRow(attribute(attributes, "r"))
	case under(path, "worksheet", "sheetData", "row", "c"):
		s.kind, s.hasValue = attribute(attributes, "t"), false
		return s.beginCell(attribute(attributes, "r"))
	case len(path) > cellDepth && path[cellDepth] == "v" && under(path[:cellDepth], "worksheet", "sheetData", "row", "c"):
		if s.hasValue { // its digits and those before must not become one number
			return damaged("cell %s has a value in several elements", cellName(s.row, s.column))
		}
		s.hasValue = true
	}
	return nil
}

// beginRow finds out which row it is: a row that says nothing follows the one before.
func (s *sheetCells) beginRow(number string) error {
	s.row, s.column = s.row+1, -1
	if number == "" {
		return nil
	}
	row, ok := rowNumber(number)
	if !ok {
		return damaged("a row has the number %.40q", number)
	}
	s.row = row
	return nil
}

// beginCell finds out which cell it is: a cell that says nothing follows the one before.
func (s *sheetCells) beginCell(name string) error {
	s.column++
	if name == "" {
		return nil
	}
	row, column, ok := cellPlace(name)
	if !ok || row != s.row {
		return damaged("row %d has a cell of the name %.40q", s.row+1, name)
	}
	s.column = column
	return nil
}

func (s *sheetCells) text(path []string, letters []byte) error {
	if len(path) <= cellDepth || !under(path[:cellDepth], "worksheet", "sheetData", "row", "c") {
		return nil
	}
	switch inner := path[cellDepth:]; {
	case under(inner, "v"):
		return s.value.add(letters)
	case under(inner, "is", "t"), under(inner, "is", "r", "t"):
		return s.inline.add(letters)
	}
	return nil
}

func (s *sheetCells) close(path []string) error {
	if !under(path, "worksheet", "sheetData", "row", "c") {
		return nil
	}
	text, err := s.cellText(s.value.take(), s.inline.take())
	if err != nil {
		return err
	}
	return s.grid.put(s.row, s.column, text)
}

// cellText is the text of a cell by its kind. Every value that its kind does not allow is an error: a wrong guess would be a
// wrong rate.
func (s *sheetCells) cellText(value, inline string) (string, error) {
	switch s.kind {
	case "inlineStr":
		return unescape(inline), nil
	case "str": // of a formula
		return unescape(value), nil
	case "e", "d": // an error's name; a date in ISO form
		return value, nil
	}
	value = strings.TrimSpace(value)
	if value == "" {
		return "", nil
	}
	switch s.kind {
	case "", "n":
		if text, ok := numberText(value); ok {
			return text, nil
		}
		return "", damaged("cell %s should be a number and holds %.40q", cellName(s.row, s.column), value)
	case "s":
		index, err := strconv.ParseUint(value, 10, 32)
		if err != nil || index >= uint64(len(s.texts)) {
			return "", damaged("cell %s wants shared text %.40q, there are %d", cellName(s.row, s.column), value, len(s.texts))
		}
		return s.texts[index], nil
	case "b":
		switch value {
		case "1", "true":
			return "TRUE", nil
		case "0", "false":
			return "FALSE", nil
		}
		return "", damaged("cell %s should be a truth value and holds %.40q", cellName(s.row, s.column), value)
	}
	return "", damaged("cell %s is of kind %.40q, which does not exist", cellName(s.row, s.column), s.kind)
}

// unescape turns _x000D_, the form in which XLSX writes what XML can't hold, back into the letter.
func unescape(text string) string {
	const escapeBytes = len("_x000D_")
	var out []byte
	for rest := text; ; {
		at := strings.Index(rest, "_x")
		if at < 0 {
			if out == nil {
				return text
			}
			return string(append(out, rest...))
		}
		end := at + escapeBytes
		if end <= len(rest) && rest[end-1] == '_' {
			if unit, err := strconv.ParseUint(rest[at+2:end-1], 16, 16); err == nil {
				out = append(out, rest[:at]...)
				out = append(out, string(utf16.Decode([]uint16{uint16(unit)}))...)
				rest = rest[end:]
				continue
			}
		}
		out = append(out, rest[:at+2]...)
		rest = rest[at+2:]
	}
}
