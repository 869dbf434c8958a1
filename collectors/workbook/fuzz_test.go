package workbook

import (
	"slices"
	"strings"
	"testing"
)

// checkBook reads a workbook as a stranger's: the answer is an error of a known kind, or rows within the limits that end with
// their last cell.
func checkBook(t *testing.T, body []byte) {
	t.Helper()
	all, err := contents(body)
	if err != nil {
		if !isOurs(err) {
			t.Errorf("an error of no kind: %v", err)
		}
		return
	}
	for sheet, rows := range all {
		cells := 0
		for i, row := range rows {
			cells += len(row)
			if len(row) > columnsMax || len(row) > 0 && row[len(row)-1] == "" {
				t.Errorf("sheet %q, row %d has %d cells and ends with an empty one or beyond the limit", sheet, i+1, len(row))
			}
			for _, text := range row {
				if len(text) > textBytesMax {
					t.Errorf("sheet %q, row %d has a text of %d bytes", sheet, i+1, len(text))
				}
			}
		}
		if len(rows) > rowsMax || cells > cellsMax || len(rows) > 0 && len(rows[len(rows)-1]) == 0 {
			t.Errorf("sheet %q has %d rows, %d cells, or an empty row at its end", sheet, len(rows), cells)
		}
	}
}

// FuzzXLS changes the container and what is in it.
func FuzzXLS(f *testing.F) {
	f.Add(dollarXLS())
	f.Add(xls(nil, biffRecord(recordMulRK, le16(0), le16(1), le16(0), le32(5029<<2|3), le16(0), le32(2), le16(2))))
	f.Add(ole(oleStream{"EncryptedPackage", make([]byte, 64)}))
	f.Fuzz(func(t *testing.T, body []byte) {
		checkBook(t, append([]byte(oleSignature), strings.TrimPrefix(string(body), oleSignature)...))
	})
}

// FuzzBIFF changes only the records, which the container always delivers.
func FuzzBIFF(f *testing.F) {
	f.Add(biffStream(sharedTable(narrowText("Año"), wideText("Día")), biffSheet{name: "A", cells: slices.Concat(
		biffCell(recordLabelSST, 0, 0, le32(1)), biffCell(recordLabel, 0, 1, le16(6), []byte{0}, narrow("Com")),
		biffRecord(recordContinue, []byte{1}, wide("pra")), biffCell(recordBoolError, 0, 2, []byte{1, 0}), biffCell(recordNumber, 0, 3, double(58.95)),
		biffCell(recordFormula, 1, 0, []byte{0, 0, 0, 0, 0, 0, 0xFF, 0xFF}, make([]byte, 8)), biffRecord(recordString, narrowText("Venta")))}))
	for _, s := range everyText() {
		f.Add(biffStream(sharedTable(slices.Concat(s.head, s.letters, s.end))))
	}
	f.Fuzz(func(t *testing.T, stream []byte) { checkBook(t, ole(oleStream{"Workbook", stream})) })
}

// FuzzXLSX changes the package. Its checksums let few changes through to the parts: see FuzzXLSX_Parts.
func FuzzXLSX(f *testing.F) {
	f.Add(dollarXLSX(f))
	f.Add(xlsx(f, row(1, `<c r="A1" t="s"><v>0</v></c>`), "Año"))
	f.Fuzz(func(t *testing.T, body []byte) {
		checkBook(t, append([]byte(zipSignature), strings.TrimPrefix(string(body), zipSignature)...))
	})
}

// FuzzXLSX_Parts changes the parts in a good package.
func FuzzXLSX_Parts(f *testing.F) {
	const sheet, texts, book, rels = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
	add := func(cells string) {
		byName := map[string]string{}
		for _, p := range parts(cells, "Año", "_x0041_") {
			byName[p.name] = p.text
		}
		f.Add(byName[book], byName[rels], byName[texts], byName[sheet])
	}
	add(row(3, `<c r="A3" t="s"><v>1</v></c><c r="C3"><v>58.949999999999996</v></c><c t="b"><v>1</v></c><c t="e"><v>#N/A</v></c>`))
	add(`<row><c t="inlineStr"><is><r><t>Día</t></r></is></c><c t="str"><f>A1</f><v>x</v></c></row>`)
	f.Fuzz(func(t *testing.T, bookXML, relsXML, textsXML, sheetXML string) {
		var all []xlsxPart
		for i, name := range []string{book, rels, texts, sheet} {
			all = append(all, xlsxPart{name: name, text: []string{bookXML, relsXML, textsXML, sheetXML}[i]})
		}
		checkBook(t, pack(t, all...))
	})
}

// FuzzNumber wants of every number in XML plain decimal text that stays the same when it is read again.
func FuzzNumber(f *testing.F) {
	for _, text := range []string{"58.949999999999996", "1E-4", "-0", "5e-324", "1.7976931348623157e308", "0x1p4", "58,95", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		plain, ok := numberText(text)
		if !ok {
			return
		}
		if again, ok := numberText(plain); !isPlainDecimal(plain) || !ok || again != plain {
			t.Errorf("%q gave %q, and that %q, %t", text, plain, again, ok)
		}
	})
}
