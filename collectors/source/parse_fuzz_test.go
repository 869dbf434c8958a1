package source

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

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
	days := append(slices.Clone(answer.History), Day{Observations: answer.Observations})
	for _, day := range days {
		for _, o := range day.Observations {
			switch {
			case o.Buy == "" && o.Sell == "":
				return "an observation without a side"
			case !utf8.ValidString(o.Buy+o.Sell) || len(o.Buy) > rawBytesMax || len(o.Sell) > rawBytesMax:
				return fmt.Sprintf("the sides %q and %q", o.Buy, o.Sell)
			case o.Document != doc.Digest() || o.Kind != d.Kind || o.InstitutionID == "" || o.Currency == "" || o.Channel == "":
				return fmt.Sprintf("an incomplete observation: %+v", o)
			}
		}
	}
	return ""
}

func failureFault(answer Answer, err error) string {
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
	for _, page := range walls() {
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
		Method: HTMLFields, Fields: fieldsOf(map[string]Place{
			"USD buy": {At: ".buy"}, "USD buy+": {At: "script", Pattern: `buy ([0-9.]+)`}, "USD sell": {At: "input", Attribute: "value"},
			"EUR buy": {At: "p:nth-child(2) b"}, "EUR sell": {At: "#sell"},
		}),
	})
	fuzzParse(f, d, pageOf(`<b class="buy">58.90<sup>1</sup></b><input value="59,30"><p>1</p><p><b>66</b></p><i id="sell">-</i><script>buy 58</script>`))
}

func FuzzHTMLRows(f *testing.F) {
	d := bankTable()
	rows := d.Pages[0].Extract.Rows
	rows.Min, rows.Date = 1, &Date{Place: Place{At: "time"}, Form: DayMonthYear}
	fuzzParse(f, d, pageOf(`<table><tr><td rowspan=2>Tipo</td><td>Compra</td><td>Venta</td></tr><tr><td colspan=9>58</td></tr>
		<tr><td>Euro (EU)<time>1/9/2026</time></td><td>64.20</td><td>71.10</td></tr></table>`))
}

func FuzzJSONFields(f *testing.F) {
	fuzzParse(f, referenceJSON(), `{"result":{"actualPurchaseValue":58.9582,"actualSellingValue":"59.33","date":"2026-09-17T00:00:00Z"},"success":true}`,
		`{"result":{"actualPurchaseValue":5e1,"actualPurchaseValue":null}}`, `[[[[]]]]`)
}

func FuzzJSONRows(f *testing.F) {
	d := sourceOf(Extract{Method: JSONRows, Rows: &Rows{
		At: "a", Label: Place{At: "k"}, Value: &Place{At: "v", Pattern: `[0-9].*`}, Min: 1, Labels: map[string]Target{
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

// The property finds what it should: observations that are not the document's own, and errors that are no failures.
func TestParse_FuzzControl(t *testing.T) {
	d := sourceOf(Extract{Method: TextRegex, Text: &Text{Pattern: `(?P<buy>[0-9.]+)`}})
	if fault := parseFault(d, documentOf("58.90")); fault != "" {
		t.Error(fault)
	}
	d.Institution = ""
	if parseFault(d, documentOf("58.90")) == "" {
		t.Error("an observation without an institution is not found")
	}
	d.Pages = nil
	if parseFault(d, documentOf("58.90")) == "" {
		t.Error("a fault of our own passes for a failure of the page")
	}
}
