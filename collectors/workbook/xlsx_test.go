package workbook

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
)

func TestRoundTrip_Table(t *testing.T) {
	merged := excelFile(t, dollarTable(), func(f *excelize.File) error {
		style, err := f.NewStyle(&excelize.Style{NumFmt: 2}) // two decimals to look at; blank rows behind the table
		return errors.Join(err, f.MergeCell("Diaria", "A1", "F1"), f.SetCellStyle("Diaria", "A4", "H40", style))
	})
	for name, body := range map[string][]byte{"XLS": dollarXLS(), "XLSX": excelFile(t, dollarTable()), "XLSX with merged headings and blank rows": merged} {
		t.Run(name, func(t *testing.T) {
			if rows := mustRows(t, mustOpen(t, body), "Diaria"); !reflect.DeepEqual(rows, dollarTexts()) {
				t.Errorf("got  %q\nwant %q", rows, dollarTexts())
			}
		})
	}
}

func TestXLSX_Cells(t *testing.T) {
	texts := []string{"Año", " Compra ", "_x0041_x_x000D_", "58.949999999999996"}
	tests := []struct {
		name, sheet string
		want        [][]string
	}{
		{"numbers", `<row r="1"><c r="A1"><v>58.949999999999996</v></c><c r="B1" t="n"><v>58.950000000000003</v></c><c r="C1"><v>1E-4</v></c>` +
			`<c r="D1"><v>-0</v></c><c r="E1"><v> 7 </v></c></row>`, [][]string{{"58.949999999999996", "58.95", "0.0001", "0", "7"}}},
		{"shared strings", row(1, `<c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="s"><v>2</v></c><c r="D1" t="s"><v>3</v></c>`),
			[][]string{{"Año", " Compra ", "Ax\r", "58.949999999999996"}}},
		{"texts in cells", row(1, `<c r="A1" t="inlineStr"><is><t>Día</t></is></c><c r="B1" t="inlineStr"><is><r><t>Com</t></r><r><rPr><b/></rPr><t>pra</t></r>`+
			`<rPh sb="0" eb="1"><t>no</t></rPh></is></c><c r="C1" t="str"><f>A1</f><v>Ven<!-- x -->ta</v></c>`), [][]string{{"Día", "Compra", "Venta"}}},
		{"truth, errors, dates", row(1, `<c r="A1" t="b"><v>1</v></c><c r="B1" t="b"><v>0</v></c><c r="C1" t="e"><v>#N/A</v></c><c r="D1" t="d"><v>2026-09-17</v></c>`),
			[][]string{{"TRUE", "FALSE", "#N/A", "2026-09-17"}}},
		{"gaps", row(3, `<c r="C3"><v>1</v></c><c r="E3" s="4"/>`) + row(9, `<c r="A9" s="1"/>`), [][]string{nil, nil, {"", "", "1"}}},
		{"no places", `<row><c><v>1</v></c><c/><c><v>2</v></c></row><row/><row><c r="B3"><v>3</v></c><c><v>4</v></c></row>`,
			[][]string{{"1", "", "2"}, nil, {"", "3", "4"}}},
		{"out of order", row(2, `<c r="B2"><v>2</v></c><c r="A2"><v>1</v></c>`) + row(1, `<c r="A1"><v>0</v></c>`), [][]string{{"0"}, {"1", "2"}}},
		{"a formula without a value", row(1, `<c r="A1"><f>B1*2</f></c><c r="B1"><f>1+1</f><v>2</v></c>`), [][]string{{"", "2"}}},
		{"a value in another element", `<row><d><v>7</v></d><c><v>1</v></c></row>`, [][]string{{"1"}}},
		{"an empty text", row(1, `<c r="A1" t="inlineStr"><is><t></t></is></c>`), nil},
		{"blank rows at the far end", row(1, `<c r="A1"><v>1</v></c>`) + row(1048576, `<c r="XFD1048576" s="1"/>`), [][]string{{"1"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if rows := mustRows(t, mustOpen(t, xlsx(t, tt.sheet, texts...)), "Diaria"); !reflect.DeepEqual(rows, tt.want) {
				t.Errorf("got %q, want %q", rows, tt.want)
			}
		})
	}
}

func TestXLSX_Package(t *testing.T) {
	good := parts(row(1, `<c r="A1" t="s"><v>0</v></c>`), "Año")
	strict := slices.Clone(good)
	for i := range strict {
		strict[i].text = strings.NewReplacer("http://schemas.openxmlformats.org/spreadsheetml/2006/main", "http://purl.oclc.org/ooxml/spreadsheetml/main",
			kindSpace, "http://purl.oclc.org/ooxml/officeDocument/relationships/").Replace(strict[i].text)
	}
	shouting := slices.Clone(good)
	for i, p := range shouting {
		if p.name == "xl/sharedStrings.xml" {
			shouting[i].name = `XL\SharedStrings.XML`
		}
	}
	rels := "xl/_rels/workbook.xml.rels"
	bodies := map[string][]byte{
		"plain":            pack(t, good...),
		"strict":           pack(t, strict...),
		"other letters":    pack(t, shouting...),
		"no first pointer": pack(t, with(good, "_rels/.rels", "")...),
		"absolute targets": pack(t, with(good, rels, relationsXML(relationXML("rId1", relationSheet, "/xl/worksheets/sheet1.xml"),
			relationXML("x", relationSharedStrings, "/xl/sharedStrings.xml")))...),
		"prefixed names":    pack(t, with(good, "xl/sharedStrings.xml", `<x:sst xmlns:x="y"><x:si><x:t>Año</x:t></x:si></x:sst>`)...),
		"runs and readings": pack(t, with(good, "xl/sharedStrings.xml", `<sst><si><r><t>A</t></r><r><rPr><b/></rPr><t>ño</t></r><rPh><t>no</t></rPh></si></sst>`)...),
		"a chart too": pack(t, with(with(good, "xl/workbook.xml", `<workbook xmlns:r="x"><sheets><sheet name="G" r:id="rId9"/><sheet name="Diaria" r:id="rId1"/></sheets></workbook>`),
			rels, relationsXML(relationXML("rId1", relationSheet, "worksheets/sheet1.xml"), relationXML("rId9", "chartsheet", "nowhere.xml"),
				relationXML("rId2", relationSharedStrings, "sharedStrings.xml")))...),
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			book := mustOpen(t, body)
			if got := book.Sheets(); !slices.Equal(got, []string{"Diaria"}) {
				t.Errorf("sheets %q", got)
			}
			if rows := mustRows(t, book, "Diaria"); !reflect.DeepEqual(rows, [][]string{{"Año"}}) {
				t.Errorf("rows %q", rows)
			}
		})
	}
}

func TestXLSX_Refused(t *testing.T) {
	good := parts(row(1, `<c r="A1" t="s"><v>0</v></c>`), "Año")
	cell := func(text string) []byte { return xlsx(t, row(1, text), "Año") }
	part := func(name, text string) []byte { return pack(t, with(good, name, text)...) }
	const sheet = "xl/worksheets/sheet1.xml"
	whole := pack(t, good...)
	tests := []struct {
		name string
		body []byte
		want error
		says string
	}{
		{"cut off", whole[:len(whole)-30], ErrDamaged, "truncated"},
		{"only the signature", []byte("PK"), ErrDamaged, "truncated"},
		{"any zip", pack(t, xlsxPart{name: "a.txt", text: "hello"}), ErrNotWorkbook, "1 parts"},
		{"a text document", pack(t, with(with(good, "_rels/.rels", relationsXML(relationXML("a", relationBook, "word/document.xml"))),
			"word/document.xml", "<document/>")...), ErrNotWorkbook, `"document"`},
		{"a binary workbook", part("_rels/.rels", relationsXML(relationXML("a", relationBook, "xl/workbook.bin"))), ErrNotWorkbook, "XLSB"},
		{"no sheet part", part(sheet, ""), ErrDamaged, sheet},
		{"no shared strings", part("xl/sharedStrings.xml", ""), ErrDamaged, "xl/sharedStrings.xml is missing"},
		{"a sheet that is something else", part(sheet, "<chartsheet/>"), ErrDamaged, `"chartsheet"`},
		{"an empty sheet part", part(sheet, " "), ErrDamaged, "nothing"},
		{"no sheet", part("xl/workbook.xml", "<workbook/>"), ErrDamaged, "no worksheet"},
		{"a sheet that points nowhere", part("xl/workbook.xml", `<workbook><sheets><sheet name="A" id="x"/></sheets></workbook>`), ErrDamaged, `"x"`},
		{"a part twice", pack(t, append(good, xlsxPart{name: "xl/WORKBOOK.xml", text: "<workbook/>"})...), ErrDamaged, "two parts"},
		{"XML cut off", part(sheet, `<worksheet><sheetData><row><c><v>58`), ErrDamaged, "unexpected EOF"},
		{"XML cut off behind a row", part(sheet, `<worksheet><sheetData><row><c><v>58</v></c></row>`), ErrDamaged, "unexpected EOF"},
		{"crossed elements", part(sheet, `<worksheet><sheetData></worksheet></sheetData>`), ErrDamaged, "line 1"},
		{"no UTF-8", part(sheet, "<worksheet>\xff</worksheet>"), ErrDamaged, "UTF-8"},
		{"an entity", part(sheet, `<!DOCTYPE a [<!ENTITY x "5">]><worksheet><sheetData><row><c><v>&x;</v></c></row></sheetData></worksheet>`), ErrDamaged, "entity"},
		{"a text that is not there", cell(`<c t="s"><v>1</v></c>`), ErrDamaged, `shared string "1", there are 1`},
		{"a text before the first", cell(`<c t="s"><v>-1</v></c>`), ErrDamaged, `"-1"`},
		{"no number", cell(`<c><v>58,95</v></c>`), ErrDamaged, `holds "58,95"`},
		{"two numbers", cell(`<c><v>5</v><v>8</v></c>`), ErrDamaged, "several elements"},
		{"a number in a number", cell(`<c><v>5<v>8</v></v></c>`), ErrDamaged, "several elements"},
		{"two texts", cell(`<c t="inlineStr"><is><t>5</t></is><is><t>8</t></is></c>`), ErrDamaged, "several elements"},
		{"a text of many pieces", cell(`<c t="str"><v>` + strings.Repeat("abcdefgh<!-- -->", textBytesMax/8+1) + `</v></c>`), ErrTooLarge, "text"},
		{"a text of many elements", cell(`<c t="inlineStr"><is>` + strings.Repeat("<r/>", textBytesMax+1) + `</is></c>`), ErrTooLarge, "text"},
		{"many relations", part("_rels/.rels", relationsXML(strings.Repeat(relationXML("a", "b", "c"), partsMax+1))), ErrTooLarge, "1000 relations"},
		{"many sheets", part("xl/workbook.xml", "<workbook><sheets>"+strings.Repeat("<sheet/>", sheetsMax+1)+"</sheets></workbook>"), ErrTooLarge, "256 sheets"},
		{"many texts", part("xl/sharedStrings.xml", "<sst>"+strings.Repeat("<si/>", sharedStringsMax+1)+"</sst>"), ErrTooLarge, "shared strings"},
		{"neither true nor false", cell(`<c t="b"><v>2</v></c>`), ErrDamaged, "boolean"},
		{"an unknown kind", cell(`<c t="q"><v>2</v></c>`), ErrDamaged, `"q"`},
		{"two values", cell(`<c r="A1"><v>1</v></c><c r="A1"><v>2</v></c>`), ErrDamaged, `cell A1 has two values, "1" and "2"`},
		{"a cell of another row", cell(`<c r="A2"><v>1</v></c>`), ErrDamaged, `"A2"`},
		{"a place that is none", cell(`<c r="1A"><v>1</v></c>`), ErrDamaged, `"1A"`},
		{"a row that is none", xlsx(t, `<row r="0"><c><v>1</v></c></row>`), ErrDamaged, `"0"`},
		{"the last row of all", xlsx(t, row(1048576, `<c r="A1048576"><v>1</v></c>`)), ErrTooLarge, "A1048576"},
		{"the last column of all", cell(`<c r="XFD1"><v>1</v></c>`), ErrTooLarge, "XFD1"},
		{"a long text", cell(`<c t="str"><v>` + strings.Repeat("ab", textBytesMax/2+1) + `</v></c>`), ErrTooLarge, "text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { wantRefused(t, tt.body, tt.want, tt.says) })
	}
}
