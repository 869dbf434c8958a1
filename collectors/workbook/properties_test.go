package workbook

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// isPlainDecimal says whether a text is digits with at most one point between them and a sign.
func isPlainDecimal(text string) bool {
	whole, fraction, pointed := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	return whole != "" && (!pointed || fraction != "") && strings.Trim(whole+fraction, "0123456789") == "" &&
		(len(whole) == 1 || whole[0] != '0')
}

// TestNumber_ReadsBack holds for every double: the text is plain, reads back to the same double, and no shorter one
// does.
func TestNumber_ReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Float64().Draw(t, "value")
		text, ok := doubleText(math.Float64bits(value))
		if !ok || !isPlainDecimal(text) {
			t.Fatalf("%v gave %q, %t", value, text, ok)
		}
		if back, err := strconv.ParseFloat(text, 64); err != nil || back != value {
			t.Fatalf("%v gave %q, which reads back as %v", value, text, back)
		}
		noisy := strconv.FormatFloat(value, 'e', 16, 64) // the 17 digits that a workbook may have
		if again, ok := numberText(noisy); !ok || again != text {
			t.Fatalf("%s gave %q, want %q", noisy, again, text)
		}
	})
}

func TestNumber_RK(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rk := rapid.Uint32().Draw(t, "rk")
		want := new(big.Rat)
		if rk&rkInteger != 0 {
			want.SetInt64(int64(int32(rk) >> 2))
		} else {
			value := math.Float64frombits(uint64(rk&^3) << 32)
			if math.IsNaN(value) || math.IsInf(value, 0) {
				if text, ok := rkText(rk); ok {
					t.Fatalf("%#x gave %q", rk, text)
				}
				return
			}
			text, _ := doubleText(math.Float64bits(value)) // what the cell would hold without the hundredths
			want.SetString(text)
		}
		if rk&rkHundredths != 0 {
			want.Quo(want, big.NewRat(100, 1))
		}
		text, ok := rkText(rk)
		if got, read := new(big.Rat).SetString(text); !ok || !read || got.Cmp(want) != 0 || !isPlainDecimal(text) {
			t.Fatalf("%#x gave %q, want %s", rk, text, want.RatString())
		}
	})
}

func TestNumber_Refused(t *testing.T) {
	for _, text := range []string{"", "NaN", "Inf", "-infinity", "0x1p4", "1_000", "58,95", "1e400", "5 8", "e", "--1", "٥"} {
		if got, ok := numberText(text); ok {
			t.Errorf("%q gave %q", text, got)
		}
	}
}

func TestPlace(t *testing.T) {
	for name, want := range map[string][2]int{"A1": {0, 0}, "Z9": {8, 25}, "AA10": {9, 26}, "IV65536": {65535, 255}, "XFD1048576": {1048575, 16383}} {
		row, column, ok := parseCellName(name)
		if !ok || row != want[0] || column != want[1] || cellName(row, column) != name {
			t.Errorf("%s is %d, %d, %t, and back %s", name, row, column, ok, cellName(row, column))
		}
	}
	for _, name := range []string{"", "A", "1", "a1", "A0", "A01", "A-1", "A+1", "AAAA1", "A12345678", "A1 ", "$A$1", "Ñ1"} {
		if row, column, ok := parseCellName(name); ok {
			t.Errorf("%q is %d, %d", name, row, column)
		}
	}
}

func TestOpen_NoWorkbook(t *testing.T) {
	for _, body := range []string{
		"", " \r\n", "\xEF\xBB\xBF<!DOCTYPE HTML>", "<?xml version='1.0'?><html>", "<table><tr>", "%PDF-1.7", "{\"a\":1}", "{\\rtf1",
		"\x1f\x8b\x08", "\x89PNG\r\n", "\x09\x08\x10\x00", "\x09\x00\x04\x00", "Año;Mes;Día", strings.Repeat(" a", 400), "\x00\x01\x02",
	} {
		want := fmt.Sprintf("it begins with %q", body[:min(len(body), shownBytes)])
		if _, err := Open([]byte(body)); !errors.Is(err, ErrNotWorkbook) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v, want %s in it", body, err, want)
		}
	}
	if _, err := contents(make([]byte, bodyBytesMax+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a huge file: %v", err)
	}
}

// checkBook reads any bytes: the answer is an error of a known kind, or rows within the limits that end with their
// last cell.
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
		biffRecord(recordContinue, []byte{1}, wide("pra")), biffCell(recordBoolErr, 0, 2, []byte{1, 0}), biffCell(recordNumber, 0, 3, double(58.95)),
		biffCell(recordFormula, 1, 0, []byte{0, 0, 0, 0, 0, 0, 0xFF, 0xFF}, make([]byte, 8)), biffRecord(recordString, narrowText("Venta")))}))
	for _, s := range everyText() {
		f.Add(biffStream(sharedTable(slices.Concat(s.head, s.characters, s.end))))
	}
	f.Fuzz(func(t *testing.T, stream []byte) { checkBook(t, ole(oleStream{"Workbook", stream})) })
}

// FuzzXLSX changes the package. Its checksums let few changes through to the parts: see FuzzXLSX_Parts.
func FuzzXLSX(f *testing.F) {
	f.Add(excelFile(f, dollarTable()))
	f.Add(xlsx(f, row(1, `<c r="A1" t="s"><v>0</v></c>`), "Año"))
	f.Fuzz(func(t *testing.T, body []byte) {
		checkBook(t, append([]byte(zipSignature), strings.TrimPrefix(string(body), zipSignature)...))
	})
}

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
