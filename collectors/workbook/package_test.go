package workbook

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
)

// xlsxPart is one part of a package that a test writes by hand.
type xlsxPart struct{ name, text string }

// pack is a zip package; small parts are not deflated, so that tests of thousands of packages are fast.
func pack(t testing.TB, parts ...xlsxPart) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, p := range parts {
		method := zip.Store
		if len(p.text) > 4096 {
			method = zip.Deflate
		}
		file, err := w.CreateHeader(&zip.FileHeader{Name: p.name, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(file, p.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
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

// parts are the parts of a small workbook with one sheet, "Diaria".
func parts(sheet string, texts ...string) []xlsxPart {
	table := ""
	for _, text := range texts {
		var escaped bytes.Buffer
		_ = xml.EscapeText(&escaped, []byte(text))
		table += "<si><t>" + escaped.String() + "</t></si>"
	}
	return []xlsxPart{
		{"[Content_Types].xml", xmlHead + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`},
		{"_rels/.rels", relationsXML(relationXML("rId1", relationBook, "xl/workbook.xml"))},
		{"xl/workbook.xml", xmlHead + `<workbook ` + mainSpace + ` ` + idSpace + `><sheets><sheet name="Diaria" sheetId="1" r:id="rId1"/></sheets></workbook>`},
		{"xl/_rels/workbook.xml.rels", relationsXML(relationXML("rId1", relationSheet, "worksheets/sheet1.xml"),
			relationXML("rId2", relationTexts, "sharedStrings.xml"))},
		{"xl/sharedStrings.xml", xmlHead + `<sst ` + mainSpace + ` count="9" uniqueCount="9">` + table + `</sst>`},
		{"xl/worksheets/sheet1.xml", xmlHead + `<worksheet ` + mainSpace + `><sheetData>` + sheet + `</sheetData></worksheet>`},
	}
}

// with replaces a part, or adds it, or leaves it out with "".
func with(all []xlsxPart, name, text string) []xlsxPart {
	all = slices.DeleteFunc(slices.Clone(all), func(p xlsxPart) bool { return p.name == name })
	if text == "" {
		return all
	}
	return append(all, xlsxPart{name, text})
}

func xlsx(t testing.TB, sheet string, texts ...string) []byte {
	return pack(t, parts(sheet, texts...)...)
}

// row is a row with one cell, as XML.
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

// excelFile is a workbook that the library writes.
func excelFile(t testing.TB, fill func(f *excelize.File)) []byte {
	t.Helper()
	f := excelize.NewFile()
	defer f.Close()
	if err := f.SetSheetName("Sheet1", "Diaria"); err != nil {
		t.Fatal(err)
	}
	fill(f)
	out, err := f.WriteToBuffer()
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// fillTable writes a table into a sheet.
func fillTable(t testing.TB, f *excelize.File, sheet string, table [][]any) {
	t.Helper()
	for i, cells := range table {
		if err := f.SetSheetRow(sheet, cellName(i, 0), &cells); err != nil {
			t.Fatal(err)
		}
	}
}

// dollarXLS is dollarTable as XLS.
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
				cells = append(cells, biffCell(recordBoolError, i, j, []byte{truth, 0}))
			}
		}
	}
	return xls(sharedTable(texts...), cells...)
}
