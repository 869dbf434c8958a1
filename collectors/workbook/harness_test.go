package workbook

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/xuri/excelize/v2"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A small writer of XLS, for what the real files lack and for what no good file has.

func le16(n int) []byte { return binary.LittleEndian.AppendUint16(nil, uint16(n)) }
func le32(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }

func double(value float64) []byte {
	return binary.LittleEndian.AppendUint64(nil, math.Float64bits(value))
}

func biffRecord(kind int, data ...[]byte) []byte {
	all := slices.Concat(data...)
	return slices.Concat(le16(kind), le16(len(all)), all)
}

// biffCell is a record that begins with a place and a format.
func biffCell(kind, row, column int, data ...[]byte) []byte {
	return biffRecord(kind, append([][]byte{le16(row), le16(column), le16(0)}, data...)...)
}

func biffBegin(part int) []byte {
	return biffRecord(recordBOF, le16(biff8), le16(part), make([]byte, 12))
}
func biffEnd() []byte { return biffRecord(recordEOF) }

// narrow and wide encode a text in either width.
func narrow(text string) []byte {
	var out []byte
	for _, letter := range text {
		out = append(out, byte(letter))
	}
	return out
}

func wide(text string) []byte {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = append(out, le16(int(unit))...)
	}
	return out
}

// narrowText and wideText are whole texts with a length in two bytes.
func narrowText(text string) []byte {
	return slices.Concat(le16(len([]rune(text))), []byte{0}, narrow(text))
}

func wideText(text string) []byte {
	return slices.Concat(le16(len(utf16.Encode([]rune(text)))), []byte{flagUTF16}, wide(text))
}

func sharedTable(texts ...[]byte) []byte {
	return biffRecord(recordSST, le32(len(texts)), le32(len(texts)), slices.Concat(texts...))
}

type biffSheet struct {
	name  string
	kind  byte   // 0 = a worksheet
	cells []byte // its records, without begin and end
}

func biffStream(globals []byte, sheets ...biffSheet) []byte {
	entry := func(s biffSheet, start int) []byte {
		return biffRecord(recordBoundSheet, le32(start), []byte{0, s.kind, byte(len(utf16.Encode([]rune(s.name)))), flagUTF16}, wide(s.name))
	}
	length := len(biffBegin(globalsSubstream)) + len(globals) + len(biffEnd())
	for _, s := range sheets {
		length += len(entry(s, 0))
	}
	stream, parts := biffBegin(globalsSubstream), []byte(nil)
	for _, s := range sheets {
		stream = append(stream, entry(s, length+len(parts))...)
		parts = append(parts, slices.Concat(biffBegin(sheetSubstream), s.cells, biffEnd())...)
	}
	return slices.Concat(stream, globals, biffEnd(), parts)
}

func xls(globals []byte, cells ...[]byte) []byte {
	return ole(oleStream{"Workbook", biffStream(globals, biffSheet{name: "Diaria", cells: slices.Concat(cells...)})})
}

type oleStream struct {
	name string
	data []byte
}

const (
	sector     = 512
	miniSector = 64
	miniBelow  = 4096
	chainEnds  = -2
	noEntry    = -1
)

// oleWriter lays out a container: its sectors, and of each the next one in its chain.
type oleWriter struct {
	sectors bytes.Buffer
	next    []int
	mini    bytes.Buffer
	nextOf  []int // in the mini stream
}

// chain appends data as a chain of pieces of a size and gives its first one.
func chain(to *bytes.Buffer, next *[]int, size int, data []byte) int {
	first := len(*next)
	if len(data) == 0 {
		return chainEnds
	}
	for at := 0; at < len(data); at += size {
		piece := data[at:min(len(data), at+size)]
		to.Write(piece)
		to.Write(make([]byte, size-len(piece)))
		*next = append(*next, len(*next)+1)
	}
	(*next)[len(*next)-1] = chainEnds
	return first
}

func oleEntry(name string, kind byte, child, right, start, size int) []byte {
	entry := make([]byte, 128)
	copy(entry, wide(name))
	copy(entry[64:], le16(2*len(name)+2))
	entry[66], entry[67] = kind, 1
	copy(entry[68:], slices.Concat(le32(noEntry), le32(right), le32(child)))
	copy(entry[116:], slices.Concat(le32(start), le32(size)))
	return entry
}

// links is a table of chains, filled up to whole sectors.
func links(next []int) []byte {
	var table []byte
	for _, n := range next {
		table = append(table, le32(n)...)
	}
	for len(table)%sector != 0 {
		table = append(table, le32(noEntry)...)
	}
	return table
}

// ole is a container with these streams at its top.
func ole(streams ...oleStream) []byte {
	const file, root = 2, 5
	w := &oleWriter{}
	var directory []byte
	for i, s := range streams {
		start := 0
		if len(s.data) < miniBelow {
			start = chain(&w.mini, &w.nextOf, miniSector, s.data)
		} else {
			start = chain(&w.sectors, &w.next, sector, s.data)
		}
		right := i + 2
		if i == len(streams)-1 {
			right = noEntry
		}
		directory = append(directory, oleEntry(s.name, file, noEntry, right, start, len(s.data))...)
	}
	miniStart := chain(&w.sectors, &w.next, sector, w.mini.Bytes())
	miniTable := links(w.nextOf)
	miniTableStart := chain(&w.sectors, &w.next, sector, miniTable)
	directoryStart := chain(&w.sectors, &w.next, sector,
		append(oleEntry("Root Entry", root, 1, noEntry, miniStart, w.mini.Len()), directory...))
	tables := 1
	for tables*sector/4 < len(w.next)+tables {
		tables++
	}
	tableStart := len(w.next)
	for range tables {
		w.next = append(w.next, -3)
	}
	w.sectors.Write(links(w.next))

	header := make([]byte, sector)
	copy(header, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")
	copy(header[24:], slices.Concat(le16(0x3E), le16(3), le16(0xFFFE), le16(9), le16(6)))
	copy(header[44:], slices.Concat(le32(tables), le32(directoryStart)))
	copy(header[56:], slices.Concat(le32(miniBelow), le32(miniTableStart), le32(len(miniTable)/sector), le32(chainEnds), le32(0)))
	for i := range 109 {
		at := noEntry
		if i < tables {
			at = tableStart + i
		}
		copy(header[76+4*i:], le32(at))
	}
	return append(header, w.sectors.Bytes()...)
}

// xlsxPart is one part of a package that a test writes by hand.
type xlsxPart struct {
	name, text string
	raw        []byte // instead of the text: deflated data of a size, or stored as it is without one
	size       uint64
}

// pack is a zip package; small parts are not deflated, so that tests of thousands of packages are fast.
func pack(t testing.TB, parts ...xlsxPart) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, p := range parts {
		header, data, create := &zip.FileHeader{Name: p.name, Method: zip.Store}, []byte(p.text), w.CreateHeader
		switch {
		case p.size > 0:
			header.Method, header.CompressedSize64, header.UncompressedSize64 = zip.Deflate, uint64(len(p.raw)), p.size
			data, create = p.raw, w.CreateRaw
		case p.raw != nil:
			data = p.raw
		case len(p.text) > 4096:
			header.Method = zip.Deflate
		}
		file, err := create(header)
		must(t, err)
		_, err = file.Write(data)
		must(t, err)
	}
	must(t, w.Close())
	return out.Bytes()
}

const (
	xmlHead   = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	mainSpace = `xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"`
	idSpace   = `xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`
	kindSpace = `http://schemas.openxmlformats.org/officeDocument/2006/relationships/`
)

func relationsXML(relations ...string) string {
	return xmlHead + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` + strings.Join(relations, "") +
		`</Relationships>`
}

func relationXML(id, kind, target string) string {
	return `<Relationship Id="` + id + `" Type="` + kindSpace + kind + `" Target="` + target + `"/>`
}

func parts(sheet string, texts ...string) []xlsxPart {
	table := ""
	for _, text := range texts {
		var escaped bytes.Buffer
		_ = xml.EscapeText(&escaped, []byte(text))
		table += "<si><t>" + escaped.String() + "</t></si>"
	}
	return []xlsxPart{
		{name: "[Content_Types].xml", text: xmlHead + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`},
		{name: "_rels/.rels", text: relationsXML(relationXML("rId1", relationBook, "xl/workbook.xml"))},
		{name: "xl/workbook.xml", text: xmlHead + `<workbook ` + mainSpace + ` ` + idSpace + `><sheets><sheet name="Diaria" sheetId="1" r:id="rId1"/></sheets></workbook>`},
		{name: "xl/_rels/workbook.xml.rels", text: relationsXML(relationXML("rId1", relationSheet, "worksheets/sheet1.xml"),
			relationXML("rId2", relationSharedStrings, "sharedStrings.xml"))},
		{name: "xl/sharedStrings.xml", text: xmlHead + `<sst ` + mainSpace + ` count="9" uniqueCount="9">` + table + `</sst>`},
		{name: "xl/worksheets/sheet1.xml", text: xmlHead + `<worksheet ` + mainSpace + `><sheetData>` + sheet + `</sheetData></worksheet>`},
	}
}

// with replaces a part, or adds it, or leaves it out with "".
func with(all []xlsxPart, name, text string) []xlsxPart {
	all = slices.DeleteFunc(slices.Clone(all), func(p xlsxPart) bool { return p.name == name })
	if text == "" {
		return all
	}
	return append(all, xlsxPart{name: name, text: text})
}

func xlsx(t testing.TB, sheet string, texts ...string) []byte {
	return pack(t, parts(sheet, texts...)...)
}

func row(number int, cell string) string {
	return `<row r="` + strconv.Itoa(number) + `">` + cell + `</row>`
}

// dollarTable is a sheet as the central bank publishes it: a title, headings in row 3, one row a day, and a footnote.
func dollarTable() [][]any {
	return [][]any{
		{"Tasas de Cambio del dólar de Referencia del Mercado Spot"},
		nil,
		{"Año", "Mes", "Día", "Compra", "Venta", "*BOLIVAR FUERTE"},
		{2026, "Set", 15, 58.949999999999996, 59.33, 1e-7},
		{2026, "Set", 16, 58.9612, 59, true},
		{2026, "Set", 17, 58.95, 59.3355, false},
		nil,
		{"*Datos correspondientes al promedio simple diario"},
	}
}

func dollarTexts() [][]string {
	return [][]string{
		{"Tasas de Cambio del dólar de Referencia del Mercado Spot"},
		nil,
		{"Año", "Mes", "Día", "Compra", "Venta", "*BOLIVAR FUERTE"},
		{"2026", "Set", "15", "58.949999999999996", "59.33", "0.0000001"},
		{"2026", "Set", "16", "58.9612", "59", "TRUE"},
		{"2026", "Set", "17", "58.95", "59.3355", "FALSE"},
		nil,
		{"*Datos correspondientes al promedio simple diario"},
	}
}

// excelFile is a workbook with a table in its sheet "Diaria" that the library writes, perhaps with something more.
func excelFile(t testing.TB, table [][]any, more ...func(f *excelize.File) error) []byte {
	t.Helper()
	f := excelize.NewFile()
	defer f.Close()
	err := f.SetSheetName("Sheet1", "Diaria")
	for i, cells := range table {
		err = errors.Join(err, f.SetSheetRow("Diaria", cellName(i, 0), &cells))
	}
	for _, add := range more {
		err = errors.Join(err, add(f))
	}
	out, writing := f.WriteToBuffer()
	must(t, errors.Join(err, writing))
	return out.Bytes()
}

func dollarXLS() []byte {
	var texts, cells [][]byte
	for i, line := range dollarTable() {
		for j, value := range line {
			switch value := value.(type) {
			case string:
				cells = append(cells, biffCell(recordLabelSST, i, j, le32(len(texts))))
				texts = append(texts, wideText(value))
			case int:
				cells = append(cells, biffCell(recordRK, i, j, le32(value<<2|rkInteger)))
			case float64:
				cells = append(cells, biffCell(recordNumber, i, j, double(value)))
			case bool:
				truth := byte(0)
				if value {
					truth = 1
				}
				cells = append(cells, biffCell(recordBoolErr, i, j, []byte{truth, 0}))
			}
		}
	}
	return xls(sharedTable(texts...), cells...)
}

func contents(body []byte) (map[string][][]string, error) {
	book, err := Open(body)
	if err != nil {
		return nil, err
	}
	all := map[string][][]string{}
	for _, sheet := range book.Sheets() {
		if all[sheet], err = book.Rows(sheet); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// wantRefused wants a workbook, or a sheet of it, to fail with an error of a kind that says something.
func wantRefused(t *testing.T, body []byte, want error, says string) {
	t.Helper()
	if _, err := contents(body); !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %q and %q in it", err, want, says)
	}
}
