package source

import (
	"strings"
	"testing"
)

// Free text that names its sides, the other one first.
func TestTextRegex_Sides(t *testing.T) {
	d := sourceOf(Extract{Method: TextRegex, Text: &Text{
		At: "body", Min: 1, Pattern: `Vendemos:\s*RD\$\s*(?P<sell>[0-9.,]+).*?Compramos:\s*RD\$\s*(?P<buy>[0-9.,]+)`,
	}})
	checkCases(t, d, []parseCase{
		{"as it is", pageOf("<h1>Tasa</h1><p>Vendemos: RD$&nbsp;59.80</p><div><b>Compramos:</b> RD$ 57.10</div>"), []string{
			"test USD unspecified [57.10] [59.80]",
		}, "", ""},
		{"twice the same", pageOf(strings.Repeat("<p>Vendemos: RD$59.80 Compramos: RD$57.10</p>", 2)), []string{
			"test USD unspecified [57.10] [59.80]",
		}, "", ""},
		{"other words", pageOf("<p>Venta: RD$59.80</p>"), nil, Layout, "matches of the pattern"},
		{"no number", pageOf("<p>Vendemos: RD$ ... Compramos: RD$ ...</p>"), nil, Value, "..."},
		{"zero", pageOf("<p>Vendemos: RD$ 0.00 Compramos: RD$ 0</p>"), nil, Empty, ""},
		{"no HTML", "Vendemos: RD$ 59.80 Compramos: RD$ 57.10", nil, WrongContent, "want HTML"},
	})
}

// A page that has nothing but numbers: exactly two, or the page has changed.
func TestTextRegex_ExactlySoMany(t *testing.T) {
	d := sourceOf(Extract{Method: TextRegex, Text: &Text{
		At: "header label", Pattern: `\A[^0-9\n]*(?P<buy>[0-9.]+)[^0-9\n]*\n[^0-9\n]*(?P<sell>[0-9.]+)[^0-9\n]*\z`,
	}})
	label := func(texts ...string) string {
		return pageOf("<header><label>" + strings.Join(texts, "</label><label>") + "</label></header><label>1</label>")
	}
	checkCases(t, d, []parseCase{
		{"two", label("Compra $58.00", "Venta 59.25"), []string{"test USD unspecified [58.00] [59.25]"}, "", ""},
		{"three", label("58.00", "59.25", "66.00"), nil, Layout, ""},
		{"one", label("58.00"), nil, Layout, ""},
		{"none", pageOf("<b>58.00</b>"), nil, Layout, "no text stands"},
	})
}

// Bare numbers in text files, where a page instead of the number is not taken for one.
func TestTextRegex_PlainText(t *testing.T) {
	d := sourceOf(Extract{Method: TextRegex, Text: &Text{Pattern: `\A\s*(?P<buy>[0-9.,]+)\s*\z`}})
	checkCases(t, d, []parseCase{
		{"a number", "58.00\r\n", []string{"test USD unspecified [58.00] []"}, "", ""},
		{"with a blank of its own", "\u00a058.00", []string{"test USD unspecified [58.00] []"}, "", ""},
		{"a page", pageOf("58.00"), nil, Layout, ""},
		{"half a page", "<html><body>58.00", nil, WrongContent, "cut off"},
		{"nothing", "", nil, Empty, ""},
		{"zero bytes", "\x00\x00", nil, Empty, ""},
		{"a workbook", "PK\x03\x04....", nil, WrongContent, "workbook"},
	})
}

// Labels in the text, and a date in it.
func TestTextRegex_LabelsAndDate(t *testing.T) {
	d := sourceOf(Extract{
		Method: TextRegex, Text: &Text{
			At: "marquee", Min: 2, Pattern: `(?i)(?P<label>[a-zóú]+) COMPRA:? *(?P<buy>[0-9.,]+|-) *- *VENTA:? *(?P<sell>[0-9.,]+|-)`,
			Labels: map[string]Target{"dolar": {Currency: "USD"}, "euro": {Currency: "EUR", Channel: "cash"}},
		},
		Date: &Date{Place: Place{Pattern: `al (.*?\d{4})`}, Form: SpanishDate},
	})
	text := "Tasas al 17 de septiembre de 2026: DÓLAR COMPRA: 58.00 - VENTA 59.00 EURO compra 66,10 - venta - YEN compra 1 - venta 2"
	checkCases(t, d, []parseCase{
		{"as it is", pageOf("<marquee>" + text + "</marquee>"), []string{
			"test USD unspecified [58.00] [59.00] 2026-09-17", "test EUR cash [66.10] [] 2026-09-17", `note: unknown label "yen"`,
		}, "", ""},
		{"no date", pageOf("<marquee>" + text[10:] + "</marquee>"), nil, Layout, "no date"},
	})
	d.Pages[0].Extract.Date.Place = Place{At: "time"}
	checkCases(t, d, []parseCase{{"a date elsewhere", pageOf("<time>1-set-2026</time><marquee>" + text + "</marquee>"), []string{
		"test USD unspecified [58.00] [59.00] 2026-09-01", "test EUR cash [66.10] [] 2026-09-01", `note: unknown label "yen"`,
	}, "", ""}})
}

// A date at an element of its own, beside a pattern over the source of the page.
func TestTextRegex_SourceAndDate(t *testing.T) {
	d := sourceOf(Extract{
		Method: TextRegex, Text: &Text{Pattern: `var compra = "(?P<buy>[0-9.]+)"`}, Date: &Date{Place: Place{At: "time"}, Form: ISODate},
	})
	const script = `<script>var compra = "58.90";</script>`
	checkCases(t, d, []parseCase{
		{"as it is", pageOf("<time>2026-09-17</time>" + script), []string{"test USD unspecified [58.90] [] 2026-09-17"}, "", ""},
		{"no date", pageOf(script), nil, Layout, "no date"},
		{"deep", pageOf(strings.Repeat("<b>", 1000) + script), nil, WrongContent, "512"},
	})
}

// Groups of one name in the branches of a pattern: the branch that took part counts.
func TestTextRegex_Branches(t *testing.T) {
	d := sourceOf(Extract{Method: TextRegex, Text: &Text{
		Pattern: `compra (?P<buy>[0-9.]+) venta (?P<sell>[0-9.]+)|venta (?P<sell>[0-9.]+) compra (?P<buy>[0-9.]+)`,
	}})
	for _, text := range []string{"compra 57 venta 59", "venta 59 compra 57"} {
		checkCases(t, d, []parseCase{{text, text, []string{"test USD unspecified [57] [59]"}, "", ""}})
	}
}
