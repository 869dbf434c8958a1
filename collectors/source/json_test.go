package source

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

// sharedDocument is a real document that lies beside the repository; the test is skipped where it does not.
func sharedDocument(t *testing.T, name string) *Document {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", filepath.FromSlash(name)))
	if err != nil {
		t.Skipf("the real document %s is not here", name)
	}
	return &Document{Body: body}
}

func referenceJSON() *Definition {
	return sourceOf(Extract{
		Method: JSONFields, Fields: []Field{
			{Side: BuySide, Locator: Locator{At: "result.actualPurchaseValue"}}, {Side: SellSide, Locator: Locator{At: "result.actualSellingValue"}},
		},
		Date: &Date{Locator: Locator{At: "result.date"}, Form: values.ISODate}, Expect: []Expect{{Path: "success", Value: "true"}},
	})
}

// The real body of the central bank, 17 September 2026. Its T00:00:00Z is a day and no moment.
func TestJSONFields_RealReference(t *testing.T) {
	checkCase(t, referenceJSON(), sharedDocument(t, "samples/bcrd__GetActualExchangeRate__2026-09-17.json"), parseCase{
		want: []string{"test USD unspecified [58.9582] [59.3318] 2026-09-17"},
	})
}

func TestJSONFields_Envelope(t *testing.T) {
	const body = `{"result":{"actualPurchaseValue":58.9582,"actualSellingValue":59.3318,"date":"2026-09-17T00:00:00Z"},"success":true}`
	want := []string{"test USD unspecified [58.9582] [59.3318] 2026-09-17"}
	replaced := func(old, new string) string { return strings.Replace(body, old, new, 1) }
	checkCases(t, referenceJSON(), []parseCase{
		{"as it is", body, want, "", ""},
		{"with blanks and a mark of byte order", "\ufeff \n" + body + "\n", want, "", ""},
		{"digits as written", replaced("58.9582", "58.900"), []string{"test USD unspecified [58.900] [59.3318] 2026-09-17"}, "", ""},
		{"as text", replaced("58.9582", `"58.9582"`), want, "", ""},
		{"zeros that say nothing", replaced("58.9582", "58.958200"), []string{"test USD unspecified [58.958200] [59.3318] 2026-09-17"}, "", ""},
		{"a long tail of zeros", replaced("58.9582", "58.9582"+strings.Repeat("0", 300)), want, "", ""},
		{"no success", replaced("true", "false"), nil, WrongContent, `want "true" at "success", found "false"`},
		{"no word on success", replaced("success", "ok"), nil, Layout, `found nothing`},
		{"no date", replaced("date", "day"), nil, Layout, "no date"},
		{"a null date", replaced(`"2026-09-17T00:00:00Z"`, "null"), nil, Layout, "iso"},
		{"a day that does not exist", replaced("09-17", "09-31"), nil, Layout, "2026-09-31"},
		{"a moment instead of a day", replaced("T00:00:00Z", "T03:00:00Z"), nil, Layout, "iso"},
		{"other keys", strings.ReplaceAll(body, "actual", "current"), nil, Layout, "result.actualPurchaseValue"},
		{"keys in other letters", strings.ReplaceAll(body, "actual", "Actual"), nil, Layout, ""},
		{"a key twice", replaced(`"actualSellingValue":59.3318`, `"actualSellingValue":59.3318,"actualPurchaseValue":1`), nil, Value, "twice"},
		{"a key twice on the way", replaced(`{"result"`, `{"result":{},"result"`), nil, Value, "twice"},
		{"another key twice", replaced(`"success"`, `"other":1,"other":2,"success"`), want, "", ""},
		{"an object", replaced("58.9582", `{"value":58.9582}`), []string{
			"test USD unspecified [] [59.3318] 2026-09-17", `note: test USD: there is no buy at "result.actualPurchaseValue"`,
		}, "", ""},
		{"a flag", replaced("58.9582", "true"), []string{"test USD unspecified [true] [59.3318] 2026-09-17"}, "", ""},
		{"cut off", body[:len(body)-1], nil, WrongContent, "want JSON"},
		{"something behind it", body + "{}", nil, WrongContent, "want JSON"},
		{"empty", "", nil, Empty, "0 bytes"},
		{"blank", " \r\n\t", nil, Empty, ""},
		{"null", "null", nil, Layout, ""},
		{"a page", pageOf("58.9582"), nil, WrongContent, "want JSON"},
		{"XML", `<?xml version="1.0"?><feed/>`, nil, WrongContent, "want JSON"},
		{"nested", strings.Repeat(`[`, 50_000) + strings.Repeat(`]`, 50_000), nil, WrongContent, "max depth"},
		{"nested more", strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat(`}`, 20000), nil, WrongContent, ""},
	})
}

func TestJSONRows_Real(t *testing.T) {
	rows := &Rows{
		At: "exchangeRates", Label: Locator{At: "currency"}, Buy: &Locator{At: "buyingRate"}, Sell: &Locator{At: "sellingRate"}, Min: 2,
		Labels: map[string]Target{"usd": {Currency: "USD"}, "eur": {Currency: "EUR"}},
	}
	checkCase(t, sourceOf(Extract{Method: JSONRows, Rows: rows}), sharedDocument(t, "samples/bhd__modal-cambio-rate.partial.json"),
		parseCase{want: []string{"test USD unspecified [60.9] [62.9]", "test EUR unspecified [71.4] [76.4]"}})
	sides := &Rows{
		At: "data", Label: Locator{At: "name"}, Value: &Locator{At: "rate"}, Min: 1, Date: &Date{Locator: Locator{At: "date"}, Form: values.ISODate},
		Labels: map[string]Target{"dollarsellrate": {Currency: "USD", Side: SellSide}},
	}
	checkCase(t, sourceOf(Extract{Method: JSONRows, Rows: sides}), sharedDocument(t, "samples/indexa__api-rates.json"),
		parseCase{want: []string{"test USD unspecified [] [53.63] 2020-03-09"}})
}

// Codes of a house of its own, some unknown; the list may be empty, which is an answer with nothing in it.
func TestJSONRows_Codes(t *testing.T) {
	d := sourceOf(Extract{
		Method: JSONRows, Expect: []Expect{{Path: "status", Value: "OK"}}, Rows: &Rows{
			At: "data", Label: Locator{At: "coinCode"}, Buy: &Locator{At: "purchaseValue"}, Sell: &Locator{At: "saleValue"}, Min: 2,
			Labels: map[string]Target{"2": {Currency: "USD"}, "4": {Currency: "EUR"}, "33": {Currency: "CHF"}},
		},
	})
	checkCases(t, d, []parseCase{
		{
			"numbers and texts",
			`{"status":"OK","data":[{"coinCode":4,"purchaseValue":"66.80","saleValue":70.9},{"coinCode":"2","purchaseValue":57.1,"saleValue":"59.80"},
			{"coinCode":99,"purchaseValue":1},{"purchaseValue":1},7,null]}`,
			[]string{"test EUR unspecified [66.80] [70.9]", "test USD unspecified [57.1] [59.80]", `note: unknown label "99"`}, "", "",
		},
		{"a list without entries", `{"status":"OK","data":[]}`, nil, Empty, "no entries"},
		{"no list", `{"status":"OK","data":{}}`, nil, Layout, "found an object"},
		{"nothing", `{"status":"OK"}`, nil, Layout, "no list"},
		{"more than rates", `{"status":"OK","data":[0` + strings.Repeat(",0", 100_000) + `]}`, nil, WrongContent, "more than 5000 entries"},
		{"an error", `{"status":"ERROR","data":[]}`, nil, WrongContent, "ERROR"},
		{"too few", `{"status":"OK","data":[{"coinCode":4,"purchaseValue":66.8}]}`, nil, Layout, "want at least 2"},
		{"all codes new", `{"status":"OK","data":[{"coinCode":5,"saleValue":1},{"coinCode":6,"saleValue":1}]}`, nil, Layout, `unknown label "5"`},
		{"a key twice in a row", `{"status":"OK","data":[{"coinCode":4,"coinCode":2,"saleValue":1}]}`, nil, Value, "twice"},
	})
}

// One row for each side: the sides meet again in one quote, whatever the order.
func TestJSONRows_OneSideEach(t *testing.T) {
	d := sourceOf(Extract{Method: JSONRows, Rows: &Rows{
		Label: Locator{At: "name"}, Value: &Locator{At: "rate"}, Min: 1, Labels: map[string]Target{
			"dollarbuyrate": {Currency: "USD", Side: BuySide}, "dollarsellrate": {Currency: "USD", Side: SellSide},
			"eurobuyrate": {Currency: "EUR", Side: BuySide}, "reference": {Currency: "EUR", Channel: "cash", Side: BothSides},
		},
	}})
	checkCases(t, d, []parseCase{
		{
			"all", `[{"name":"dollarsellrate","rate":59.8},{"name":"eurobuyrate","rate":66},{"name":"dollarbuyrate","rate":57},
			{"name":"dollarbuyrate","rate":57},{"name":"reference","rate":67}]`,
			[]string{"test USD unspecified [57] [59.8]", "test EUR unspecified [66] []", "test EUR cash [67] [67]"}, "", "",
		},
		{
			"two that differ", `[{"name":"dollarsellrate","rate":59.8},{"name":"dollarsellrate","rate":60}]`,
			[]string{"test USD unspecified [] [59.8]", "test USD unspecified [] [60]"}, "", "",
		},
	})
}

func dollarSheet() *Definition {
	d := sourceOf(Extract{
		Method: XLSXRows, Sheet: &Sheet{Name: "diaria", Year: "ano", Month: "mes", Day: "dia"},
		Fields: []Field{{Side: BuySide, Locator: Locator{At: "compra"}}, {Side: SellSide, Locator: Locator{At: "venta"}}},
	})
	d.Kind = engine.Reference
	return d
}

func currencySheet() *Definition {
	d := dollarSheet()
	d.Pages[0].Extract.Sheet.Name = ""
	d.Pages[0].Extract.Fields = nil
	for currency, heading := range map[string]string{"AUD": "dolar australiano", "EUR": "euro", "GBP": "libra esterlina", "VES": "bolivar fuerte venezolano"} {
		d.Pages[0].Extract.Fields = append(d.Pages[0].Extract.Fields, Field{Currency: currency, Side: BothSides, Locator: Locator{At: heading}})
	}
	slices.SortFunc(d.Pages[0].Extract.Fields, func(a, b Field) int { return strings.Compare(a.Currency, b.Currency) })
	return d
}

// table makes cells of lines: columns are separated by bars.
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

func parseCells(d *Definition, rows [][]string) (Result, *Failure) {
	r := &parser{source: d, page: &d.Pages[0], digest: "digest", patterns: map[string]*regexp.Regexp{}}
	r.readSheet(rows)
	return Result{Observations: r.newest, History: r.history, Notes: r.notes.list()}, r.failure
}

func sheetLines(answer Result) []string {
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
		"2026-09-16: test USD unspecified [58.95] [59.3] 2026-09-16", // the noise of binary fractions is rounded away
		"test USD unspecified [58.9582] [59.3318] 2026-09-17",
	)
}

func TestI2_CellsAreRoundedToTheEighthDigit(t *testing.T) {
	d := dollarSheet()
	for _, c := range [][2]string{
		{"58.949999999999996", "58.95"}, {"58.9", "58.9"}, {"58.900", "58.900"}, {"58,90", "58.90"}, {"58.94999", "unreadable: 58.94999"},
		{"58.949949999999999", "unreadable: 58.949949999999999"}, {"#N/A", "#N/A"}, {"TRUE", "TRUE"}, {"N/D", ""},
		{"58.9 59.1", "58.9 59.1"}, {"-1.5", "-1.5"},
	} {
		checkSheet(t, d, cellsOf("Año|Mes|Día|Compra|Venta", "2026|Sep|15|"+c[0]+"|59.2"), "test USD unspecified ["+c[1]+"] [59.2] 2026-09-15")
	}
}

// One value for each currency; headings with asterisks; a column of an edition that this one has not, and one that
// has no code.
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

// A row that can't be right is left out and noted; more than one in a hundred, and the sheet is another one than it
// was.
func TestXLSXRows_BadRows(t *testing.T) {
	for _, c := range [][2]string{
		{"2026|Sep|31|58|59", `row 152 is skipped: its date "2026 Sep 31" does not exist`},
		{"26|Sep|30|58|59", `row 152 is skipped: its date "26 Sep 30" does not exist`},
		{"2026|??|30|58|59", `row 152 is skipped: its date "2026 ?? 30" does not exist`},
		{"2025|Dic|31|58|59", "row 152 is skipped: its date 2025-12-31 is before 2026-05-30"},
		{"2026|May|30|58|59", "row 152 is skipped: its values for 2026-05-30 differ from the row before"},
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
		{"headings far below", append(make([][]string, headingRowsMax), cellsOf("Año|Mes|Día|Compra", "2026|Sep|17|58")...), Layout},
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

// Other documents, and workbooks without the sheet.
func TestXLSXRows_NoSuchSheet(t *testing.T) {
	d := dollarSheet()
	d.Pages[0].Extract.Sheet.Name = "mensual"
	_, err := d.Parse(0, sharedDocument(t, "bcrd__TASA_DOLAR_REFERENCIA_MC__2023-04-20.xlsx"))
	wantFailure(t, err, Layout, "Diaria")
}
