package source

import (
	"strings"
	"testing"

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

// Free text that names its sides, the other one first.
func TestTextRegex_Sides(t *testing.T) {
	d := sourceOf(Extract{Method: TextRegex, Text: &Text{
		At: "body", Pattern: `Vendemos:\s*RD\$\s*(?P<sell>[0-9.,]+).*?Compramos:\s*RD\$\s*(?P<buy>[0-9.,]+)`,
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
		{"none", pageOf("<b>58.00</b>"), nil, Layout, "there is no text"},
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
		{"a workbook", "PK\x03\x04....", nil, WrongContent, "PK"},
	})
}

// Labels in the text.
func TestTextRegex_Labels(t *testing.T) {
	d := sourceOf(Extract{Method: TextRegex, Text: &Text{
		At: "marquee", Pattern: `(?i)(?P<label>[a-zóú]+) COMPRA:? *(?P<buy>[0-9.,]+|-) *- *VENTA:? *(?P<sell>[0-9.,]+|-)`,
		Labels: map[string]Target{"dolar": {Currency: "USD"}, "euro": {Currency: "EUR", Channel: "cash"}},
	}})
	checkCases(t, d, []parseCase{
		{"as it is", pageOf("<marquee>DÓLAR COMPRA: 58.00 - VENTA 59.00 EURO compra 66,10 - venta - YEN compra 1 - venta 2</marquee>"), []string{
			"test USD unspecified [58.00] [59.00]", "test EUR cash [66.10] []", `note: unknown label "yen"`,
		}, "", ""},
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
