package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tasard/tasard/engine"
)

func dollarSheet() *Definition {
	d := sourceOf(Extract{
		Method: XLSXRows, Sheet: &Sheet{Name: "diaria", Year: "ano", Month: "mes", Day: "dia"},
		Fields: []Field{{Side: BuySide, Place: Place{At: "compra"}}, {Side: SellSide, Place: Place{At: "venta"}}},
	})
	d.Kind = engine.Reference
	return d
}

func currencySheet() *Definition {
	d := dollarSheet()
	d.Pages[0].Extract.Sheet.Name = ""
	d.Pages[0].Extract.Fields = nil
	for currency, heading := range map[string]string{"AUD": "dolar australiano", "EUR": "euro", "GBP": "libra esterlina", "VES": "bolivar fuerte venezolano"} {
		d.Pages[0].Extract.Fields = append(d.Pages[0].Extract.Fields, Field{Currency: currency, Side: BothSides, Place: Place{At: heading}})
	}
	slices.SortFunc(d.Pages[0].Extract.Fields, func(a, b Field) int { return strings.Compare(a.Currency, b.Currency) })
	return d
}

// table makes cells of lines: columns are told apart by bars.
func cellsOf(lines ...string) [][]string {
	var rows [][]string
	for _, line := range lines {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " ")
		}
		rows = append(rows, cells)
	}
	return rows
}

// parseCells reads cells without a workbook around them.
func parseCells(d *Definition, rows [][]string) (Answer, *Failure) {
	r := &reading{source: d, page: &d.Pages[0], digest: "digest"}
	failure := r.compile()
	if failure == nil {
		failure = r.readSheet(rows)
	}
	return Answer{Observations: r.newest, History: r.history, Notes: r.notes.list()}, failure
}

func sheetLines(answer Answer) []string {
	var texts []string
	for _, day := range answer.History {
		for _, o := range day.Observations {
			texts = append(texts, day.Date.String()+": "+line(o))
		}
	}
	return append(texts, lines(answer)...)
}

func checkSheet(t *testing.T, d *Definition, rows [][]string, want ...string) {
	t.Helper()
	answer, failure := parseCells(d, rows)
	if failure != nil {
		t.Fatal(failure)
	}
	if got := sheetLines(answer); !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestXLSXRows_Dollar(t *testing.T) {
	rows := cellsOf(
		"TASA DE CAMBIO DE REFERENCIA | | | | ", "Mercado spot", " Año: | Mes | DÍA | Compra* | Venta",
		"2026 | Sep | 15 | 58.9 | 59.2", "2026 | Set | 16 | 58.949999999999996 | 59.3", "2026 | Septiembre | 17 | 58.9582 | 59.3318",
		"", " | | | | ", "2026 | Sep | 18 | | ", "2026 | Sep | 19", "Fuente: Banco Central, 2026", "* Promedio ponderado | | | 1.5",
	)
	checkSheet(t, dollarSheet(), rows,
		"2026-09-15: test USD unspecified [58.9] [59.2] 2026-09-15",
		"2026-09-16: test USD unspecified [58.95] [59.3] 2026-09-16", // the noise of binary fractions is rounded away (I2)
		"test USD unspecified [58.9582] [59.3318] 2026-09-17",
	)
}

func TestI2_CellsAreRoundedToTheEighthDigit(t *testing.T) {
	d := dollarSheet()
	for _, c := range [][2]string{
		{"58.949999999999996", "58.95"}, {"58.9", "58.9"}, {"58.900", "58.900"}, {"58,90", "58.90"}, {"58.94999", "unreadable: 58.94999"},
		{"58.949949999999999", "unreadable: 58.949949999999999"}, {"0.00000000001", "0"}, {"#N/A", "#N/A"}, {"TRUE", "TRUE"}, {"N/D", ""},
		{"58.9 59.1", "58.9 59.1"}, {"-1.5", "-1.5"},
	} {
		checkSheet(t, d, cellsOf("Año|Mes|Día|Compra|Venta", "2026|Sep|15|"+c[0]+"|59.2"), "test USD unspecified ["+c[1]+"] [59.2] 2026-09-15")
	}
}

// One value for each currency; headings with asterisks; a column of an edition that this one has not, and one that has no code.
func TestXLSXRows_Currencies(t *testing.T) {
	rows := cellsOf("", "", "Año|Mes|Día|LIBRA ESCOCESA|EURO|LIBRA  ESTERLINA|*BOLÍVAR FUERTE VENEZOLANO",
		"2020|Dic|4|77|70.1|76.9|", "2020|Dic|7|77|70.4612|77.0118|0.0001")
	checkSheet(t, currencySheet(), rows,
		"2020-12-04: test EUR unspecified [70.1] [70.1] 2020-12-04", "2020-12-04: test GBP unspecified [76.9] [76.9] 2020-12-04",
		"test EUR unspecified [70.4612] [70.4612] 2020-12-07", "test GBP unspecified [77.0118] [77.0118] 2020-12-07",
		"test VES unspecified [0.0001] [0.0001] 2020-12-07", `note: no column, or more than one, has the heading "dolar australiano"`,
	)
}

// manyDays is so many good rows, that a bad one beside them is one of less than a hundred.
func manyDays(extra ...string) [][]string {
	texts := []string{"Año|Mes|Día|Compra|Venta"}
	day, _ := engine.ParseDate("2026-01-01")
	for i := range 150 {
		date := day.AddDays(i).String()
		texts = append(texts, fmt.Sprintf("%s|%s|%s|58.%d|59.%d", date[:4], date[5:7], date[8:], 100+i, 100+i))
	}
	return cellsOf(append(texts, extra...)...)
}

// A row that can't be right is left out and told; more than one in a hundred, and the sheet is another one than it was.
func TestXLSXRows_BadRows(t *testing.T) {
	for _, c := range [][2]string{
		{"2026|Sep|31|58|59", `row 152 is left out: its date "2026 Sep 31" is none`},
		{"26|Sep|30|58|59", `row 152 is left out: its date "26 Sep 30" is none`},
		{"2026|??|30|58|59", `row 152 is left out: its date "2026 ?? 30" is none`},
		{"2025|Dic|31|58|59", "row 152 is left out: its date 2025-12-31 goes back behind 2026-05-30"},
		{"2026|May|30|58|59", "row 152 is left out: it says something else of 2026-05-30 than the row before"},
		{"2026|5|30|58.249|59.249", ""},
		{"2026|5|31||", ""},
	} {
		answer, failure := parseCells(dollarSheet(), manyDays(c[0]))
		if failure != nil || len(answer.History) != 149 || line(answer.Observations[0]) != "test USD unspecified [58.249] [59.249] 2026-05-30" {
			t.Fatalf("%s: %v, %d days before %q", c[0], failure, len(answer.History), lines(answer))
		}
		if got := strings.Join(answer.Notes, ""); got != c[1] {
			t.Errorf("%s: the notes %q, want %q", c[0], got, c[1])
		}
		if c[1] == "" {
			continue
		}
		_, failure = parseCells(dollarSheet(), manyDays(c[0], c[0]))
		if failure == nil {
			t.Errorf("%s twice among 152 rows is no failure", c[0])
			continue
		}
		wantFailure(t, failure, Layout, "2 of 152 rows")
	}
}

func TestXLSXRows_Failures(t *testing.T) {
	for _, c := range []struct {
		name string
		rows [][]string
		kind FailureKind
	}{
		{"no rows", nil, Layout},
		{"other headings", cellsOf("Fecha|Compra|Venta", "2026-09-17|58|59"), Layout},
		{"a heading twice", cellsOf("Año|Mes|Día|Día|Compra", "2026|Sep|17|18|58"), Layout},
		{"headings far below", append(make([][]string, headingRowsMost), cellsOf("Año|Mes|Día|Compra", "2026|Sep|17|58")...), Layout},
		{"no column of ours", cellsOf("Año|Mes|Día|Buy|Sell", "2026|Sep|17|58|59"), Layout},
		{"the columns twice", cellsOf("Año|Mes|Día|Compra|Venta|Compra|Venta", "2026|Sep|17|58|59|1|2"), Layout},
		{"no row with a value", cellsOf("Año|Mes|Día|Compra|Venta", "2026|Sep|17||"), Layout},
		{"zeros", cellsOf("Año|Mes|Día|Compra|Venta", "2026|Sep|17|0|0"), Empty},
		{"letters", cellsOf("Año|Mes|Día|Compra|Venta", "2026|Sep|17|a|b"), Value},
	} {
		answer, failure := parseCells(dollarSheet(), c.rows)
		if failure == nil {
			t.Errorf("%s: %q", c.name, sheetLines(answer))
			continue
		}
		t.Run(c.name, func(t *testing.T) { wantFailure(t, failure, c.kind, "") })
	}
}

// What is no workbook, or has no such sheet.
func TestXLSXRows_NoSuchSheet(t *testing.T) {
	d := dollarSheet()
	d.Pages[0].Extract.Sheet.Name = "mensual"
	_, err := d.Parse(0, sharedDocument(t, "bcrd__TASA_DOLAR_REFERENCIA_MC__2020-12-07.xls"))
	wantFailure(t, err, Layout, "Diaria")
}

// The real workbooks of the central bank, editions of 2020: all of their days.
func TestXLSXRows_RealWorkbooks(t *testing.T) {
	if RaceDetector {
		t.Skip("one goroutine does it all: without the race detector")
	}
	dollar := sharedDocument(t, "bcrd__TASA_DOLAR_REFERENCIA_MC__2020-12-07.xls")
	d := dollarSheet()
	d.DecimalsMax = 8 // 38.0472112 stands there on 17 June 2011
	answer, err := d.Parse(0, dollar)
	if err != nil || len(answer.Notes) > 0 {
		t.Fatal(err, answer.Notes)
	}
	if got := len(answer.History); got != 7516 {
		t.Errorf("%d days before the newest, want 7516", got)
	}
	if got := answer.History[0].Observations[0]; line(got) != "test USD unspecified [11.2] [11.5] 1991-01-02" || got.Document != dollar.Digest() {
		t.Errorf("the first day is %s", line(got))
	}
	if got := line(answer.Observations[0]); got != "test USD unspecified [58.098] [58.3397] 2020-12-07" {
		t.Errorf("the newest day is %s", got)
	}
	checkDays(t, answer)
	d = currencySheet()
	d.DecimalsMax = 8
	answer, err = d.Parse(0, sharedDocument(t, "bcrd__TASAS_CONVERTIBLES_OTRAS_MONEDAS__2020-03-27.xls"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"test EUR unspecified [59.0646] [59.0646] 2020-03-27", "test GBP unspecified [65.7367] [65.7367] 2020-03-27",
		"test VES unspecified [5.3875] [5.3875] 2020-03-27",
		`note: no column, or more than one, has the heading "dolar australiano"`, `note: row 737 is left out: its date "2006 Nov 31" is none`,
	}
	if got := lines(answer); !slices.Equal(got, want) || len(answer.History) != 4070 {
		t.Errorf("%d days, then %q", len(answer.History), got)
	}
	checkDays(t, answer)
}

// checkDays holds history to its promise: days in order, each with observations of this day that the engine can read.
func checkDays(t *testing.T, answer Answer) {
	t.Helper()
	last := engine.Date(0)
	for _, day := range append(answer.History[:len(answer.History):len(answer.History)],
		Day{Date: answer.Observations[0].EffectiveDate, Observations: answer.Observations}) {
		if day.Date <= last || len(day.Observations) == 0 {
			t.Fatalf("the day %s with %d observations comes after %s", day.Date, len(day.Observations), last)
		}
		last = day.Date
		for _, o := range day.Observations {
			if o.EffectiveDate != day.Date || !isDecimal(o.Buy) || !isDecimal(o.Sell) {
				t.Fatalf("the day %s has %s", day.Date, line(o))
			}
		}
	}
}
