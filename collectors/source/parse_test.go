package source

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// All documents of these tests are synthetic: small pages in the shapes that institutions use, with invented rates.

// sourceOf is a source of one page that speaks for one bank.
func sourceOf(extract Extract) *Definition {
	return &Definition{
		ID: "test-site", Institution: "test", Kind: engine.Commercial, Channel: engine.Unspecified, DecimalsMax: 4,
		Pages: []Page{{Name: "", Currency: "USD", Extract: extract}},
	}
}

func documentOf(text string) *Document { return &Document{Body: []byte(text)} }

// pageOf is a whole page around a body.
func pageOf(body string) string {
	return "<!DOCTYPE html><html lang=\"es\"><head><title>Banco</title></head><body>" + body + "</body></html>"
}

// lines is an answer as text: one line for each observation, then one for each note.
func lines(answer Answer) []string {
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

func TestParse_NoSuchPage(t *testing.T) {
	for _, page := range []int{-1, 1} {
		_, err := sourceOf(Extract{Method: TextRegex, Text: &Text{}}).Parse(page, documentOf("58.90"))
		wantFailure(t, err, Internal, "1 pages")
	}
}

func TestParse_PatternThatCannotBeCompiled(t *testing.T) {
	_, err := sourceOf(Extract{Method: TextRegex, Text: &Text{Pattern: "("}}).Parse(0, documentOf("58.90"))
	wantFailure(t, err, Internal, "pattern")
}

// What belongs to a quote is said by the nearest that says it.
func TestParse_WhoseQuote(t *testing.T) {
	d := sourceOf(Extract{
		Method: JSONRows, Rows: &Rows{
			Label: Place{At: "name"}, Buy: &Place{At: "buy"}, Labels: map[string]Target{
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
	d := sourceOf(Extract{Method: JSONFields, Fields: []Field{{Side: BuySide, Place: Place{At: "buy"}}}})
	d.Pages[0].Name = "dollars"
	_, err := d.Parse(0, documentOf(`{}`))
	wantFailure(t, err, Layout, "layout: dollars: ")
}

// What can't be read goes on as it stands, and the engine keeps it; it must never look like a rate to the engine.
func TestI3_UnreadableSidesStayWhatTheyAre(t *testing.T) {
	d := sourceOf(Extract{Method: JSONFields, Fields: []Field{
		{Side: BuySide, Place: Place{At: "buy"}}, {Side: SellSide, Place: Place{At: "sell"}},
	}})
	d.Decimal, d.DecimalsMax = Point, 2
	checkCases(t, d, []parseCase{
		{"a footnote", `{"buy":"58.90 1","sell":"59.30"}`, []string{"test USD unspecified [58.90 1] [59.30]"}, "", ""},
		{"too many digits", `{"buy":"58.9051","sell":59.3}`, []string{"test USD unspecified [unreadable: 58.9051] [59.3]"}, "", ""},
		{"a number with too many digits", `{"buy":58.9051,"sell":59.3}`, []string{"test USD unspecified [unreadable: 58.9051] [59.3]"}, "", ""},
		{"a sign", `{"buy":-58.9,"sell":59.3}`, []string{"test USD unspecified [-58.9] [59.3]"}, "", ""},
		{"an exponent", `{"buy":5.89e1,"sell":59.3}`, []string{"test USD unspecified [5.89e1] [59.3]"}, "", ""},
		{"zero", `{"buy":0.00,"sell":59.3}`, []string{"test USD unspecified [0.00] [59.3]"}, "", ""},
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
func TestI3_RawTextIsNoDecimal(t *testing.T) {
	for _, text := range []string{"58.90", "58", " 58.90 ", "", "\xff", "58.90" + strings.Repeat(" ", 100) + "x", strings.Repeat("1", 70)} {
		if got := raw(text); got == "" || len(got) > rawBytesMax || isDecimal(got) {
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
		Label: Place{At: "name"}, Buy: &Place{At: "buy"}, Labels: map[string]Target{"dolar": {}},
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
