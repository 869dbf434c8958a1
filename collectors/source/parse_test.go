package source

import (
	"errors"
	"fmt"
	"reflect"
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

// Every side that Parse lets through as text is either a rate or something that the engine refuses.
func TestI3_UnreadableTextIsNotADecimal(t *testing.T) {
	for _, text := range []string{"58.90", "58", " 58.90 ", "", "\xff", "58.90" + strings.Repeat(" ", 100) + "x", strings.Repeat("1", 70)} {
		if got := unreadableText(text); got == "" || len(got) > unreadableBytesMax || isDecimal(got) {
			t.Errorf("raw(%q) = %q", text, got)
		}
	}
}

func isDecimal(text string) bool {
	_, err := engine.ReadDecimal(text)
	return err == nil
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

// fuzzParse feeds bytes with a type to one source.
func fuzzParse(f *testing.F, d *Definition, seeds ...string) {
	for _, seed := range append(seeds, "", "{}", "[]", "<html>", "PK\x03\x04", "\xff\xfe<\x00h\x00", pageOf(goodTable)) {
		f.Add("", []byte(seed))
		f.Add("text/html; charset=utf-8", []byte(seed))
	}
	for _, page := range botProtections() {
		f.Add("text/html; charset=iso-8859-1", []byte(page))
	}
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		if fault := parseFault(d, &Document{ContentType: contentType, Body: body}); fault != "" {
			t.Fatal(fault)
		}
	})
}

func FuzzHTMLFields(f *testing.F) {
	d := sourceOf(Extract{
		Method: HTMLFields, Fields: fieldsOf(map[string]Locator{
			"USD buy": {At: ".buy"}, "USD buy+": {At: "script", Pattern: `buy ([0-9.]+)`}, "USD sell": {At: "input", Attribute: "value"},
			"EUR buy": {At: "p:nth-child(2) b"}, "EUR sell": {At: "#sell"},
		}),
	})
	fuzzParse(f, d, pageOf(`<b class="buy">58.90<sup>1</sup></b><input value="59,30"><p>1</p><p><b>66</b></p><i id="sell">-</i><script>buy 58</script>`))
}

func FuzzHTMLRows(f *testing.F) {
	d := bankTable()
	rows := d.Pages[0].Extract.Rows
	rows.Min, rows.Date = 1, &Date{Locator: Locator{At: "time"}, Form: values.ISODate}
	fuzzParse(f, d, pageOf(`<table><tr><td rowspan=2>Tipo</td><td>Compra</td><td>Venta</td></tr><tr><td colspan=9>58</td></tr>
		<tr><td>Euro (EU)<time>2026-09-01</time></td><td>64.20</td><td>71.10</td></tr></table>`))
}

func FuzzJSONFields(f *testing.F) {
	fuzzParse(f, referenceJSON(), `{"result":{"actualPurchaseValue":58.9582,"actualSellingValue":"59.33","date":"2026-09-17T00:00:00Z"},"success":true}`,
		`{"result":{"actualPurchaseValue":5e1,"actualPurchaseValue":null}}`, `[[[[]]]]`)
}

func FuzzJSONRows(f *testing.F) {
	d := sourceOf(Extract{Method: JSONRows, Rows: &Rows{
		At: "a", Label: Locator{At: "k"}, Value: &Locator{At: "v", Pattern: `[0-9].*`}, Min: 1, Labels: map[string]Target{
			"b": {Side: BuySide}, "s": {Side: SellSide}, "e": {Currency: "EUR", Side: BothSides},
		},
	}})
	fuzzParse(f, d, `{"a":[{"k":"B","v":58.9},{"k":"s","v":"RD$ 59,30"},{"k":"e","v":0},{"k":"x","v":null},1]}`)
}

func FuzzTextRegex(f *testing.F) {
	d := sourceOf(Extract{Method: TextRegex, Text: &Text{
		Pattern: `(?P<label>[a-zó]+) (?P<buy>[^ ]+) (?P<sell>[^ ]+)`, Labels: map[string]Target{"dolar": {}, "euro": {Currency: "EUR"}},
	}})
	fuzzParse(f, d, "dólar 58.90 59.30 euro 1.234,56 -", "euro 0 0", "dolar 58.9¹ x")
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
