package workbook

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
	"pgregory.net/rapid"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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

// dollarFile is a workbook as the central bank publishes it, written by excelize.
func dollarFile(t testing.TB) []byte {
	t.Helper()
	f := excelize.NewFile()
	defer f.Close()
	must(t, f.SetSheetName("Sheet1", "Diaria"))
	for i, cells := range [][]any{
		{"Tasas de Cambio del dólar"}, nil, {"Año", "Mes", "Día", "Compra", "Venta"},
		{2026, "Set", 15, 58.95, 59.33, 1e-7}, {2026, "Set", 16, 58.9612, -0.5, true},
	} {
		must(t, f.SetSheetRow("Diaria", "A"+strconv.Itoa(i+1), &cells))
	}
	style, err := f.NewStyle(&excelize.Style{NumFmt: 2}) // two decimals to look at; blank rows below the table
	must(t, errors.Join(err, f.MergeCell("Diaria", "A1", "F1"), f.SetCellStyle("Diaria", "A4", "H40", style)))
	out, err := f.WriteToBuffer()
	must(t, err)
	return out.Bytes()
}

// withSheet replaces the rows of dollarFile.
func withSheet(t testing.TB, sheet string) []byte {
	t.Helper()
	return repack(t, dollarFile(t), map[string]string{"xl/worksheets/sheet1.xml": "<worksheet><sheetData>" + sheet + "</sheetData></worksheet>"})
}

// repack replaces parts of a package, and adds those that it lacks.
func repack(t testing.TB, body []byte, parts map[string]string) []byte {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	must(t, err)
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, part := range archive.File {
		if _, replaced := parts[part.Name]; !replaced {
			must(t, w.Copy(part))
		}
	}
	for name, text := range parts {
		file, err := w.Create(name)
		must(t, err)
		_, err = io.WriteString(file, text)
		must(t, err)
	}
	must(t, w.Close())
	return out.Bytes()
}

func TestRows(t *testing.T) {
	all, err := contents(dollarFile(t))
	must(t, err)
	var rows []string
	for _, row := range all["Diaria"] {
		rows = append(rows, strings.TrimRight(strings.Join(row, "|"), "|")) // without blank cells that have a style
	}
	const want = "Tasas de Cambio del dólar||Año|Mes|Día|Compra|Venta|2026|Set|15|58.95|59.33|0.0000001|2026|Set|16|58.9612|-0.5|1"
	if got := strings.TrimRight(strings.Join(rows, "|"), "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPlainNumber(t *testing.T) {
	for text, want := range map[string]string{
		"58.949999999999996": "58.949999999999996", "58.950000000000003": "58.95", "1E-4": "0.0001", "-0": "0", "7": "7", "-0.5": "-0.5",
		"0x1p4": "0x1p4", "58,95": "58,95", "": "", "Infinity": "Infinity", "e": "e", "1e999": "1e999",
	} {
		if got := plainNumber(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) { // two decimals come back from the digits that a spreadsheet writes
		cents := rapid.IntRange(1, 1_000_000).Draw(t, "cents")
		value := float64(cents) / 100
		want := strconv.FormatFloat(value, 'f', -1, 64)
		if got := plainNumber(strconv.FormatFloat(value, 'e', 16, 64)); got != want {
			t.Fatalf("%v: %q, want %q", value, got, want)
		}
	})
}

// A damaged sheet is an error; without the check excelize would read a part of it.
func TestDamaged(t *testing.T) {
	good := dollarFile(t)
	for name, body := range map[string][]byte{
		"nothing":             nil,
		"only a signature":    []byte("PK\x03\x04"),
		"cut off":             good[:len(good)-30],
		"any zip":             repack(t, []byte("PK\x05\x06"+strings.Repeat("\x00", 18)), map[string]string{"a.txt": "hello"}),
		"XML cut off":         repack(t, good, map[string]string{"xl/worksheets/sheet1.xml": "<worksheet><sheetData><row><c><v>58</v></c></row>"}),
		"crossed elements":    withSheet(t, "<row></c></row>"),
		"no UTF-8":            withSheet(t, "\xff"),
		"an entity":           withSheet(t, "<row><c><v>&x;</v></c></row>"),
		"out of order":        withSheet(t, `<row r="1"><c r="B1"><v>2</v></c><c r="A1"><v>1</v></c></row>`),
		"a cell twice":        withSheet(t, `<row r="1"><c r="A1"><v>2</v></c><c r="A1"><v>1</v></c></row>`),
		"rows out of order":   withSheet(t, `<row r="2"><c r="A2"><v>2</v></c></row><row r="1"><c r="A1"><v>1</v></c></row>`),
		"a place that is not": withSheet(t, `<row r="1"><c r="1A"><v>2</v></c></row>`),
		"texts cut off":       repack(t, good, map[string]string{"xl/sharedStrings.xml": "<sst><si><t>Com"}),
	} {
		if all, err := contents(body); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %q, %v", name, all, err)
		}
	}
}

// Bombs are refused before they cost memory.
func TestBombs(t *testing.T) {
	many := map[string]string{}
	for i := range partsMax {
		many[fmt.Sprintf("xl/worksheets/x%d.xml", i)] = ""
	}
	blanks := withSheet(t, strings.Repeat(" ", 14<<20))
	var sparse strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&sparse, `<row r="%d"><c r="IV%d"><v>1</v></c></row>`, i+1, i+1)
	}
	tests := map[string]struct {
		body   []byte
		want   error
		memory uint64 // allocated in all, garbage too
	}{
		"1 GiB by the directory":     {declared(blanks, 1<<30), ErrTooLarge, 8 << 20},
		"15 MiB of blanks in 15 KiB": {blanks, ErrTooLarge, 8 << 20},
		"said to be 1,000 bytes":     {declared(blanks, 1000), ErrDamaged, 8 << 20},
		"thousands of parts":         {repack(t, dollarFile(t), many), ErrTooLarge, 8 << 20},
		"elements in each other":     {withSheet(t, strings.Repeat("<a>", 100)+strings.Repeat("</a>", 100)), ErrDamaged, 8 << 20},
		"only the last cells":        {withSheet(t, sparse.String()), ErrTooLarge, 64 << 20},
		"the last row of all":        {withSheet(t, `<row r="1048576"><c r="A1048576"><v>1</v></c></row>`), ErrTooLarge, 64 << 20},
		"many empty rows":            {withSheet(t, strings.Repeat("<row></row>", 70_000)), ErrTooLarge, 96 << 20},
		"dimensions that lie":        {repack(t, dollarFile(t), map[string]string{"xl/worksheets/sheet1.xml": `<worksheet><dimension ref="A1:XFD1048576"/></worksheet>`}), nil, 8 << 20},
		"a count of texts that lies": {repack(t, dollarFile(t), map[string]string{"xl/sharedStrings.xml": `<sst count="4294967295" uniqueCount="4294967295"/>`}), ErrDamaged, 8 << 20},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := contents(test.body)
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, test.want) || used > test.memory {
				t.Errorf("got %v with %d bytes allocated, want %v with %d", err, used, test.want, test.memory)
			}
		})
	}
}

// declared changes the unpacked size of the sheet in the directory of a package.
func declared(body []byte, size uint32) []byte {
	body = slices.Clone(body)
	name := bytes.LastIndex(body, []byte("xl/worksheets/sheet1.xml"))
	const sizeBefore = 46 - 24 // the size is at 24 of an entry, the name at 46
	for i := range 4 {
		body[name-sizeBefore+i] = byte(size >> (8 * i))
	}
	return body
}

func FuzzOpen(f *testing.F) {
	f.Add(dollarFile(f))
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := contents(body); err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("an error of no kind: %v", err)
		}
	})
}
