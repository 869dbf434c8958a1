package source

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

// All documents of these tests are synthetic: small pages in the shapes that institutions use, with invented rates.

func sourceOf(extract Extract) *Definition {
	return &Definition{
		ID: "test-site", Institution: "test", Kind: engine.Commercial, Channel: engine.Unspecified, DecimalsMax: 4,
		Pages: []Page{{Name: "", Currency: "USD", Extract: extract}},
	}
}

func documentOf(text string) *Document { return &Document{Body: []byte(text)} }

func pageOf(body string) string {
	return "<!DOCTYPE html><html lang=\"es\"><head><title>Banco</title></head><body>" + body + "</body></html>"
}

// lines is an answer as text: one line for each observation, then one for each note.
func lines(answer Result) []string {
	var texts []string
	for _, o := range answer.Observations {
		texts = append(texts, line(o))
	}
	for _, note := range answer.Notes {
		texts = append(texts, "note: "+note)
	}
	return texts
}

func line(o engine.Observation) string {
	parts := []string{o.InstitutionID, o.Currency, string(o.Channel), "[" + o.Buy + "]", "[" + o.Sell + "]"}
	if !o.EffectiveDate.IsZero() {
		parts = append(parts, o.EffectiveDate.String())
	}
	if !o.PublishedAt.IsZero() {
		parts = append(parts, o.PublishedAt.Format(time.RFC3339))
	}
	return strings.Join(parts, " ")
}

// parseCase is one document with what it says, or how it fails.
type parseCase struct {
	name     string
	document string
	want     []string // lines
	fails    FailureKind
	detail   string // a part of the failure's text
}

func checkCases(t *testing.T, d *Definition, cases []parseCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Helper()
			checkCase(t, d, documentOf(c.document), c)
		})
	}
}

func checkCase(t *testing.T, d *Definition, doc *Document, c parseCase) {
	t.Helper()
	answer, err := d.Parse(0, doc)
	if c.fails != "" {
		wantFailure(t, err, c.fails, c.detail)
		if len(answer.Observations)+len(answer.History) > 0 {
			t.Errorf("a failure with observations: %q", lines(answer))
		}
		return
	}
	if err != nil {
		t.Fatalf("%v; notes %q", err, answer.Notes)
	}
	if got := lines(answer); !slices.Equal(got, c.want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
	}
	for _, o := range answer.Observations {
		if o.Document != doc.Digest() || o.Kind != d.Kind {
			t.Errorf("an observation of document %.8q, kind %q", o.Document, o.Kind)
		}
	}
}

func wantFailure(t *testing.T, err error, kind FailureKind, detail string) {
	t.Helper()
	var failure *Failure
	if !errors.As(err, &failure) {
		t.Fatalf("got the error %v, want a failure %s", err, kind)
	}
	if failure.Kind != kind || !strings.Contains(failure.Error(), detail) {
		t.Errorf("got the failure %v, want %s with %q", failure, kind, detail)
	}
}

// The nearest level that names an institution, currency or channel decides.
func TestParse_WhoseQuote(t *testing.T) {
	d := sourceOf(Extract{
		Method: JSONRows, Rows: &Rows{
			Label: Locator{At: "name"}, Buy: &Locator{At: "buy"}, Labels: map[string]Target{
				"own":   {},
				"other": {Institution: "other", Currency: "EUR", Channel: engine.Cash},
			},
		},
	})
	d.Channel = engine.Branch
	d.Kind = engine.Reference
	checkCase(t, d, documentOf(`[{"name":"OWN","buy":58.1},{"name":"other","buy":66}]`), parseCase{
		want: []string{"test USD branch [58.1] []", "other EUR cash [66] []"},
	})
}

func TestParse_NameOfThePageInTheFailure(t *testing.T) {
	d := sourceOf(Extract{Method: JSONFields, Fields: []Field{{Side: BuySide, Locator: Locator{At: "buy"}}}})
	d.Pages[0].Name = "dollars"
	_, err := d.Parse(0, documentOf(`{}`))
	wantFailure(t, err, Layout, "layout: dollars: ")
}

// An unreadable text is passed on, and quarantined by the engine; it must never look like a rate to it.
func TestI3_UnreadableSidesStayWhatTheyAre(t *testing.T) {
	d := sourceOf(Extract{Method: JSONFields, Fields: []Field{
		{Side: BuySide, Locator: Locator{At: "buy"}}, {Side: SellSide, Locator: Locator{At: "sell"}},
	}})
	d.Decimal, d.DecimalsMax = values.Point, 2
	checkCases(t, d, []parseCase{
		{"a footnote", `{"buy":"58.90 1","sell":"59.30"}`, []string{"test USD unspecified [58.90 1] [59.30]"}, "", ""},
		{"too many digits", `{"buy":"58.9051","sell":59.3}`, []string{"test USD unspecified [unreadable: 58.9051] [59.3]"}, "", ""},
		{"a number with too many digits", `{"buy":58.9051,"sell":59.3}`, []string{"test USD unspecified [unreadable: 58.9051] [59.3]"}, "", ""},
		{"a sign", `{"buy":-58.9,"sell":59.3}`, []string{"test USD unspecified [-58.9] [59.3]"}, "", ""},
		{"an exponent", `{"buy":5.89e1,"sell":59.3}`, []string{"test USD unspecified [5.89e1] [59.3]"}, "", ""},
		{"zero", `{"buy":0.00,"sell":59.3}`, []string{"test USD unspecified [] [59.3]", "note: test USD: one side is zero"}, "", ""},
		{"one side has no value", `{"buy":null,"sell":59.3}`, []string{"test USD unspecified [] [59.3]"}, "", ""},
		{
			"a long text", `{"buy":"` + strings.Repeat("ñ", 100) + `","sell":59.3}`,
			[]string{"test USD unspecified [" + strings.Repeat("ñ", 32) + "] [59.3]"}, "", "",
		},
		{"control characters", `{"buy":"58\n\u0000,","sell":59.3}`, []string{"test USD unspecified [58 ,] [59.3]"}, "", ""},
		{"nothing readable", `{"buy":"58.90 1","sell":"a"}`, nil, Value, "58.90 1"},
		{"nothing but zeros", `{"buy":0,"sell":"0.00"}`, nil, Empty, "2 values"},
		{"nothing but none", `{"buy":null,"sell":"N/A"}`, nil, Empty, ""},
		{"a zero and a letter", `{"buy":0,"sell":"x"}`, nil, Value, ""},
	})
}

// Notes are few and short, whatever a page says.
func TestParse_NotesAreBounded(t *testing.T) {
	var rows strings.Builder
	for i := range 1000 {
		rows.WriteString(`{"name":"` + strings.Repeat("x", i) + `\u0007","buy":1},`)
	}
	d := sourceOf(Extract{Method: JSONRows, Rows: &Rows{
		Label: Locator{At: "name"}, Buy: &Locator{At: "buy"}, Labels: map[string]Target{"dolar": {}},
	}})
	answer, err := d.Parse(0, documentOf(`[`+rows.String()+`{"name":"Dólar","buy":58.1}]`))
	if err != nil || len(answer.Observations) != 1 || len(answer.Notes) > notesMax+1 {
		t.Fatalf("%d observations, %d notes, %v", len(answer.Observations), len(answer.Notes), err)
	}
	for _, note := range answer.Notes {
		if len(note) > 200 || strings.ContainsFunc(note, func(r rune) bool { return r < ' ' }) {
			t.Errorf("the note %q", note)
		}
	}
}

// parseFault is what every answer promises, whatever the document is; "" when it is kept.
func parseFault(d *Definition, doc *Document) string {
	answer, err := d.Parse(0, doc)
	again, errAgain := d.Parse(0, doc)
	if !reflect.DeepEqual(answer, again) || fmt.Sprint(err) != fmt.Sprint(errAgain) {
		return "the same bytes give two answers"
	}
	if err != nil {
		return failureFault(answer, err)
	}
	if len(answer.Observations) == 0 {
		return "neither an observation nor a failure"
	}
	for _, note := range answer.Notes {
		if len(note) > 1000 || !utf8.ValidString(note) || strings.ContainsAny(note, "\r\n\x00") {
			return fmt.Sprintf("the note %q", note)
		}
	}
	days := append(slices.Clone(answer.History), HistoryDay{Observations: answer.Observations})
	for _, day := range days {
		for _, o := range day.Observations {
			switch {
			case o.Buy == "" && o.Sell == "":
				return "an observation without a side"
			case !utf8.ValidString(o.Buy+o.Sell) || len(o.Buy) > unreadableBytesMax || len(o.Sell) > unreadableBytesMax:
				return fmt.Sprintf("the sides %q and %q", o.Buy, o.Sell)
			case o.Document != doc.Digest() || o.Kind != d.Kind || o.InstitutionID == "" || o.Currency == "" || o.Channel == "":
				return fmt.Sprintf("an incomplete observation: %+v", o)
			}
		}
	}
	return ""
}

func failureFault(answer Result, err error) string {
	var failure *Failure
	kinds := []FailureKind{Blocked, WrongContent, Empty, Layout, Value}
	switch {
	case !errors.As(err, &failure) || !slices.Contains(kinds, failure.Kind):
		return "the error " + err.Error()
	case len(answer.Observations)+len(answer.History) > 0:
		return "a failure with observations"
	case !utf8.ValidString(err.Error()) || len(err.Error()) > 4000:
		return fmt.Sprintf("the failure %q", err)
	}
	return ""
}

// FuzzParse feeds bytes with a type to a source of each method that reads text.
func FuzzParse(f *testing.F) {
	rows := bankTable()
	rows.Pages[0].Extract.Rows.Min, rows.Pages[0].Extract.Rows.Date = 1, &Date{Locator: Locator{At: "time"}, Form: values.ISODate}
	definitions := []*Definition{rows, referenceJSON(), sourceOf(Extract{
		Method: HTMLFields, Fields: fieldsOf(map[string]Locator{
			"USD buy": {At: ".buy"}, "USD buy+": {At: "script", Pattern: `buy ([0-9.]+)`}, "USD sell": {At: "input", Attribute: "value"},
			"EUR buy": {At: "p:nth-child(2) b"}, "EUR sell": {At: "#sell"},
		}),
	}), sourceOf(Extract{Method: JSONRows, Rows: &Rows{
		At: "a", Label: Locator{At: "k"}, Value: &Locator{At: "v", Pattern: `[0-9].*`}, Min: 1, Labels: map[string]Target{
			"b": {Side: BuySide}, "s": {Side: SellSide}, "e": {Currency: "EUR", Side: BothSides},
		},
	}}), sourceOf(Extract{Method: TextRegex, Text: &Text{
		Pattern: `(?P<label>[a-zó]+) (?P<buy>[^ ]+) (?P<sell>[^ ]+)`, Labels: map[string]Target{"dolar": {}, "euro": {Currency: "EUR"}},
	}})}
	for _, seed := range slices.AppendSeq([]string{
		"", "{}", "[]", "<html>", "PK\x03\x04", "\xff\xfe<\x00h\x00", pageOf(goodTable), "dólar 58.90 59.30 euro 1.234,56 -", "euro 0 0", "dolar 58.9¹ x",
		pageOf(`<b class="buy">58.90<sup>1</sup></b><input value="59,30"><p>1</p><p><b>66</b></p><i id="sell">-</i><script>buy 58</script>`),
		pageOf(`<table><tr><td rowspan=2>Tipo</td><td>Compra</td><td>Venta</td></tr><tr><td colspan=9>58</td></tr>
		<tr><td>Euro (EU)<time>2026-09-01</time></td><td>64.20</td><td>71.10</td></tr></table>`),
		`{"result":{"actualPurchaseValue":58.9582,"actualSellingValue":"59.33","date":"2026-09-17T00:00:00Z"},"success":true}`,
		`{"result":{"actualPurchaseValue":5e1,"actualPurchaseValue":null}}`, `[[[[]]]]`,
		`{"a":[{"k":"B","v":58.9},{"k":"s","v":"RD$ 59,30"},{"k":"e","v":0},{"k":"x","v":null},1]}`,
	}, maps.Values(botProtections())) {
		f.Add("", []byte(seed))
		f.Add("text/html; charset=utf-8", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		for _, d := range definitions {
			if fault := parseFault(d, &Document{ContentType: contentType, Body: body}); fault != "" {
				t.Fatalf("%s: %s", d.Pages[0].Extract.Method, fault)
			}
		}
	})
}

// FuzzXLSXRows takes the cells as text, one row a line: the bytes of workbooks are fuzzed where they are read.
func FuzzXLSXRows(f *testing.F) {
	f.Add("Año|Mes|Día|Compra|Venta\n2026|Sep|17|58.9|59.3\n2026|Sep|18|58.949999999999996|\n2026|Sep|31|1|2\nnota")
	f.Add("\n\nAño|Mes|Día|Venta|Compra\n2026|9|1|0|a\n2026|9|1|0|b")
	f.Fuzz(func(t *testing.T, text string) {
		answer, failure := parseCells(dollarSheet(), cellsOf(strings.Split(text, "\n")...))
		again, failureAgain := parseCells(dollarSheet(), cellsOf(strings.Split(text, "\n")...))
		if !reflect.DeepEqual(answer, again) || (failure == nil) != (failureAgain == nil) {
			t.Fatal("the same cells give two answers")
		}
		if (failure == nil) != (len(answer.Observations) > 0) {
			t.Fatalf("%v with %d observations", failure, len(answer.Observations))
		}
		last := ""
		for _, day := range answer.History {
			if day.Date.String() <= last || len(day.Observations) == 0 || day.Observations[0].EffectiveDate != day.Date {
				t.Fatalf("the day %s after %s: %+v", day.Date, last, day.Observations)
			}
			last = day.Date.String()
		}
		if failure == nil && answer.Observations[0].EffectiveDate.String() <= last {
			t.Fatalf("the newest day is %s, the one before it %s", answer.Observations[0].EffectiveDate, last)
		}
	})
}

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
