package workbook

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestXLS_Cells(t *testing.T) {
	integer := func(n int, hundredths int) []byte { return le32(n<<2 | rkInteger | hundredths) }
	const highOf50 = 0x40490000 // the upper half of the double 50
	text := func(kind byte, rest ...byte) []byte {
		return slices.Concat([]byte{kind, 0}, rest, make([]byte, 4-len(rest)), []byte{0xFF, 0xFF})
	}
	formula := func(column int, value []byte) []byte {
		return biffCell(recordFormula, 0, column, value, make([]byte, 8))
	}
	tests := []struct {
		name  string
		cells [][]byte
		want  []string
	}{
		{"RK integer", [][]byte{biffCell(recordRK, 0, 0, integer(58, 0))}, []string{"58"}},
		{"RK negative", [][]byte{biffCell(recordRK, 0, 0, integer(-5, rkHundredths))}, []string{"-0.05"}},
		{"RK hundredths", [][]byte{biffCell(recordRK, 0, 0, integer(5029, rkHundredths))}, []string{"50.29"}},
		{"RK double", [][]byte{biffCell(recordRK, 0, 0, le32(highOf50))}, []string{"50"}},
		{"RK double, hundredths", [][]byte{biffCell(recordRK, 0, 0, le32(highOf50|rkHundredths))}, []string{"0.5"}},
		{"MULRK", [][]byte{biffRecord(recordMulRK, le16(0), le16(1), le16(0), integer(5029, 1), le16(0), integer(58, 0), le16(2))},
			[]string{"", "50.29", "58"}},
		{"NUMBER", [][]byte{biffCell(recordNumber, 0, 0, double(58.949999999999996)), biffCell(recordNumber, 0, 1, double(58.95))},
			[]string{"58.949999999999996", "58.95"}},
		{"NUMBER, tiny and huge", [][]byte{biffCell(recordNumber, 0, 0, double(1e-7)), biffCell(recordNumber, 0, 1, double(1e21))},
			[]string{"0.0000001", "1000000000000000000000"}},
		{"BLANK", [][]byte{biffCell(0x0201, 0, 3), biffCell(recordRK, 0, 0, integer(1, 0))}, []string{"1"}},
		{"BOOLERR", [][]byte{biffCell(recordBoolErr, 0, 0, []byte{1, 0}), biffCell(recordBoolErr, 0, 1, []byte{0, 0}),
			biffCell(recordBoolErr, 0, 2, []byte{0x2A, 1})}, []string{"TRUE", "FALSE", "#N/A"}},
		{"LABEL", [][]byte{biffCell(recordLabel, 0, 0, narrowText("Año")), biffCell(recordLabel, 0, 1, wideText("Día €"))},
			[]string{"Año", "Día €"}},
		{"RSTRING", [][]byte{biffCell(recordRString, 0, 0, narrowText("Mes"), le16(1), le32(0))}, []string{"Mes"}},
		{"LABEL with CONTINUE", [][]byte{biffCell(recordLabel, 0, 0, le16(6), []byte{0}, narrow("Com")),
			biffRecord(recordContinue, []byte{flagUTF16}, wide("pra"))}, []string{"Compra"}},
		{"FORMULA, number", [][]byte{formula(0, double(58.5))}, []string{"58.5"}},
		{"FORMULA, text", [][]byte{formula(0, text(0)), biffRecord(0x04BC, make([]byte, 8)), biffRecord(recordString, narrowText("Venta"))},
			[]string{"Venta"}},
		{"FORMULA, text with CONTINUE", [][]byte{formula(0, text(0)), biffRecord(recordString, le16(5), []byte{0}, narrow("Ve")),
			biffRecord(recordContinue, []byte{0}, narrow("nta"))}, []string{"Venta"}},
		{"FORMULA, truth value", [][]byte{formula(0, text(1, 1))}, []string{"TRUE"}},
		{"FORMULA, error", [][]byte{formula(0, text(2, 0x07))}, []string{"#DIV/0!"}},
		{"FORMULA, empty", [][]byte{formula(0, text(3)), biffCell(recordRK, 0, 1, integer(7, 0))}, []string{"", "7"}},
		{"a chart in the sheet", [][]byte{biffBegin(0x20), biffCell(recordRK, 0, 0, integer(666, 0)), biffEnd(),
			biffCell(recordRK, 0, 0, integer(7, 0))}, []string{"7"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows := mustRows(t, mustOpen(t, xls(nil, tt.cells...)), "Diaria")
			if want := [][]string{tt.want}; !reflect.DeepEqual(rows, want) {
				t.Errorf("got %q, want %q", rows, want)
			}
		})
	}
}

// sharedText is a text of the table in its three parts, so that it can be cut.
type sharedText struct {
	text                  string
	head, characters, end []byte
}

// everyText has every shape that a text has.
func everyText() []sharedText {
	return []sharedText{
		{"Año", slices.Concat(le16(3), []byte{0}), narrow("Año"), nil},
		{"Compra", slices.Concat(le16(6), []byte{flagRichText}, le16(2)), narrow("Compra"), slices.Concat(le32(1), le32(2))},
		{"Venta", slices.Concat(le16(5), []byte{flagExtended | flagUTF16}, le32(7)), wide("Venta"), make([]byte, 7)},
		{"Día", slices.Concat(le16(3), []byte{flagRichText | flagExtended}, le16(1), le32(3)), narrow("Día"), slices.Concat(le32(9), make([]byte, 3))},
		{"€ 😀", slices.Concat(le16(4), []byte{flagUTF16}), wide("€ 😀"), nil},
		{"", slices.Concat(le16(0), []byte{0}), nil, nil},
		{"Mes", slices.Concat(le16(3), []byte{0}), narrow("Mes"), nil},
	}
}

// TestXLS_SharedTexts cuts the table of texts wherever a writer may; a cut within the characters begins the CONTINUE
// with flags.
func TestXLS_SharedTexts(t *testing.T) {
	texts := everyText()
	var whole []byte
	for _, s := range texts {
		whole = append(whole, slices.Concat(s.head, s.characters, s.end)...)
	}
	checkTexts(t, "whole", whole, nil)
	var before []byte
	for i, s := range texts {
		after := whole[len(before)+len(s.head)+len(s.characters)+len(s.end):]
		width := 1 + int(s.head[2]&flagUTF16)
		for cut := 0; cut < len(s.characters); cut += width {
			name := fmt.Sprintf("text %d, letter %d", i, cut/width)
			head, rest := slices.Concat(before, s.head, s.characters[:cut]), slices.Concat(s.end, after)
			checkTexts(t, name, head, slices.Concat([]byte{byte(width - 1)}, s.characters[cut:], rest))
			if width == 1 {
				var widened []byte
				for _, letter := range s.characters[cut:] {
					widened = append(widened, letter, 0)
				}
				checkTexts(t, name+" in two bytes", head, slices.Concat([]byte{flagUTF16}, widened, rest))
			}
		}
		for cut := range s.end {
			checkTexts(t, fmt.Sprintf("text %d, end %d", i, cut), slices.Concat(before, s.head, s.characters, s.end[:cut]),
				slices.Concat(s.end[cut:], after))
		}
		before = slices.Concat(before, s.head, s.characters, s.end)
		checkTexts(t, fmt.Sprintf("behind text %d", i), before, after)
	}
}

// checkTexts reads a table of all texts that goes on in a CONTINUE, or not.
func checkTexts(t *testing.T, name string, table, more []byte) {
	t.Helper()
	texts := everyText()
	globals := biffRecord(recordSST, le32(len(texts)), le32(len(texts)), table)
	if more != nil {
		globals = append(globals, biffRecord(recordContinue, more)...)
	}
	var cells [][]byte
	for i := range texts {
		cells = append(cells, biffCell(recordLabelSST, i, 0, le32(i)))
	}
	book, err := Open(xls(globals, cells...))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	for i, row := range mustRows(t, book, "Diaria") {
		if got := strings.Join(row, "|"); got != texts[i].text {
			t.Errorf("%s: text %d is %q, want %q", name, i, got, texts[i].text)
		}
	}
}

func TestXLS_Book(t *testing.T) {
	one := biffCell(recordRK, 0, 0, le32(1<<2|rkInteger))
	sheets := []biffSheet{{name: "Gráfico", kind: 2}, {name: "Diaria", cells: one}, {name: "Año", cells: biffCell(recordRK, 2, 1, le32(2<<2|rkInteger))}}
	stream := biffStream(nil, sheets...)
	long := append(slices.Clone(stream), make([]byte, 3*miniBelow)...)
	bodies := map[string][]byte{
		"in the mini stream":   ole(oleStream{"Workbook", stream}),
		"in sectors":           ole(oleStream{"Workbook", long}),
		"under the older name": ole(oleStream{"Book", stream}),
		"beside an older one":  ole(oleStream{"Book", []byte("not this one")}, oleStream{"Workbook", long}),
		"beside others":        ole(oleStream{"\x05SummaryInformation", make([]byte, 300)}, oleStream{"Workbook", stream}),
		"in whole sectors":     ole(oleStream{"Workbook", append(slices.Clone(stream), make([]byte, 2*miniBelow-len(stream))...)}),
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			book := mustOpen(t, body)
			if got := book.Sheets(); !slices.Equal(got, []string{"Diaria", "Año"}) {
				t.Fatalf("sheets %q", got)
			}
			if rows := mustRows(t, book, "Año"); !reflect.DeepEqual(rows, [][]string{nil, nil, {"", "2"}}) {
				t.Errorf("rows %q", rows)
			}
			if _, err := book.Rows("Gráfico"); !errors.Is(err, ErrNoSheet) || !strings.Contains(err.Error(), "Diaria") {
				t.Errorf("a chart's rows: %v", err)
			}
		})
	}
}

func TestXLS_Refused(t *testing.T) {
	cell := func(kind, row int, data ...[]byte) []byte { return xls(nil, biffCell(kind, row, 0, data...)) }
	label := biffCell(recordLabelSST, 0, 0, le32(1))
	pending := slices.Concat([]byte{0, 0, 0, 0, 0, 0, 0xFF, 0xFF}, make([]byte, 8))
	one, two := biffCell(recordRK, 0, 0, le32(1<<2|rkInteger)), biffCell(recordRK, 0, 0, le32(2<<2|rkInteger))
	older := slices.Concat(biffRecord(recordBOF, le16(0x0500), le16(globalsSubstream)), biffEnd())
	ancient := slices.Concat(biffRecord(0x0409, le16(0), le16(globalsSubstream)), biffEnd())
	noEnd := biffStream(nil, biffSheet{name: "Diaria", cells: one})
	tests := []struct {
		name string
		body []byte
		want error
		says string
	}{
		{"encrypted", xls(biffRecord(recordFilePass, le16(1)), one), ErrDamaged, "encrypted"},
		{"encrypted package", ole(oleStream{"EncryptedPackage", make([]byte, 5000)}), ErrDamaged, "encrypted"},
		{"a text document", ole(oleStream{"WordDocument", make([]byte, 5000)}), ErrNotWorkbook, "WordDocument"},
		{"BIFF5", ole(oleStream{"Book", older}), ErrNotWorkbook, "Excel 95"},
		{"BIFF4", ole(oleStream{"Book", ancient}), ErrNotWorkbook, "Excel 4"},
		{"only a chart", ole(oleStream{"Workbook", biffBegin(0x20)}), ErrNotWorkbook, "0x0020"},
		{"an empty stream", ole(oleStream{"Workbook", nil}), ErrDamaged, "ends"},
		{"no sheet", ole(oleStream{"Workbook", biffStream(nil)}), ErrDamaged, "no worksheet"},
		{"a name twice", ole(oleStream{"Workbook", biffStream(nil, biffSheet{name: "A"}, biffSheet{name: "A"})}), ErrDamaged, "two sheets"},
		{"the end is missing", ole(oleStream{"Workbook", noEnd[:len(noEnd)-4]}), ErrDamaged, "truncated"},
		{"a text that is not there", xls(sharedTable(narrowText("Año")), label), ErrDamaged, "wants shared string 1, there are 1"},
		{"fewer texts than said", xls(biffRecord(recordSST, le32(9), le32(9), narrowText("Año")), label), ErrDamaged, "shared string 2 of 9"},
		{"two tables of texts", xls(slices.Concat(sharedTable(narrowText("a")), sharedTable(narrowText("b")))), ErrDamaged, "second table"},
		{"two values", xls(nil, one, two), ErrDamaged, `cell A1 has two values, "1" and "2"`},
		{"not a number", cell(recordNumber, 0, le32(0), le32(0x7FF80000)), ErrDamaged, "no number"},
		{"infinity", cell(recordRK, 0, le32(0x7FF00000)), ErrDamaged, "no number"},
		{"half a number", cell(recordNumber, 0, le32(0)), ErrDamaged, "only 10 bytes"},
		{"half a place", xls(nil, biffRecord(recordNumber, le16(0))), ErrDamaged, "only 2 bytes"},
		{"an error without a name", cell(recordBoolErr, 0, []byte{1, 1}), ErrDamaged, "neither"},
		{"MULRK in other columns", xls(nil, biffRecord(recordMulRK, le16(0), le16(1), le16(0), le32(2), le16(7))), ErrDamaged, "columns 1 to 7"},
		{"MULRK cut", xls(nil, biffRecord(recordMulRK, le16(0), le16(1), le16(0), le16(1), le16(1))), ErrDamaged, "end within a number"},
		{"a formula without its text", xls(nil, biffCell(recordFormula, 0, 0, pending), one), ErrDamaged, "text of the formula"},
		{"a formula without its text at the end", xls(nil, biffCell(recordFormula, 0, 0, pending)), ErrDamaged, "text of the formula"},
		{"a text without its formula", xls(nil, biffRecord(recordString, narrowText("x"))), ErrDamaged, "not there"},
		{"a column too far", xls(nil, biffCell(recordRK, 0, 256, le32(2))), ErrTooLarge, "cell IW1"},
		{"a label cut", xls(nil, biffCell(recordLabel, 0, 0, le16(9), []byte{0}, narrow("Año"))), ErrDamaged, "middle of a text"},
		{"half a letter", xls(nil, biffCell(recordLabel, 0, 0, le16(9), []byte{1}, narrow("Año"))), ErrDamaged, "character in two"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { wantRefused(t, tt.body, tt.want, tt.says) })
	}
}

// The workbooks of the central bank, as it published them in 2020. They are not in the repository.
const (
	realFolder = "../../../shared/data"
	realDollar = "bcrd__TASA_DOLAR_REFERENCIA_MC__2020-12-07.xls"
	realOthers = "bcrd__TASAS_CONVERTIBLES_OTRAS_MONEDAS__2020-03-27.xls"
)

// readReal reads a real file, or skips the test where there is none.
func readReal(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(realFolder, name))
	if err != nil {
		t.Skipf("a real file is not here: %v", err)
	}
	return data
}

func mustOpen(t testing.TB, body []byte) *Book {
	t.Helper()
	book, err := Open(body)
	must(t, err)
	return book
}

func mustRows(t testing.TB, book *Book, sheet string) [][]string {
	t.Helper()
	rows, err := book.Rows(sheet)
	must(t, err)
	return rows
}

// TestReal_Books reads the daily rates of both, and wants every one of them to be plain decimal text.
func TestReal_Books(t *testing.T) {
	for file, want := range map[string]struct {
		sheets      []string
		rows, rates int
		some        map[int][]string // by number
	}{
		realDollar: {
			[]string{"Diaria", "PromMensual", "PromTrimestral", "PromAnual", "FPMensual", "FPTrimestral", "FPAnual"}, 7520, 15034,
			map[int][]string{
				1:    {"Tasas de Cambio del dólar de Referencia del Mercado Spot"},
				2:    nil,
				3:    {"Año", "Mes", "Día", "Compra", "Venta"},
				4:    {"1991", "Ene", "2", "11.2", "11.5"},
				7520: {"2020", "Dic", "7", "58.098", "58.3397"},
			},
		},
		realOthers: {
			[]string{"Diario", "Mensual", "Trimestral", "Anual"}, 4075, 49462, //nolint:misspell // Spanish
			map[int][]string{
				1: {"Tasas de Cambio Convertibles de otras monedas"},
				3: {"Año", "Mes", "Día", "REAL BRASILENO", "DOLAR CANADIENSE", "FRANCO SUIZO", "YUAN CHINO", "DERECHO ESPECIAL DE GIRO",
					"CORONA DANESA", "EURO", "LIBRA ESTERLINA", "YEN JAPONES", "CORONA NORUEGA", "LIBRA ESCOCESA", "CORONA SUECA",
					"DOLAR ESTADOUNIDENSE", "BOLIVAR FUERTE VENEZOLANO"},
				4075: {"2020", "Mar", "27", "10.5291", "38.4175", "55.9156", "7.5863", "73.4843", "8.0036", "59.0646", "65.7367", "0.4964",
					"5.1674", "65.7367", "5.4039", "53.8076", "5.3875"},
			},
		},
	} {
		t.Run(file, func(t *testing.T) {
			book := mustOpen(t, readReal(t, file))
			if got := book.Sheets(); !slices.Equal(got, want.sheets) {
				t.Fatalf("sheets %q, want %q", got, want.sheets)
			}
			rows := mustRows(t, book, want.sheets[0])
			if len(rows) != want.rows {
				t.Fatalf("%d rows, want %d", len(rows), want.rows)
			}
			for number, cells := range want.some {
				if !slices.Equal(rows[number-1], cells) {
					t.Errorf("row %d\n got %q\nwant %q", number, rows[number-1], cells)
				}
			}
			rates := 0
			for i, row := range rows[3:] {
				for j, text := range row[min(3, len(row)):] {
					if text != "" && !isPlainDecimal(text) {
						t.Errorf("cell %s is %q", cellName(i+3, j+3), text)
					}
					rates += min(len(text), 1)
				}
			}
			if rates != want.rates {
				t.Errorf("%d rates, want %d", rates, want.rates)
			}
		})
	}
}

// TestReal_Observations compares with the rates that another program read, by way of the bank's own service.
func TestReal_Observations(t *testing.T) {
	rows := mustRows(t, mustOpen(t, readReal(t, realDollar)), "Diaria")
	months := []string{"", "Ene", "Feb", "Mar", "Abr", "May", "Jun", "Jul", "Ago", "Sep", "Oct", "Nov", "Dic"}
	byDay := map[string][]string{}
	for _, row := range rows[3:] {
		byDay[fmt.Sprintf("%s-%02d-%02s", row[0], slices.Index(months, row[1]), row[2])] = row[3:]
	}
	records, err := csv.NewReader(bytes.NewReader(readReal(t, "observations.csv"))).ReadAll()
	must(t, err)
	const institution, buy, sell, effective = 1, 5, 6, 8
	compared := 0
	for _, record := range records {
		if record[institution] != "bcrd" || record[effective] > "2020-12-07" {
			continue
		}
		if want := []string{record[buy], record[sell]}; !slices.Equal(byDay[record[effective]], want) {
			t.Errorf("%s: %q, observed %q", record[effective], byDay[record[effective]], want)
		}
		compared++
	}
	if compared < 400 {
		t.Errorf("only %d days compared", compared)
	}
	t.Logf("%d days are the same", compared)
}
