package simulated

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math/big"
	"strings"
)

const (
	contentWorkbook = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	xmlHead         = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	mainSpace       = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
	relationSpace   = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	packageSpace    = "http://schemas.openxmlformats.org/package/2006/"
	doubleBits      = 53 // bits in the mantissa of a double
	doubleDigits    = 17 // decimal digits that identify a double
)

// sheet is a sheet of a workbook. A cell with the text of a number is written as a number, an empty text as an empty
// cell.
type sheet struct {
	name string
	rows [][]string
}

// workbook returns sheets as an XLSX file. The same sheets always give the same bytes. padding is the number of blanks
// after the first sheet, for the fault Bomb.
func workbook(sheets []sheet, padding int64) []byte {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	part := func(name, content string, padding int64) {
		w, err := archive.Create(name)
		if err == nil {
			_, err = io.Copy(w, io.MultiReader(strings.NewReader(xmlHead+content), io.LimitReader(blankReader{}, padding)))
		}
		if err != nil {
			panic("simulated: writing into memory fails: " + err.Error())
		}
	}
	var types, names, relations strings.Builder
	for i, s := range sheets {
		number := i + 1
		fmt.Fprintf(&types, `<Override PartName="/xl/worksheets/sheet%d.xml" ContentType="%s.worksheet+xml"/>`, number, officeType)
		fmt.Fprintf(&names, `<sheet name="%s" sheetId="%d" r:id="rId%d"/>`, escaped(s.name), number, number)
		fmt.Fprintf(&relations, `<Relationship Id="rId%d" Type="%s/worksheet" Target="worksheets/sheet%d.xml"/>`, number, relationSpace, number)
		part(fmt.Sprintf("xl/worksheets/sheet%d.xml", number), s.xml(), padding)
		padding = 0
	}
	part("xl/workbook.xml", fmt.Sprintf(`<workbook xmlns="%s" xmlns:r="%s"><sheets>%s</sheets></workbook>`, mainSpace, relationSpace, &names), 0)
	part("xl/_rels/workbook.xml.rels", fmt.Sprintf(`<Relationships xmlns="%srelationships">%s</Relationships>`, packageSpace, &relations), 0)
	part("_rels/.rels", fmt.Sprintf(`<Relationships xmlns="%srelationships"><Relationship Id="rId1" Type="%s/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
		packageSpace, relationSpace), 0)
	part("[Content_Types].xml", fmt.Sprintf(`<Types xmlns="%scontent-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>`+
		`<Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="%s.sheet.main+xml"/>`+
		`%s</Types>`, packageSpace, officeType, &types), 0)
	if err := archive.Close(); err != nil {
		panic("simulated: writing into memory fails: " + err.Error())
	}
	return out.Bytes()
}

const officeType = "application/vnd.openxmlformats-officedocument.spreadsheetml"

func (s *sheet) xml() string {
	var rows strings.Builder
	for i, row := range s.rows {
		fmt.Fprintf(&rows, `<row r="%d">`, i+1)
		for j, cell := range row {
			reference := fmt.Sprintf("%c%d", 'A'+j, i+1)
			switch {
			case cell == "":
				fmt.Fprintf(&rows, `<c r="%s"/>`, reference)
			case jsonNumber.MatchString(cell):
				fmt.Fprintf(&rows, `<c r="%s"><v>%s</v></c>`, reference, cell)
			default:
				fmt.Fprintf(&rows, `<c r="%s" t="inlineStr"><is><t>%s</t></is></c>`, reference, escaped(cell))
			}
		}
		rows.WriteString("</row>")
	}
	return fmt.Sprintf(`<worksheet xmlns="%s"><sheetData>%s</sheetData></worksheet>`, mainSpace, &rows)
}

func escaped(text string) string {
	var out strings.Builder
	if err := xml.EscapeText(&out, []byte(text)); err != nil {
		panic("simulated: writing into memory fails: " + err.Error())
	}
	return out.String()
}

// withBinaryNoise returns a number with 17 digits, as spreadsheet programs write a double: 58.95 becomes
// 58.950000000000003. A text that is not a number is returned unchanged.
func withBinaryNoise(text string) string {
	if !jsonNumber.MatchString(text) {
		return text
	}
	value, _, err := big.ParseFloat(text, 10, doubleBits, big.ToNearestEven)
	if err != nil {
		return text
	}
	return value.Text('g', doubleDigits)
}
