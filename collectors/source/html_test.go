package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

func fieldsOf(places map[string]Locator) []Field {
	var fields []Field
	for _, currency := range []string{"USD", "EUR"} {
		for _, side := range []Side{BuySide, SellSide} {
			for _, alternative := range []string{"", "+"} {
				if place, known := places[currency+" "+string(side)+alternative]; known {
					fields = append(fields, Field{Currency: currency, Side: side, Locator: place})
				}
			}
		}
	}
	return fields
}

func TestHTMLFields_Classes(t *testing.T) {
	d := sourceOf(Extract{Method: HTMLFields, Fields: fieldsOf(map[string]Locator{
		"USD buy": {At: ".compraUS"}, "USD sell": {At: ".ventaUS"}, "EUR buy": {At: ".compraEU"}, "EUR sell": {At: ".ventaEU"},
	})})
	quotes := `<span class="compraUS">56.50</span><span class="ventaUS">59.50</span>
		<b class="compraEU">66,20</b><b class="ventaEU">RD$&nbsp;70.40</b>`
	want := []string{"test USD unspecified [56.50] [59.50]", "test EUR unspecified [66.20] [70.40]"}
	checkCases(t, d, []parseCase{
		{"once", pageOf(quotes), want, "", ""},
		{"twice, and in a menu", pageOf(quotes + `<a class="compraUS">Compra 56.50</a><div class="compraUS"> 56.5 </div>`), want, "", ""},
		{"a mobile twin that is still zero", pageOf(`<i class="compraUS">0.00</i>` + quotes), want, "", ""},
		{"two that differ", pageOf(quotes + `<p class="compraUS">57.00</p>`), nil, Value, "is 56.50 and 57.00"},
		{"one is missing", pageOf(strings.ReplaceAll(quotes, "ventaEU", "other")), []string{
			want[0], "test EUR unspecified [66.20] []", `note: test EUR: there is no sell at ".ventaEU"`,
		}, "", ""},
		{"one has no value", pageOf(strings.ReplaceAll(quotes, "66,20", "-")), []string{want[0], "test EUR unspecified [] [70.40]"}, "", ""},
		{"a currency without values", pageOf(strings.NewReplacer("66,20", "-", "RD$&nbsp;70.40", "N/D").Replace(quotes)), []string{
			want[0], "note: test EUR: no value",
		}, "", ""},
		{"other classes", pageOf(strings.NewReplacer("US", "_us", "EU", "_eu").Replace(quotes)), nil, Layout, `there is no buy at ".compraUS"`},
		{"not filled yet", pageOf(`<b class="compraUS">0</b><b class="ventaUS">0</b><b class="compraEU"></b>`), nil, Empty, ""},
	})
}

// Values of inputs, with the moment of publication in free text.
func TestHTMLFields_InputsAndMoment(t *testing.T) {
	d := sourceOf(Extract{
		Method: HTMLFields, Fields: fieldsOf(map[string]Locator{
			"USD buy": {At: "#rd-compra", Attribute: "value"}, "USD sell": {At: "#rd-venta", Attribute: "value"},
		}),
		Date: &Date{Locator: Locator{At: ".modal-footer p", Pattern: `Actualizado:\s*(.*)`}, Form: values.DayTime},
	})
	inputs := `<input id="rd-compra" VALUE="57.25"><input id="rd-venta" value="59.50" title="1">`
	footer := `<div class="modal-footer"><p>Tasas sujetas a cambio</p><p>Actualizado: <b>17/09/2026</b> 08:15</p></div>`
	want := []string{"test USD unspecified [57.25] [59.50] 2026-09-17 2026-09-17T12:15:00Z"}
	checkCases(t, d, []parseCase{
		{"as it is", pageOf(inputs + footer), want, "", ""},
		{"the same date twice", pageOf(inputs + footer + footer), want, "", ""},
		{"no date", pageOf(inputs), nil, Layout, "there is no date at"},
		{"a date without a year", pageOf(inputs + strings.ReplaceAll(footer, "2026", "26")), nil, Layout, "dd/mm/yyyy hh:mm"},
		{"two dates", pageOf(inputs + footer + strings.ReplaceAll(footer, "17/", "18/")), nil, Layout, "2026-09-17T12:15:00Z and 2026-09-18T12:15:00Z"},
		{"no attribute", pageOf(strings.NewReplacer("VALUE=", "a=", "value=", "b=").Replace(inputs) + footer), nil, Layout, `attribute "value"`},
	})
}

// The element is empty and the number stands in a script beside it: the second way is tried only when the first has
// nothing.
func TestHTMLFields_Alternatives(t *testing.T) {
	d := sourceOf(Extract{Method: HTMLFields, Fields: fieldsOf(map[string]Locator{
		"USD buy": {At: "#buy"}, "USD buy+": {At: "script", Pattern: `#buy[^0-9]{1,20}([0-9.]+)`},
		"USD sell": {At: "#sell"}, "USD sell+": {At: "script", Pattern: `#sell[^0-9]{1,20}([0-9.]+)`},
	})})
	script := `<script>var n = 5; $("#buy").text("57.10 DOP"); $("#sell").text("60.10 DOP")</script><script>"58.0"</script>`
	checkCases(t, d, []parseCase{
		{"elements", pageOf(`<p id="buy">58.10 DOP</p><p id="sell">61.10 DOP</p>` + script), []string{"test USD unspecified [58.10] [61.10]"}, "", ""},
		{"script", pageOf(`<p id="buy"></p>` + script), []string{"test USD unspecified [57.10] [60.10]"}, "", ""},
		{"script for zero", pageOf(`<p id="buy">0</p><p id="sell">61.10</p>` + script), []string{"test USD unspecified [57.10] [61.10]"}, "", ""},
		{"script for what can't be read", pageOf(`<p id="buy">5S.10</p><p id="sell">61.10</p>` + script), []string{
			"test USD unspecified [57.10] [61.10]",
			"note: USD: \"5S.10\" is not a buy; taken from the next field, at \"script\", with the pattern \"#buy[^0-9]{1,20}([0-9.]+)\"",
		}, "", ""},
		{"neither", pageOf(`<p id="buy">?</p>`), nil, Value, "?"},
	})
}

func bankTable() *Definition {
	return sourceOf(Extract{Method: HTMLRows, Rows: &Rows{
		At: "table tr", Label: Locator{Column: "tipo"}, Buy: &Locator{Column: "compra"}, Sell: &Locator{Column: "venta"}, Min: 2,
		Labels: map[string]Target{
			"dolar (us) sucursales":        {Currency: "USD", Channel: engine.Branch},
			"dolar (us) canales digitales": {Currency: "USD", Channel: engine.Digital},
			"euro (eu)":                    {Currency: "EUR"},
		},
		Ignore: []string{"nota"},
	}})
}

// A table with two channels of one bank: columns are identified by their headings, rows by their labels, neither by
// position.
func TestHTMLRows_Table(t *testing.T) {
	const head = `<tr><th>País</th><th>Tipo</th><th>Compra</th><th>Venta</th></tr>`
	const rows = `<tr><td>EE. UU.</td><td>Dólar&nbsp;(US) Sucursales</td><td>56,60</td><td>60,30</td></tr>
		<tr><td>EE. UU.</td><td> Dolar (US)  Canales Digitales* </td><td>57.10</td><td>59.90</td></tr>
		<tr><td>UE</td>
		<td>EURO (EU)</td><td>64.20</td><td>71.10</td></tr>`
	inOrder := []string{"test USD branch [56.60] [60.30]", "test USD digital [57.10] [59.90]", "test EUR unspecified [64.20] [71.10]"}
	table := func(rows string) string { return pageOf("<p>56.50</p><table>" + rows + "</table>") }
	checkCases(t, bankTable(), []parseCase{
		{"as it is", table("<thead>" + head + "</thead><tbody>" + rows + "</tbody>"), inOrder, "", ""},
		{"without thead", table(head + rows), inOrder, "", ""},
		{"a title above", table(`<tr><td colspan="4">Tasas de hoy 58.00</td></tr>` + head + rows), inOrder, "", ""},
		{"rows in another order", table(head + `<tr><td></td><td>Euro (EU)</td><td>64.20</td><td>71.10</td></tr>
			<tr><td></td><td>Dólar (US) Sucursales</td><td>56.60</td><td>60.30</td></tr>`), []string{inOrder[2], inOrder[0]}, "", ""},
		{"columns in another order", table(strings.NewReplacer("Compra", "Venta", "Venta", "Compra").Replace(head) + rows), []string{
			"test USD branch [60.30] [56.60]", "test USD digital [59.90] [57.10]", "test EUR unspecified [71.10] [64.20]",
		}, "", ""},
		{"an unknown label", table(head + rows + `<tr><td></td><td>Libra</td><td>70</td><td>80</td></tr>`), append(inOrder[:3:3],
			`note: unknown label "libra"`), "", ""},
		{"a label that contains another", table(head + rows + `<tr><td></td><td>Euro (EU) Plus</td><td>1</td><td>2</td></tr>`), append(
			inOrder[:3:3], `note: unknown label "euro (eu) plus"`), "", ""},
		{"a note of the bank", table(head + rows + `<tr><td></td><td>Nota:</td><td>sujeto a cambio</td></tr><tr></tr>`), inOrder, "", ""},
		{"a country over two rows", table(head + strings.Replace(strings.Replace(rows, "<td>EE", `<td rowspan="2">EE`, 1),
			"<tr><td>EE. UU.</td><td> Dolar", "<tr><td> Dolar", 1)), inOrder, "", ""},
		{"the same row twice", table(head + rows + rows), inOrder, "", ""},
		{"the same label with other values", table(head + rows + `<tr><td></td><td>Euro (EU)</td><td>1.5</td><td>2</td></tr>`), append(
			inOrder[:3:3], "test EUR unspecified [1.5] [2]"), "", ""},
		{"two prices in a cell", table(head + strings.ReplaceAll(rows, "56,60", "56.60<br>57.60")), []string{
			"test USD branch [56.60 57.60] [60.30]", inOrder[1], inOrder[2],
		}, "", ""},
		{"another currency", table(head + strings.ReplaceAll(rows, "64.20", "US$ 1.08")), append(inOrder[:2:2],
			"test EUR unspecified [US$ 1.08] [71.10]"), "", ""},
		{"a short row", table(head + rows + `<tr><td></td><td>Euro (EU)</td></tr>`), append(inOrder[:3:3],
			`note: test EUR: there is no buy in the column "compra"`, `note: test EUR: there is no sell in the column "venta"`), "", ""},
		{"a heading without cells", table(strings.Replace(head, "<th>Compra", "<th>Anterior</th><th>Compra", 1) + rows), nil, Layout,
			`there is no buy in the column "compra"`},
		{"a cell without a heading", table(head + strings.NewReplacer("<td>56,60", "<td>56,10</td><td>56,60", "<td>57.10", "<td>RD$ 57.05</td><td>57.10").Replace(rows)),
			nil, Layout, `there is no buy in the column "compra"`},
		{"a date and a button without headings", table(head + strings.ReplaceAll(rows, "</tr>", "<td>17/09/2026 10:05</td><td>Ver 2 más</td></tr>")), inOrder, "", ""},
		{"a change without a heading", table(head + strings.ReplaceAll(rows, "</tr>", "<td>= $0.10</td></tr>")), nil, Layout, "there is no buy"},
		{"too few known", table(head + rows[:strings.Index(rows, "</tr>")+5]), nil, Layout, "want at least 2"},
		{"other headings", table(strings.ReplaceAll(head, "Compra", "Compramos") + rows), nil, Layout, "tipo, compra, venta"},
		{"a heading twice", table(strings.ReplaceAll(head, "País", "Compra") + rows), nil, Layout, "once each"},
		{"no table", pageOf("<div>56.60</div>"), nil, Layout, "there is no row"},
		{"zeros only", table(head + strings.NewReplacer("56,60", "0", "60,30", "0.00", "57.10", "-", "59.90", "", "64.20", "$0.00", "71.10",
			"N/A").Replace(rows)), nil, Empty, ""},
	})
}

// An attribute that contradicts the price in its cell is refused with it.
func TestHTMLRows_AttributeOfACell(t *testing.T) {
	d := bankTable()
	d.Pages[0].Extract.Rows.Min, d.Pages[0].Extract.Rows.Buy.Attribute = 1, "data-order"
	const head = `<table><tr><td>Tipo</td><td>Compra</td><td>Venta</td></tr><tr><td>Euro (EU)</td>`
	checkCases(t, d, []parseCase{
		{"the same", pageOf(head + `<td data-order="64.2">64,20</td><td>71.10</td></tr></table>`), []string{"test EUR unspecified [64.2] [71.10]"}, "", ""},
		{"another", pageOf(head + `<td data-order="62.9">64.20</td><td>71.10</td></tr></table>`), []string{"test EUR unspecified [62.9 and 64.20] [71.10]"}, "", ""},
		{"none", pageOf(head + `<td>64.20</td><td>71.10</td></tr></table>`), []string{"test EUR unspecified [64.20] [71.10]"}, "", ""},
	})
}

// Every table has its own headings. Rates come from one table: another one with the same headings may only repeat it.
func TestHTMLRows_SeveralTables(t *testing.T) {
	d := bankTable()
	d.Pages[0].Extract.Rows.Min = 1
	const first = `<table><tr><td>Tipo</td><td>Compra</td><td>Venta</td></tr><tr><td>Euro (EU)</td><td>64.20</td><td>71.10</td></tr></table>`
	const second = `<table><tr><td>Venta</td><td>Compra</td><td>Tipo</td></tr><tr><td>60.30</td><td>56.60</td><td>Dólar (US) Sucursales</td></tr></table>`
	const without = `<table><tr><td>Euro (EU)</td><td>1</td><td>2</td></tr></table>`
	const yesterday = `<table><tr><td>Venta</td><td>Compra</td><td>Tipo</td></tr><tr><td>71.10</td><td>64.10</td><td>Euro (EU)</td></tr></table>`
	const again = `<table><tr><td>Venta</td><td>Compra</td><td>Tipo</td></tr><tr><td>71.10</td><td>64.20</td><td>Euro (EU)</td></tr></table>`
	euro, dollar := []string{"test EUR unspecified [64.20] [71.10]"}, []string{"test USD branch [56.60] [60.30]"}
	checkCases(t, d, []parseCase{
		{"one without headings", pageOf(without + first), euro, "", ""},
		{"headings in two rows", pageOf(`<table><tr><th rowspan="2">Tipo</th><th colspan="2">Hoy</th></tr><tr><th>Compra</th><th>Venta</th></tr>
			<tr><td>Euro (EU)</td><td>64.20</td><td>71.10</td></tr></table>`), euro, "", ""},
		{"in a cell", pageOf(`<table><tr><td>` + without + `</td><td>` + second + `</td></tr></table>`), dollar, "", ""},
		{"for narrow screens", pageOf(first + again), euro, "", ""},
		{"of another day", pageOf(first + yesterday), nil, Layout, "another row of headings"},
		{"of others", pageOf(first + second), nil, Layout, "another row of headings"},
	})
}

// Absurd spans cost neither time nor memory.
func TestHTMLRows_HostileSpans(t *testing.T) {
	d := bankTable()
	cell := `<td colspan="1000000000" rowspan="1000000000">Compra</td>`
	_, err := d.Parse(0, documentOf(pageOf("<table><tr>"+strings.Repeat(cell, 2000)+"</tr>"+strings.Repeat("<tr><td>1</td></tr>", 4000)+"</table>")))
	wantFailure(t, err, Layout, "headings")
}

// Cards instead of a table, and one side only: the other one is never derived.
func TestHTMLRows_Cards(t *testing.T) {
	d := sourceOf(Extract{Method: HTMLRows, Rows: &Rows{
		At: ".plan", Label: Locator{At: "h3"}, Buy: &Locator{At: ".value"}, Min: 2,
		Labels: map[string]Target{"dolares americanos": {Currency: "USD"}, "euros": {Currency: "EUR"}, "libras esterlinas": {Currency: "GBP"}},
	}})
	card := func(label, value string) string {
		return `<div class="plan"><h3>` + label + `</h3><p>$ <span class="value">` + value + `</span> compra</p></div>`
	}
	checkCases(t, d, []parseCase{
		{"three cards", pageOf(card("DÓLARES AMERICANOS", "58.00") + card("EUROS", "66.00") + card("LIBRAS  ESTERLINAS", "75.45")), []string{
			"test USD unspecified [58.00] []", "test EUR unspecified [66.00] []", "test GBP unspecified [75.45] []",
		}, "", ""},
		{"two labels in one card", pageOf(card("EUROS", "66.00") + card("DOLARES AMERICANOS", "58") + card("EUROS</h3><h3>LIBRAS", "1")), []string{
			"test EUR unspecified [66.00] []", "test USD unspecified [58] []", `note: a row has two labels, "euros" and "libras"`,
		}, "", ""},
	})
}

// A date in each row: a row without one is left out, the others are not.
func TestHTMLRows_DateOfTheRow(t *testing.T) {
	d := sourceOf(Extract{Method: HTMLRows, Rows: &Rows{
		At: "li", Label: Locator{At: "b"}, Buy: &Locator{At: "i"}, Min: 1, Date: &Date{Locator: Locator{At: "u"}, Form: values.ISODate},
		Labels: map[string]Target{"dolar": {Currency: "USD"}, "euro": {Currency: "EUR"}},
	}})
	checkCases(t, d, []parseCase{
		{"one without", pageOf("<li><b>Dólar</b><i>58</i><u>2026-09-07</u></li><li><b>Euro</b><i>66</i></li>"), []string{
			"test USD unspecified [58] [] 2026-09-07", `note: test EUR is skipped: there is no date at "u"`,
		}, "", ""},
		{"all without", pageOf("<li><b>Dólar</b><i>58</i><u>ayer</u></li>"), nil, Layout, "ayer"},
	})
}

// textCase is a text-regex and what it reads.
type textCase struct {
	text  Text
	cases []parseCase
}

func TestTextRegex(t *testing.T) {
	label := func(texts ...string) string {
		return pageOf("<header><label>" + strings.Join(texts, "</label><label>") + "</label></header><label>1</label>")
	}
	quote, branches := []string{"test USD unspecified [57.10] [59.80]"}, []string{"test USD unspecified [57] [59]"}
	for name, c := range map[string]textCase{
		"free text that names its sides, the other one first": {
			Text{At: "body", Pattern: `Vendemos:\s*RD\$\s*(?P<sell>[0-9.,]+).*?Compramos:\s*RD\$\s*(?P<buy>[0-9.,]+)`}, []parseCase{
				{"as it is", pageOf("<h1>Tasa</h1><p>Vendemos: RD$&nbsp;59.80</p><div><b>Compramos:</b> RD$ 57.10</div>"), quote, "", ""},
				{"twice the same", pageOf(strings.Repeat("<p>Vendemos: RD$59.80 Compramos: RD$57.10</p>", 2)), quote, "", ""},
				{"other words", pageOf("<p>Venta: RD$59.80</p>"), nil, Layout, "matches of the pattern"},
				{"no number", pageOf("<p>Vendemos: RD$ ... Compramos: RD$ ...</p>"), nil, Value, "..."},
				{"zero", pageOf("<p>Vendemos: RD$ 0.00 Compramos: RD$ 0</p>"), nil, Empty, ""},
				{"no HTML", "Vendemos: RD$ 59.80 Compramos: RD$ 57.10", nil, WrongContent, "want HTML"},
			},
		},
		"nothing but numbers, exactly two, or the page has changed": {
			Text{At: "header label", Pattern: `\A[^0-9\n]*(?P<buy>[0-9.]+)[^0-9\n]*\n[^0-9\n]*(?P<sell>[0-9.]+)[^0-9\n]*\z`}, []parseCase{
				{"two", label("Compra $58.00", "Venta 59.25"), []string{"test USD unspecified [58.00] [59.25]"}, "", ""},
				{"three", label("58.00", "59.25", "66.00"), nil, Layout, ""},
				{"one", label("58.00"), nil, Layout, ""},
				{"none", pageOf("<b>58.00</b>"), nil, Layout, "there is no text"},
			},
		},
		"a bare number in a text file; a page is not taken for one": {
			Text{Pattern: `\A\s*(?P<buy>[0-9.,]+)\s*\z`}, []parseCase{
				{"a number", "58.00\r\n", []string{"test USD unspecified [58.00] []"}, "", ""},
				{"with a blank of its own", "\u00a058.00", []string{"test USD unspecified [58.00] []"}, "", ""},
				{"a page", pageOf("58.00"), nil, Layout, ""},
				{"half a page", "<html><body>58.00", nil, WrongContent, "cut off"},
				{"nothing", "", nil, Empty, ""},
				{"zero bytes", "\x00\x00", nil, Empty, ""},
				{"a workbook", "PK\x03\x04....", nil, WrongContent, "PK"},
			},
		},
		"a match ends in the words with which another one begins": {
			Text{Pattern: `Vendemos (?P<sell>[0-9.]+) Compramos (?P<buy>[0-9.]+) Vendemos`}, []parseCase{
				{"another price", "Vendemos 60 Compramos 58 Vendemos 70 Compramos 68 Vendemos", []string{
					"test USD unspecified [58] [60]", "test USD unspecified [68] [70]",
				}, "", ""},
			},
		},
		"labels in the text": {
			Text{
				At: "marquee", Pattern: `(?i)(?P<label>[a-zóú]+) COMPRA:? *(?P<buy>[0-9.,]+|-) *- *VENTA:? *(?P<sell>[0-9.,]+|-)`,
				Labels: map[string]Target{"dolar": {Currency: "USD"}, "euro": {Currency: "EUR", Channel: "cash"}},
			}, []parseCase{
				{"as it is", pageOf("<marquee>DÓLAR COMPRA: 58.00 - VENTA 59.00 EURO compra 66,10 - venta - YEN compra 1 - venta 2</marquee>"), []string{
					"test USD unspecified [58.00] [59.00]", "test EUR cash [66.10] []", `note: unknown label "yen"`,
				}, "", ""},
			},
		},
		"groups of one name in the branches of a pattern: the branch that took part counts": {
			Text{Pattern: `compra (?P<buy>[0-9.]+) venta (?P<sell>[0-9.]+)|venta (?P<sell>[0-9.]+) compra (?P<buy>[0-9.]+)`}, []parseCase{
				{"buy first", "compra 57 venta 59", branches, "", ""},
				{"sell first", "venta 59 compra 57", branches, "", ""},
			},
		},
	} {
		t.Run(name, func(t *testing.T) { checkCases(t, sourceOf(Extract{Method: TextRegex, Text: &c.text}), c.cases) })
	}
}

func oneField() *Definition {
	return sourceOf(Extract{Method: HTMLRows, Rows: &Rows{
		At: "tr", Label: Locator{At: "th"}, Buy: &Locator{At: "td"}, Min: 1, Labels: map[string]Target{"dolar": {}},
	}})
}

const goodTable = "<table><tr><th>Dólar</th><td>58.90</td></tr></table>"

func TestContent_KindOfDocument(t *testing.T) {
	html, json, text := oneField(), referenceJSON(), sourceOf(Extract{Method: TextRegex, Text: &Text{Pattern: `(?P<buy>[0-9]+)`}})
	sheet := sourceOf(Extract{Method: XLSXRows, Sheet: &Sheet{Year: "ano", Month: "mes", Day: "dia"}, Fields: []Field{{Side: BuySide}}})
	for _, c := range []struct {
		name, contentType, body string
		source                  *Definition
		kind                    FailureKind
	}{
		{"an empty page", "text/html", "", html, Empty},
		{"blanks", "text/html", "\ufeff \n\t\u00a0", html, Empty},
		{"an empty workbook", "", "\x00\x00", sheet, Empty},
		{"a PDF document", "text/html", "%PDF-1.7 ...", html, WrongContent},
		{"packed bytes", "", "\x1f\x8b\x08\x00aaaa", html, WrongContent},
		{"packed JSON", "application/json", "\x1f\x8b\x08\x00aaaa", json, WrongContent},
		{"a picture", "", "\x89PNG\r\n\x1a\n", text, WrongContent},
		{"zero bytes in the middle", "text/html", "<html>\x00\x01\x02</html>", html, WrongContent},
		{"JSON for HTML", "application/json", `{"a":"<b>"}`, html, WrongContent},
		{"text for HTML", "text/html", "58.90", html, WrongContent},
		{"XML for HTML", "text/xml", `<?xml version="1.0"?><rss/>`, html, WrongContent},
		{"HTML for JSON", "application/json", pageOf(goodTable), json, WrongContent},
		{"HTML for a workbook", "application/octet-stream", pageOf(goodTable), sheet, WrongContent},
		{"JSON for a workbook", "", `{}`, sheet, WrongContent},
		{"half a workbook", "", "PK\x03\x04 and no more", sheet, WrongContent},
		{"an old workbook", "", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", sheet, WrongContent},
		{"half a page", "text/html", strings.TrimSuffix(pageOf(goodTable), "</html>"), html, WrongContent},
		{"a page without end", "text/html", "<!-- x --><HTML><body>" + goodTable + strings.Repeat(" ", 5000), html, WrongContent},
		{"a page that is far too long", "text/html", pageOf(goodTable + strings.Repeat(" ", textBytesMax)), html, WrongContent},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.source.Parse(0, &Document{ContentType: c.contentType, Body: []byte(c.body)})
			wantFailure(t, err, c.kind, "")
		})
	}
}

// cutFault is where a document that was cut off says something else than the whole one, "" when nowhere.
func cutFault(d *Definition, text string) string {
	whole, err := d.Parse(0, documentOf(text))
	if err != nil {
		return err.Error()
	}
	for end := range len(text) {
		part, err := d.Parse(0, documentOf(text[:end]))
		if err == nil && !slices.Equal(lines(part), lines(whole)) {
			return fmt.Sprintf("cut after %d bytes it says %q, whole %q", end, lines(part), lines(whole))
		}
	}
	return ""
}

// A document that was cut off anywhere gives its rates unchanged or not at all: half a number is a number too.
func TestI3_EveryCut(t *testing.T) {
	text := sourceOf(Extract{Method: TextRegex, Text: &Text{At: "td", Pattern: `(?P<buy>[0-9.]+)`}})
	for d, document := range map[*Definition]string{
		oneField(): pageOf(goodTable), text: pageOf(goodTable),
		referenceJSON(): `{"success":true,"result":{"date":"2026-09-17","actualPurchaseValue":58.9582,"actualSellingValue":"59.3318"}}`,
	} {
		if fault := cutFault(d, document); fault != "" {
			t.Errorf("%s: %s", d.Pages[0].Extract.Method, fault)
		}
	}
}

// Names survive every charset, and the bytes of none become digits.
func TestContent_Charsets(t *testing.T) {
	latin, errLatin := charmap.Windows1252.NewEncoder().String(pageOf(goodTable))
	latinMeta := strings.Replace(latin, "<head>", `<head><meta charset="iso-8859-1">`, 1)
	wide, errWide := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(pageOf(goodTable))
	if err := errors.Join(errLatin, errWide); err != nil {
		t.Fatal(err)
	}
	long := pageOf("<p>" + strings.Repeat("a ", 2000) + "</p>" + goodTable) // only ASCII in its first 1,024 bytes
	for _, c := range [][3]string{
		{"a piece of a page, of which nothing is missing without <html>", "", goodTable},
		{"UTF-8", "text/html; charset=utf-8", pageOf(goodTable)},
		{"UTF-8 with a mark", "text/html", "\xef\xbb\xbf" + pageOf(goodTable)},
		{"UTF-8 that is called Latin", "text/html; charset=iso-8859-1", pageOf(goodTable)},
		{"UTF-8 late", "text/html", long},
		{"Latin by its header", "text/html; charset=windows-1252", latin},
		{"Latin by its meta element", "text/html", latinMeta},
		{"Latin without a word", "", latin},
		{"Latin that is called UTF-8", "text/html; charset=utf-8", latin},
		{"UTF-16 by its mark", "", wide},
		{"an unknown header", "text/html; charset=foo; ;", pageOf(goodTable)},
		{"both, without a word", "", strings.Replace(pageOf(goodTable), "<p>", "<p>a\xf1o ", 1)},
	} {
		t.Run(c[0], func(t *testing.T) {
			checkCase(t, oneField(), &Document{ContentType: c[1], Body: []byte(c[2])}, parseCase{want: []string{"test USD unspecified [58.90] []"}})
		})
	}
	broken := strings.Replace(pageOf(goodTable), "58.90", "58\xff\x96.90", 1)
	checkCase(t, oneField(), &Document{ContentType: "text/html; charset=utf-8", Body: []byte(broken)}, parseCase{
		fails: Value, detail: "58ÿ–.90",
	})
}

// botProtections are challenges as bot protections show them with status 200; synthetic, from their known marks.
func botProtections() map[string]string {
	return map[string]string{
		"Incapsula": `<html style="height:100%"><head><META NAME="ROBOTS" CONTENT="NOINDEX, NOFOLLOW"><script src="/_Incapsula_Resource?SWJIYLWA=1">` +
			`</script></head><body></body></html>`,
		"Incapsula, frame": `<html><body><iframe src="/_Incapsula_Resource?x=1">Request unsuccessful. Incapsula incident ID: 1-2</iframe></body></html>`,
		"Cloudflare":       `<!DOCTYPE html><html><head><title>Just a moment...</title></head><body><div>Checking</div></body></html>`,
		"Cloudflare, old": `<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title></head><body>` +
			strings.Repeat("<p>Why have I been blocked?</p>", 50) + `</body></html>`,
		"Akamai": `<HTML><HEAD><TITLE>Access Denied</TITLE></HEAD><BODY><H1>Access Denied</H1>Reference #18.1 https://errors.edgesuite.net/18</BODY></HTML>`,
		"F5":     `<html><head><title>Request Rejected</title></head><body>The requested URL was rejected. Your support ID is: 123 12.34</body></html>`,
		"captcha": `<html><head></head><body><form><div class="g-recaptcha" data-sitekey="58.90"></div>Verifique que es humano</form>` +
			`</body></html>`,
		"half a page": `<html><head><title>Just a moment...</title></head><body>`,
		"data":        `{"url":"https://geo.captcha-delivery.com/captcha/"}`,
	}
}

func TestContent_Walls(t *testing.T) {
	sheet := sourceOf(Extract{Method: XLSXRows, Sheet: &Sheet{Year: "ano", Month: "mes", Day: "dia"}, Fields: []Field{{Side: BuySide}}})
	for name, page := range botProtections() {
		for _, d := range []*Definition{oneField(), referenceJSON(), sheet} {
			_, err := d.Parse(0, documentOf(page))
			if err == nil {
				t.Fatalf("%s is read by %s", name, d.Pages[0].Extract.Method)
			}
			t.Run(name+" for "+string(d.Pages[0].Extract.Method), func(t *testing.T) { wantFailure(t, err, Blocked, "bot protection") })
		}
	}
}

// A page with its rates is good, whatever scripts its bot protection adds; one with much text and no rates has
// changed, and is not blocked.
func TestContent_GoodPagesBehindWalls(t *testing.T) {
	const script = `<script src="/_Incapsula_Resource?x=1"></script><script src="/cdn-cgi/challenge-platform/x.js"></script><div class="g-recaptcha"></div>`
	checkCase(t, oneField(), documentOf(pageOf(script+goodTable)), parseCase{want: []string{"test USD unspecified [58.90] []"}})
	prose := "<p>" + strings.Repeat("Abra su cuenta de ahorros con nosotros. ", 50) + "</p>"
	checkCase(t, oneField(), documentOf(pageOf(script+prose)), parseCase{fails: Layout})
	checkCase(t, oneField(), documentOf(pageOf("<p>Mantenimiento</p>")), parseCase{fails: Layout})
}

// Pages that only an attack can mean are refused before selectors and patterns go through them.
func TestHTML_Limits(t *testing.T) {
	const childrenMax, nodesMax, tagsMax = 10_000, 100_000, 200_000 // of package markup
	fields := sourceOf(Extract{Method: HTMLFields, Fields: []Field{{Side: BuySide, Locator: Locator{At: "b:nth-child(2)", Pattern: `[0-9.]+`}}}})
	everywhere := sourceOf(Extract{Method: HTMLFields, Fields: []Field{
		{Side: BuySide, Locator: Locator{At: "b", Pattern: `x`}}, {Side: SellSide, Locator: Locator{At: "b", Pattern: `y`}},
	}})
	text := sourceOf(Extract{Method: TextRegex, Text: &Text{At: "body", Pattern: `(?P<buy>[0-9.]+)`}})
	plain := sourceOf(Extract{Method: TextRegex, Text: &Text{Pattern: `(?P<buy>[0-9.]+)`}})
	block := "<div>" + strings.Repeat("<p>", childrenMax/2) + "</div>"
	for _, c := range []struct {
		name, document string
		source         *Definition
		detail         string
	}{
		{"parts of one element", pageOf(strings.Repeat("<p></p>", childrenMax+1)), fields, "are accepted"},
		{"elements", pageOf(strings.Repeat(block, nodesMax/(childrenMax/2)+1)), fields, "more than 100000 elements"},
		{"tags", pageOf(strings.Repeat("</p>", tagsMax+1)), fields, "tags"},
		{"text at a place", pageOf("<p></p><b>" + strings.Repeat("58.90", patternBytesMax/5+1) + "</b>"), fields, "are searched"},
		{"text", pageOf(strings.Repeat("58.90", patternBytesMax/5+1)), text, "are searched"},
		{"plain text", strings.Repeat("58.90", patternBytesMax/5+1), plain, "are searched"},

		{"attributes", pageOf("<div class=\"" + strings.Repeat("a ", 1<<20) + "\"><p>" + strings.Repeat("<i></i>", 9_000)), fields, "attributes of an element"},
		{"searches", pageOf(strings.Repeat("<b>"+strings.Repeat(".", 1<<20-1)+"</b>", 5)), everywhere, "would search more than"},
		{"quotes", numbered(quotesMax+1, "58.%04d "), plain, "more than 500 quotes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.source.Parse(0, documentOf(c.document))
			wantFailure(t, err, WrongContent, c.detail)
		})
	}
	good := pageOf(strings.Repeat(block, 15) + "<div><i></i><b>58.90</b></div>")
	checkCase(t, fields, documentOf(good), parseCase{want: []string{"test USD unspecified [58.90] []"}})
}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestD4_Markup: Parse says so, and so does the search for an address.
func TestD4_Markup(t *testing.T) {
	document := documentOf(pageOf(numbered(400, "<b a%d>") + strings.Repeat("<p>58.90", 50_000)))
	_, err := oneField().Parse(0, document)
	wantFailure(t, err, WrongContent, "within each other")
	if _, err := AttributeOf(document, "p", "a"); err == nil {
		t.Error("the page is searched for an address")
	}
}

func TestSidesOfOneQuoteAreJoined(t *testing.T) {
	quote := func(institution, currency, buy, sell string) engine.Observation {
		return engine.Observation{InstitutionID: institution, Currency: currency, Buy: buy, Sell: sell}
	}
	cash := quote("empire", "USD", "", "60")
	cash.Channel = engine.Cash
	dated := quote("empire", "USD", "", "60")
	dated.EffectiveDate = engine.DateOf(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	for name, test := range map[string]struct{ said, want []engine.Observation }{
		"two pages": {
			[]engine.Observation{quote("empire", "USD", "58", ""), quote("empire", "EUR", "66", ""), quote("empire", "USD", "", "60")},
			[]engine.Observation{quote("empire", "USD", "58", "60"), quote("empire", "EUR", "66", "")},
		},
		"whole ones stay":          {[]engine.Observation{quote("a", "USD", "58", "60"), quote("a", "USD", "58", "60")}, nil},
		"one side twice stays":     {[]engine.Observation{quote("a", "USD", "58", ""), quote("a", "USD", "59", "")}, nil},
		"others stay apart":        {[]engine.Observation{quote("a", "USD", "58", ""), quote("b", "USD", "", "60")}, nil},
		"channels stay apart":      {[]engine.Observation{quote("empire", "USD", "58", ""), cash}, nil},
		"days stay apart":          {[]engine.Observation{quote("empire", "USD", "58", ""), dated}, nil},
		"a third one stays single": {[]engine.Observation{quote("a", "USD", "58", ""), quote("a", "USD", "58", "60"), quote("a", "USD", "", "")}, nil},
	} {
		want := test.want
		if want == nil {
			want = test.said
		}
		before := slices.Clone(test.said)
		if got := JoinSides(test.said); !slices.Equal(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		if !slices.Equal(before, test.said) {
			t.Errorf("%s: what was given has changed", name)
		}
	}
}
