package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

func TestT10_DateForms(t *testing.T) {
	for form, days := range map[DateForm]map[string][]string{ // by what is read: a day, and a moment
		ISODate: {
			"2026-09-17 ": {
				"2026-09-17", "2026-09-17T00:00:00Z", "2026-09-17T00:00:00", "2026-09-17T00:00:00.000Z", "2026-09-17 00:00", "2026-09-17T00:00:00-04:00",
			},
			"2024-02-29 ": {" 2024-02-29\u00a0"},
		},
		DayMonthYear: {"2026-09-17 ": {"17/09/2026", "17-09-2026", "17.09.2026"}, "2026-09-07 ": {"7/9/2026"}},
		DayTime: {
			"2026-09-17 2026-09-17T12:15:00Z": {"17/09/2026 08:15", "17/09/2026 8:15"},
			"2026-09-17 2026-09-18T03:59:58Z": {"17/09/2026 23:59:58"},
			"2026-09-17 2026-09-18T00:15:00Z": {"17/09/2026, 08:15 p. m."},
			"2026-09-17 2026-09-17T04:15:00Z": {"17/09/2026 12:15 AM"},
			"2026-09-17 2026-09-17T16:15:00Z": {"17/09/2026 12:15 pm"},
			"2026-09-17 2026-09-17T17:15:00Z": {"17/09/2026 - 1:15PM"},
		},
		SpanishDate: {
			"2026-09-17 ": {
				"17 de septiembre de 2026", "17 de Setiembre del 2026", "jueves, 17 de septiembre de 2026", "17-sep-2026", "17/Set/2026", "17 Sept. 2026",
			},
			"2025-01-01 ": {"Miércoles 1 de enero, 2025"}, "2026-12-01 ": {"1 DIC 2026"},
		},
		ISOMoment: {
			"2026-09-17 2026-09-17T16:30:00Z": {"2026-09-17T12:30:00-04:00", "2026-09-17T12:30:00", "2026-09-17 12:30:00.123456"},
			"2026-09-17 2026-09-18T02:30:00Z": {"2026-09-18T02:30:00Z"},
		},
	} {
		for want, texts := range days {
			for _, text := range texts {
				day, moment, err := readDate(text, form)
				got := day.String() + " "
				if !moment.IsZero() {
					got += moment.Format(time.RFC3339)
				}
				if err != nil || got != want {
					t.Errorf("%s %q is %s, %v; want %s", form, text, got, err, want)
				}
			}
		}
	}
}

func TestT10_DatesThatAreNone(t *testing.T) {
	for _, c := range []struct {
		form DateForm
		text string
	}{
		{ISODate, ""}, {ISODate, "17/09/2026"}, {ISODate, "2026-9-17"}, {ISODate, "26-09-17"}, {ISODate, "2026-02-29"}, {ISODate, "2026-13-01"},
		{ISODate, "2026-09-17T03:00:00Z"}, {ISODate, "2026-09-17 y"}, {ISODate, "0000-01-01"}, {ISODate, "1899-12-31"}, {ISODate, "3000-01-01"},
		{ISODate, "２０２６-09-17"}, {ISODate, "2026-09-17T00:00:00Z 2026-09-18"},
		{DayMonthYear, "17/09/26"}, {DayMonthYear, "09/17/2026"}, {DayMonthYear, "31/09/2026"}, {DayMonthYear, "17/09-2026"},
		{DayMonthYear, "0/9/2026"}, {DayMonthYear, "17/9/2026 08:15"}, {DayMonthYear, "Fecha: 17/09/2026"}, {DayMonthYear, "17/9/20266"},
		{DayTime, "17/09/2026"}, {DayTime, "17/09/26 08:15"}, {DayTime, "17/09/2026 24:00"}, {DayTime, "17/09/2026 08:60"},
		{DayTime, "17/09/2026 13:00 pm"}, {DayTime, "17/09/2026 0:30 am"}, {DayTime, "31/09/2026 08:15"}, {DayTime, "17/09/2026 08:15:61"},
		{SpanishDate, "17 de 2026"}, {SpanishDate, "17 de se de 2026"}, {SpanishDate, "17 de xyz de 2026"}, {SpanishDate, "31-sep-2026"},
		{SpanishDate, "17-sep-26"}, {SpanishDate, "Enero-Marzo"}, {SpanishDate, "septiembre 2026"}, {SpanishDate, "17 de january de 2026"},
		{ISOMoment, "2026-09-17"}, {ISOMoment, "2026-09-17T25:00:00Z"}, {ISOMoment, "2026-09-17T12:30:00 -0400"},
		{ISOMoment, "2026-09-17T12:30:00+99:99"}, {ISOMoment, "0001-01-01T00:00:00Z"},
		{"", "2026-09-17"},
	} {
		if day, moment, err := readDate(c.text, c.form); err == nil {
			t.Errorf("%s %q is %s %s, want an error", c.form, c.text, day, moment)
		}
	}
}

// Every day of some years comes back from every form, and no day that the calendar lacks.
func TestT10_EveryDay(t *testing.T) {
	names := []string{"", "ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sep", "oct", "nov", "dic"}
	for year := 2023; year <= 2024; year++ {
		for month := 1; month <= 12; month++ {
			for day := 1; day <= 31; day++ {
				iso := fmt.Sprintf("%d-%02d-%02d", year, month, day)
				want, _ := engine.ParseDate(iso) // zero where the calendar has no such day
				for form, text := range map[DateForm]string{
					ISODate: iso, DayMonthYear: fmt.Sprintf("%d/%d/%d", day, month, year), SpanishDate: fmt.Sprintf("%d-%s-%d", day, names[month], year),
					DayTime: fmt.Sprintf("%02d/%02d/%d 23:59", day, month, year), ISOMoment: iso + "T23:59:59",
				} {
					if got, _, err := readDate(text, form); got != want || (err == nil) != (want != 0) {
						t.Fatalf("%s %q is %v, %v", form, text, got, err)
					}
				}
				if got := sheetDate(fmt.Sprint(year), names[month], fmt.Sprint(day)); got != want {
					t.Fatalf("the cells of %s are %v", iso, got)
				}
			}
		}
	}
}

func FuzzReadDate(f *testing.F) {
	for _, text := range []string{
		"2026-09-17", "2026-09-17T00:00:00Z", "17/09/2026 08:15 p. m.", "17 de septiembre de 2026", "2026-09-17T12:30:00-04:00", "1-ene-2026", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, form := range []DateForm{ISODate, DayMonthYear, DayTime, SpanishDate, ISOMoment} {
			day, moment, err := readDate(text, form)
			switch {
			case err != nil && (!day.IsZero() || !moment.IsZero()):
				t.Fatalf("%s %q: an error with %s %s", form, text, day, moment)
			case err == nil && (day.IsZero() || day.String() < "1899-12-31" || day.String() > "3000-01-01"):
				t.Fatalf("%s %q is %s", form, text, day)
			case !moment.IsZero() && engine.DateOf(moment) != day:
				t.Fatalf("%s %q is %s and the moment %s", form, text, day, moment)
			}
		}
	})
}
