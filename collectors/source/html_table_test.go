package source

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tasard/tasard/engine"
)

func bankTable() *Definition {
	return sourceOf(Extract{Method: HTMLRows, Rows: &Rows{
		At: "table tr", Label: Place{Column: "tipo"}, Buy: &Place{Column: "compra"}, Sell: &Place{Column: "venta"}, Min: 2,
		Labels: map[string]Target{
			"dolar (us) sucursales":        {Currency: "USD", Channel: engine.Branch},
			"dolar (us) canales digitales": {Currency: "USD", Channel: engine.Digital},
			"euro (eu)":                    {Currency: "EUR"},
		},
		Ignore: []string{"nota"},
	}})
}

// A table with two channels of one bank: columns are told by their headings, rows by their labels, neither by position.
func TestHTMLRows_Table(t *testing.T) {
	const head = `<tr><th>País</th><th>Tipo</th><th>Compra</th><th>Venta</th></tr>`
	const rows = `<tr><td>EE. UU.</td><td>Dólar&nbsp;(US) Sucursales</td><td>56,60</td><td>60,30</td></tr>
		<tr><td>EE. UU.</td><td> Dolar (US)  Canales Digitales* </td><td>57.10</td><td>59.90</td></tr>
		<tr><td>UE</td><td>EURO (EU)</td><td>64.20</td><td>71.10</td></tr>`
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
		{"a label nobody knows", table(head + rows + `<tr><td></td><td>Libra</td><td>70</td><td>80</td></tr>`), append(inOrder[:3:3],
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
			`note: test EUR: no buy stands in the column "compra"`, `note: test EUR: no sell stands in the column "venta"`), "", ""},
		{"too few known", table(head + rows[:strings.Index(rows, "</tr>")+5]), nil, Layout, "want at least 2"},
		{"other headings", table(strings.ReplaceAll(head, "Compra", "Compramos") + rows), nil, Layout, "tipo, compra, venta"},
		{"a heading twice", table(strings.ReplaceAll(head, "País", "Compra") + rows), nil, Layout, "once each"},
		{"no table", pageOf("<div>56.60</div>"), nil, Layout, "no row stands"},
		{"zeros only", table(head + strings.NewReplacer("56,60", "0", "60,30", "0.00", "57.10", "-", "59.90", "", "64.20", "$0.00", "71.10",
			"N/A").Replace(rows)), nil, Empty, ""},
	})
}

// Headings in two rows: the upper one has the currencies, and the label reaches down beside the lower one.
func TestHTMLRows_HeadingsInTwoRows(t *testing.T) {
	d := bankTable()
	d.Pages[0].Extract.Rows.Min = 1
	checkCases(t, d, []parseCase{{"two rows", pageOf(`<table><tr><th rowspan="2">Tipo</th><th colspan="2">Hoy</th></tr>
		<tr><th>Compra</th><th>Venta</th></tr><tr><td>Euro (EU)</td><td>64.20</td><td>71.10</td></tr></table>`), []string{
		"test EUR unspecified [64.20] [71.10]",
	}, "", ""}})
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
		{"in a cell", pageOf(`<table><tr><td>` + without + `</td><td>` + second + `</td></tr></table>`), dollar, "", ""},
		{"for narrow screens", pageOf(first + again), euro, "", ""},
		{"of another day", pageOf(first + yesterday), nil, Layout, "another row of headings"},
		{"of others", pageOf(first + second), nil, Layout, "another row of headings"},
	})
}

// Spans that nobody can mean cost neither time nor memory.
func TestHTMLRows_HostileSpans(t *testing.T) {
	d := bankTable()
	cell := `<td colspan="1000000000" rowspan="1000000000">Compra</td>`
	_, err := d.Parse(0, documentOf(pageOf("<table><tr>"+strings.Repeat(cell, 2000)+"</tr>"+strings.Repeat("<tr><td>1</td></tr>", 4000)+"</table>")))
	wantFailure(t, err, Layout, "headings")
}

// Cards instead of a table, and one side only: the other one is never derived.
func TestHTMLRows_Cards(t *testing.T) {
	d := sourceOf(Extract{Method: HTMLRows, Rows: &Rows{
		At: ".plan", Label: Place{At: "h3"}, Buy: &Place{At: ".value"}, Min: 2,
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

// The list of an aggregator: names with traps, prices in attributes, the average that is no institution.
func TestHTMLRows_Aggregator(t *testing.T) {
	d := sourceOf(Extract{Method: HTMLRows, Rows: &Rows{
		At: "table#Dolar tr", Label: Place{At: ".nombre"}, Min: 3, Ignore: []string{"promedio infodolar"},
		Buy: &Place{Column: "compra", Attribute: "data-order"}, Sell: &Place{Column: "venta", Attribute: "data-order"},
		Labels: map[string]Target{
			"la nacional":                  {Institution: "la-nacional"},
			"agente de cambio la nacional": {Institution: "agente-la-nacional"},
			"caribe":                       {Institution: "caribe"},
			"caribe express":               {Institution: "caribe-express"},
			"scotiabank":                   {Institution: "scotiabank"},
			"scotiabank cambio online":     {Institution: "scotiabank", Channel: engine.Digital},
			"rm":                           {Institution: "rm"},
		},
	}})
	d.Institution = ""
	row := func(name, buy, sell string) string {
		return fmt.Sprintf(`<tr><td><span class="nombre">%s</span></td><td class="colCompraVenta" data-order="%s">%s = $0.10</td>
			<td class="colCompraVenta" data-order="%s">%[4]s</td></tr>`, name, buy, buy, sell)
	}
	page := func(rows ...string) string {
		return pageOf(`<table class="cotizaciones" id="Dolar"><thead><tr><th>Entidad</th><th>Compra</th><th>Venta</th></tr></thead>` +
			strings.Join(rows, "") + `</table><table id="DolarPromedio"><tr><td class="nombre">Promedio InfoDolar</td></tr></table>`)
	}
	checkCases(t, d, []parseCase{
		{"names that contain each other", page(
			row("La Nacional", "$58.10", "$60.10"), row("Agente de Cambio La Nacional", "$58.50", ""), row(" Caribe ", "$57.00", "$59.50"),
			row("Caribe Express", "$58.00", "$59.00"), row("Promedio InfoDolar", "$58.00", "$59.00"), row("RM", "$58.40", "$59.10"),
			row("Firm", "$1.00", "$2.00")), []string{
			"la-nacional USD unspecified [58.10] [60.10]", "agente-la-nacional USD unspecified [58.50] []",
			"caribe USD unspecified [57.00] [59.50]", "caribe-express USD unspecified [58.00] [59.00]", "rm USD unspecified [58.40] [59.10]",
			`note: unknown label "firm"`,
		}, "", ""},
		{"two channels", page(row("Scotiabank", "$56.60", "$60.30"), row("Scotiabank Cambio online", "$57.10", "$59.90"), row("RM", "1", "2")),
			[]string{
				"scotiabank USD unspecified [56.60] [60.30]", "scotiabank USD digital [57.10] [59.90]", "rm USD unspecified [1] [2]",
			}, "", ""},
		{"most names gone", page(row("RM", "$58.40", "$59.10")), nil, Layout, "1 rows with a known label"},
	})
	visible := *d.Pages[0].Extract.Rows
	visible.Buy, visible.Sell = &Place{Column: "compra"}, &Place{Column: "venta"}
	visible.Min = 1
	d.Pages[0].Extract.Rows = &visible
	checkCases(t, d, []parseCase{{"price and daily change", page(row("RM", "$62.90", "$64.10 = $0.00")), []string{
		"rm USD unspecified [62.90] [64.10]",
	}, "", ""}})
}

// A date in each row: a row without one is left out, the others are not.
func TestHTMLRows_DateOfTheRow(t *testing.T) {
	d := sourceOf(Extract{Method: HTMLRows, Rows: &Rows{
		At: "li", Label: Place{At: "b"}, Buy: &Place{At: "i"}, Min: 1, Date: &Date{Place: Place{At: "u"}, Form: DayMonthYear},
		Labels: map[string]Target{"dolar": {Currency: "USD"}, "euro": {Currency: "EUR"}},
	}})
	checkCases(t, d, []parseCase{
		{"one without", pageOf("<li><b>Dólar</b><i>58</i><u>7/9/2026</u></li><li><b>Euro</b><i>66</i></li>"), []string{
			"test USD unspecified [58] [] 2026-09-07", `note: test EUR is left out: no date stands at "u"`,
		}, "", ""},
		{"all without", pageOf("<li><b>Dólar</b><i>58</i><u>ayer</u></li>"), nil, Layout, "ayer"},
	})
}
