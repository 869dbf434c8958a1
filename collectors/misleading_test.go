package collectors

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/collectors/suggest"
	"github.com/tasard/tasard/engine"
)

// excluded is a synthetic page with something that is not today's rate, and all that may be served of it as a first
// document.
type misleading struct {
	source, name, body, want string
	page                     int
}

// servedOf is what the engine serves of a document that is the first of its source: there is no last good value that
// could save it.
func servedOf(t *testing.T, d *source.Definition, page int, body string) (string, error) {
	t.Helper()
	at := time.Date(2026, 9, 17, 17, 0, 0, 0, engine.Location())
	answers := make([]source.Result, len(d.Pages))
	answer, err := d.Parse(page, &source.Document{Body: []byte(body), FetchedAt: at})
	if err != nil {
		return "", err
	}
	answers[page] = answer
	l := newTestEngine(t, engine.DefaultRules(), source.DefaultSet().Sources()...)
	l.observe(BuildRefreshes(d, answers, at, time.Time{}), at)
	var served []string
	for code, book := range l.currencies {
		for _, offer := range book.Saved().SourceQuotes {
			served = append(served, fmt.Sprintf("%s %s %s/%s", offer.Key.Institution, code, short(offer.Buy), short(offer.Sell)))
		}
	}
	slices.Sort(served)
	return strings.Join(served, "; "), nil
}

func short(value engine.Decimal) string {
	if text := value.String(); strings.Contains(text, ".") {
		return strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return value.String()
}

func misleadingDocuments() []misleading {
	return slices.Concat(misleadingElements(), misleadingAttributes(), scotiabankTables(), of("lopez-de-haro-site", haroTables()...),
		of("infodolar", infodolarTables()...), houseCards(), misleadingTexts(), misleadingData())
}

// A suggested definition reads each side of a currency as people read it in these documents, or not at all.
func TestSuggest_MisleadingDocuments(t *testing.T) {
	last := []engine.Observation{{Currency: "USD", Buy: "58.10", Sell: "60.10"}, {Currency: "EUR", Buy: "66.10", Sell: "70.10"}}
	right := strings.Fields("USD-buy-58.1 USD-sell-60.1 EUR-buy-66.1 EUR-sell-70.1 EUR-buy-66 EUR-sell-70 GBP-buy-75.1 GBP-sell-80.1 CAD-buy-41.1 CAD-sell-44.1")
	suggested := 0
	for _, c := range misleadingDocuments() {
		for _, known := range [][]engine.Observation{nil, last} {
			at := time.Date(2026, 9, 17, 17, 0, 0, 0, engine.Location())
			s := suggest.Suggest(source.DefaultSet().File(c.source), c.page, &source.Document{Body: []byte(c.body)}, known, engine.DateOf(at))
			if s.Definition != nil {
				suggested++
			}
			for _, f := range s.Found {
				if price := short(decimal(f.Price)); !slices.Contains(right, fmt.Sprintf("%s-%s-%s", f.Currency, f.Side, price)) {
					t.Errorf("%s/%s, known %t: %s %s %s; %q", c.source, c.name, known != nil, f.Currency, f.Side, price, f.Reasons)
				}
			}
		}
	}
	if suggested < 60 {
		t.Errorf("%d suggestions", suggested)
	}
}

// Documents that must not become a rate: of each only the rates that people would read in it are served.
func TestI3_DocumentsThatMustNotBecomeARate(t *testing.T) {
	all := misleadingDocuments()
	definitions := map[string]bool{}
	for _, c := range all {
		definitions[c.source] = true
		t.Run(c.source+"/"+c.name, func(t *testing.T) {
			d, known := source.DefaultSet().Find(c.source)
			if !known {
				t.Fatalf("there is no definition %s", c.source)
			}
			got, err := servedOf(t, d, c.page, c.body)
			if got != c.want {
				t.Errorf("served %q, want %q (%v)", got, c.want, err)
			}
		})
	}
	t.Logf("%d documents for %d definitions", len(all), len(definitions))
	if len(all) < 60 {
		t.Errorf("only %d documents", len(all))
	}
}

func page(title, body string) string {
	return `<!DOCTYPE html><html lang="es"><head><title>` + title + `</title></head><body>` + body + `</body></html>`
}

func misleadingElements() []misleading {
	banreservas := func(buy, rest string) string {
		return page("Banreservas", `<span class="tasacambio-compraUS">`+buy+`</span><span class="tasacambio-ventaUS">60.10</span>`+rest)
	}
	caribe := func(buy, rest string) string {
		return page("Caribe", `<b id="us_buy_num">`+buy+`</b><b id="us_sell_num">RD$60.10</b>`+rest)
	}
	return []misleading{
		{source: "banreservas-site", name: "as it is", body: banreservas("58.10", ""), want: "banreservas USD 58.1/60.1"},
		{source: "banreservas-site", name: "an older twin", body: banreservas("58.10", `<b class="tasacambio-compraUS">Compra 57.90</b>`)},
		{source: "banreservas-site", name: "an example in a template",
			body: banreservas("58.10", `<template><b class="tasacambio-compraUS">50.00</b></template>`), want: "banreservas USD 58.1/60.1"},
		{source: "banreservas-site", name: "yesterday struck out", body: banreservas("<del>57.90</del> 58.10", ""), want: "banreservas USD 58.1/60.1"},
		{source: "banreservas-site", name: "a hidden value", body: banreservas(`<i style="display: none">57.90</i>58.10`, ""), want: "banreservas USD 58.1/60.1"},
		{source: "banreservas-site", name: "digits from right to left", body: banreservas("\u202e01.85\u202c", "")},
		{source: "banreservas-site", name: "a mark of direction", body: banreservas("\u200f58.10\u200e", ""), want: "banreservas USD 58.1/60.1"},

		{source: "caribe-site", name: "as it is", body: caribe("RD$58.10", ""), want: "caribe USD 58.1/60.1"},
		{source: "caribe-site", name: "another price for narrow screens", body: caribe("RD$58.10", `<b id="mus_buy_num">57.90</b>`)},
		{source: "caribe-site", name: "in dollars of the US for a euro",
			body: page("Caribe", `<b id="eur_buy_num">US$ 58.10</b><b id="eur_sell_num">RD$70.10</b>`)},
		{source: "caribe-site", name: "a sell that was copied to buy", body: caribe("RD$61.10", "")},
		{source: "caribe-site", name: "thousands", body: caribe("RD$58,100.00", "")},
		{source: "caribe-site", name: "a point that may separate thousands", body: caribe("RD$58.100", "")},
		{source: "caribe-site", name: "a lost point", body: caribe("5810", "")},
	}
}

func misleadingAttributes() []misleading {
	bdi := func(foot string) string {
		return page("BDI", `<input id="rd-compra" value="58.10"><input id="rd-venta" value="60.10"><div class="modal-footer">`+foot+`</div>`)
	}
	banesco := func(attributes string) string {
		return page("Banesco", `<div class="calculator" data-currency-usd-rate-buy="58.10" data-currency-usd-rate-sell="60.10" `+attributes+`></div>`)
	}
	apap := func(body string) string { return page("APAP", `<p id="currency-sell-USD">60.10 DOP</p>`+body) }
	popular := func(desktop string) string {
		return page("Popular", `<input id="compra_peso_dolar_modal" value="58.10"><input id="venta_peso_dolar_modal" value="60.10">`+
			`<input id="compra_peso_dolar_desktop" value="`+desktop+`">`)
	}
	quezada := func(text string) string { return page("Quezada", `<li class="da-ef">`+text+`</li>`) }
	return []misleading{
		{source: "bdi-site", name: "as it is", body: bdi("<p>Actualizado: 17/09/2026 10:05</p>"), want: "bdi USD 58.1/60.1"},
		{source: "bdi-site", name: "no date", body: bdi("<p>Tasas sujetas a cambio</p>")},
		{source: "bdi-site", name: "two dates", body: bdi("<p>Actualizado: 17/09/2026 10:05</p><p>Actualizado: 16/09/2026 10:05</p>")},
		{source: "bdi-site", name: "two dates in one paragraph", body: bdi("<p>Actualizado: 16/09/2026 10:05\nActualizado: 17/09/2026 10:05</p>")},
		{source: "bdi-site", name: "a day of next month", body: bdi("<p>Actualizado: 17/10/2026 10:05</p>")},
		{source: "bdi-site", name: "month before day", body: bdi("<p>Actualizado: 09/17/2026 10:05</p>")},

		{source: "banesco-site", name: "as it is", body: banesco(`data-currency-date="2026-09-17"`), want: "banesco USD 58.1/60.1"},
		{source: "banesco-site", name: "no date", body: banesco("")},
		{source: "banesco-site", name: "a second calculator", body: banesco(`data-currency-date="2026-09-17"`) +
			`<div class="calculator" data-currency-usd-rate-buy="55.00" data-currency-usd-rate-sell="65.00"></div>`},
		{source: "banesco-site", name: "two dates", body: banesco(`data-currency-date="2026-09-17"`) +
			`<div class="calculator" data-currency-date="2026-09-16"></div>`},
		{source: "banesco-site", name: "euros in dollars", want: "banesco USD 58.1/60.1",
			body: banesco(`data-currency-date="2026-09-17" data-currency-eur-rate-buy="1.08" data-currency-eur-rate-sell="1.17"`)},

		{source: "apap-site", name: "as it is", body: apap(`<p id="currency-buy-USD">58.10 DOP</p>`), want: "apap USD 58.1/60.1"},
		{source: "apap-site", name: "two prices in the script", body: apap(`<p id="currency-buy-USD"></p><script>
			// $('#currency-buy-USD').text('50.00')
			$('#currency-buy-USD').text('58.10')</script>`)},
		{source: "apap-site", name: "a script as a text", body: apap(`<pre>$('#currency-buy-USD').text('50.00')</pre>`), want: "apap USD /60.1"},
		{source: "apap-site", name: "a delay", body: apap(`<p id="currency-buy-USD"></p><script>fade($("#currency-buy-USD"), 50)</script>`), want: "apap USD /60.1"},
		{source: "apap-site", name: "a number of decimals", want: "apap USD /60.1",
			body: apap(`<p id="currency-buy-USD"></p><script>$("#currency-buy-USD").html(toFixed(58,2))</script>`)},

		{source: "popular-html", name: "as it is", body: popular("58.10"), want: "popular USD 58.1/60.1"},
		{source: "popular-html", name: "an older calculator", body: popular("50.00")},
		{source: "popular-html", name: "a calculator's default",
			body: page("P", `<input id="compra_peso_dolar_modal" value="1.00"><input id="venta_peso_dolar_modal" value="60.10">`)},

		{source: "quezada-cash", name: "as it is", body: quezada("COMPRA: 58.10 - VENTA 60.10"), want: "quezada USD 58.1/60.1"},
		{source: "quezada-cash", name: "sides exchanged", body: quezada("VENTA: 60.10 - COMPRA 58.10")},
		{source: "quezada-cash", name: "cheques too", body: quezada("COMPRA: 58.10 - VENTA 60.10 - CHEQUE 57.00"), want: "quezada USD 58.1/"},
		{source: "activo-site", name: "columns exchanged",
			body: page("A", `<table class="table"><tr><td class="subtitulo-dolar">Dólar</td><td>60.10</td><td>58.10</td></tr></table>`)},
	}
}

func of(source string, cases ...misleading) []misleading {
	for i := range cases {
		cases[i].source = source
	}
	return cases
}

// exchanged are headings with buy and sell in each other's place.
func exchanged(headings string) string {
	return strings.NewReplacer("Compra", "Venta", "Venta", "Compra").Replace(headings)
}

func scotiabankTables() []misleading {
	const heads = `<tr><th>País</th><th>Tipo</th><th>Compra</th><th>Venta</th></tr>`
	row := func(label, buy, sell string) string {
		return `<tr><td></td><td>` + label + `</td><td>` + buy + `</td><td>` + sell + `</td></tr>`
	}
	table := func(rows string) string {
		return page("Scotiabank", `<div class="_bns--table"><table>`+rows+`</table></div>`)
	}
	usd, eur := row("Dólar (US) Sucursales", "58.10", "60.10"), row("Euro (EU)", "66.10", "70.10")
	preferred, digital := row("Dólar (US) Sucursales - tasa preferencial", "59.00", "59.50"), row("Dólar (US) Sucursales", "59.00", "59.50")
	const euros, dollars, both = "scotiabank EUR 66.1/70.1", "scotiabank USD 58.1/60.1", "scotiabank EUR 66.1/70.1; scotiabank USD 58.1/60.1"
	return of("scotiabank-site", []misleading{
		{name: "as it is", body: table(heads + usd + eur), want: both},
		{name: "a preferential rate", body: table(heads + usd + eur + preferred), want: both},
		{name: "a label twice", body: table(heads + usd + eur + digital), want: euros},
		{name: "cash and transfers", body: table(strings.Replace(heads, "<th>Compra</th><th>Venta</th>",
			"<th>Compra efectivo</th><th>Venta efectivo</th><th>Compra transferencia</th>", 1) + usd + eur)},
		{name: "a column for cheques", body: table(strings.Replace(heads, "<th>Compra</th>", "<th>Compra cheque</th><th>Compra</th>", 1) +
			strings.NewReplacer("<td>58.10", "<td>50.00</td><td>58.10", "<td>66.10", "<td>60.00</td><td>66.10").Replace(usd+eur)), want: both},
		{name: "yesterday beside today", body: table(strings.Replace(heads, "<th>Venta</th>", "<th>Venta</th><th>Compra</th><th>Venta</th>", 1) + usd + eur)},
		{name: "columns exchanged", body: table(exchanged(heads) + usd + eur)},
		{name: "one cell for both sides", want: euros,
			body: table(heads + strings.Replace(usd, "<td>58.10</td><td>60.10</td>", `<td colspan="2">59.10</td>`, 1) + eur + eur +
				row("Dólar (US) Canales Digitales", "-", "-"))},
		{name: "one cell for both sides of the euro", want: dollars,
			body: table(heads + usd + strings.Replace(eur, "<td>66.10</td><td>70.10</td>", `<td colspan="2">68.10</td>`, 1) + usd)},
		{name: "cards below headings of their own",
			body: table(heads + usd + eur + `<tr><th></th><th>Tarjetas</th><th>Compra</th><th>Venta</th></tr>` + row("Dólar (CA)", "30.10", "50.10"))},
		{name: "columns exchanged in the middle",
			body: table(heads + usd + eur + exchanged(heads) + row("Dólar (CA)", "44.10", "41.10"))},
		{name: "a table of yesterday", body: table(heads + usd + eur + `</table><h3>Ayer</h3><table>` + heads + digital)},
		{name: "two numbers in a cell", want: euros, body: table(heads + strings.Replace(usd, "58.10", "58.10 57.90", 1) + eur)},
		{name: "a euro in dollars", want: dollars, body: table(heads + usd + row("Euro (EU)", "1.0812", "1.1700"))},
		{name: "a euro in dollars, by name", want: dollars, body: table(heads + usd + row("Euro (EU)", "USD 66.10", "USD 70.10"))},
		{name: "thousands", want: euros, body: table(heads + strings.Replace(usd, "58.10", "58,100", 1) + eur)},
		{name: "no values", body: table(heads + row("Dólar (US) Sucursales", "N/A", "-") + row("Euro (EU)", "0.00", "0.00"))},
	}...)
}

func haroTables() []misleading {
	table := func(rows, behind string) string {
		return page("BLH", `<table><tr><td>Moneda</td><td>Compra</td><td>Venta</td></tr>`+rows+`</table>`+behind)
	}
	const dollar = `<tr><td>Dólar</td><td>58.10</td><td>60.10</td></tr>`
	const reference = `<h3>Tasas del Banco Central</h3><table><tr><td>Moneda</td><td>Compra</td><td>Venta</td></tr>
		<tr><td>Euro</td><td>69.10</td><td>69.90</td></tr></table>`
	const want = "lopez-de-haro USD 58.1/60.1"
	return []misleading{
		{name: "as it is", body: table(dollar, ""), want: want},
		{name: "the table of the central bank", body: table(dollar, reference)},
		{name: "the same for narrow screens", body: table(dollar, table(dollar, "")), want: want},
		{name: "a hidden row of yesterday", body: table(`<tr hidden><td>Dólar</td><td>57.10</td><td>59.10</td></tr>`+dollar, "")},
		{name: "a table in a template", body: table(dollar, "<template>"+reference+"</template>"), want: want},
		{name: "interest", body: table(`<tr><td>Dólar</td><td>2.15%</td><td>3.40%</td></tr>`, "")},
	}
}

func infodolarTables() []misleading {
	row := func(name, sorted, seen string) string {
		return `<tr><td class="nombre">` + name + `</td><td data-order="` + sorted + `">` + seen + `</td><td data-order="$60.10">$60.10 = $0.00</td></tr>`
	}
	table := func(title, id, rows string) string {
		return page(title, `<table id="`+id+`"><tr><th>Entidad</th><th>Compra</th><th>Venta</th></tr>`+rows+`</table>`)
	}
	var others string
	for _, name := range []string{"Alaver", "Duarte", "Girosol", "Panora", "SCT"} {
		others += row(name, "", "-")
	}
	const silent = "alaver USD /60.1; duarte USD /60.1; girosol USD /60.1; panora USD /60.1; sct USD /60.1"
	usd := func(rows string) string { return table("Precio del dólar hoy", "Dolar", rows+others) }
	few := row("Alaver", "$58.10", "$58.10 = $0.00") + row("Caribe", "$58.20", "$58.20 = $0.00") + row("RM", "$58.30", "$58.30 = $0.00")
	return []misleading{
		{name: "as it is", body: usd(row("RM", "$58.10", "$58.10 = -$0.10")), want: strings.Replace(silent, "; sct", "; rm USD 58.1/60.1; sct", 1)},
		{name: "a sorting key that was forgotten", body: usd(row("RM", "$55.10", "$58.10 = $0.00")), want: silent},
		{name: "the average", body: usd(row("Promedio InfoDolar", "$58.10", "$58.10")), want: silent},
		{name: "a name that contains another", body: usd(row("Caribe Express Remesas", "$58.10", "$58.10")), want: silent},
		{name: "a house twice", body: usd(row("RM", "$58.10", "$58.10") + row("Agente de Cambio RM", "$58.60", "$58.60")), want: silent},
		{name: "the page of the dollar for that of the euro", page: 1, body: table("Precio del dólar hoy", "Dolar", few)},
		{name: "a page of both for that of the euro", page: 1, body: table("Precio del dólar y del euro", "Dolar", few)},
		{name: "dollars beside euros", page: 1,
			body: table("Precio del euro hoy", "Euro", few) + `<table id="Dolar"><tr><th>Entidad</th><th>Compra</th><th>Venta</th></tr>` +
				row("SCT", "$58.10", "$58.10") + `</table>`},
	}
}

func houseCards() []misleading {
	card := func(label, value, word string) string {
		return `<div class="plan"><h3>` + label + `</h3><b class="value">` + value + `</b> <i>` + word + `</i></div>`
	}
	plan := func(label, value string) string {
		return `<div class="plan"><h3>` + label + `</h3><div class="plan-features"><h4>` + value + `</h4></div></div>`
	}
	return slices.Concat(of("caribe-express-site", []misleading{
		{name: "as it is", body: page("CE", card("EUROS", "66.00", "compra")), want: "caribe-express EUR 66/"},
		{name: "what it sells for", body: page("CE", card("EUROS", "70.00", "venta"))},
		{name: "both ways", body: page("CE", card("EUROS", "66.00", "compra")+card("EUROS", "70.00", "venta")), want: "caribe-express EUR 66/"},
		{name: "remittances", body: page("CE", card("DOLARES AMERICANOS", "59.00", "remesas"))},
		{name: "two prices", body: page("CE", card("EUROS", `66.00</b> <b class="value">66.50`, "compra"))},
	}...), of("agente-la-nacional-site", []misleading{
		{name: "as it is", body: page("ACN", plan("EUROS", "$66.00")), want: "agente-la-nacional EUR 66/"},
		{name: "what it sells for", body: page("ACN", plan("EUROS", "$70.00 venta"))},
		{name: "two euros", body: page("ACN", plan("EUROS", "$66.00")+plan("EURO", "$75.45"))},
		{name: "raised cents", body: page("ACN", plan("EUROS", "$66<sup>50</sup>"))},
	}...))
}

func misleadingTexts() []misleading {
	union := func(text string) string { return page("Unión", `<div class="tasatable">`+text+`</div>`) }
	peravia := func(buy, sell string) string {
		return page("Peravia", `<div class="tasas"><p class="compra"><strong>`+buy+`</strong></p><p class="compra"><strong>`+sell+`</strong></p></div>`)
	}
	ademi := func(rows string) string {
		return page("Ademi", `<div id="popmake-6122"><table><tr><th>Compra</th><th>Venta</th></tr>`+rows+`</table></div>`)
	}
	nacional := func(text string) string {
		return page("La Nacional", `<div id="tasasModal">`+text+`</div>`)
	}
	qik := func(text string) string { return page("Qik", `<main>`+text+`</main>`) }
	bonanza := func(text string) string { return page("Bonanza", `<marquee>`+text+`</marquee>`) }
	quezada := func(text string) string {
		return page("Quezada", `<header><div class="overlay"><label>`+text+`</label></div></header>`)
	}
	return slices.Concat(of("union-site", []misleading{
		{name: "as it is", body: union(`<h2>RD$ 58.10</h2><h2>RD$ 60.10</h2>`), want: "union USD 58.1/60.1"},
		{name: "the euro instead", body: union(`<h2>Euro: RD$ 66.10</h2><h2>RD$ 70.10</h2>`)},
		{name: "a euro by its sign", body: union(`<h2>€ 66.10</h2><h2>€ 70.10</h2>`)},
		{name: "remittances", body: union(`<h2>Remesas 57.10</h2><h2>60.10</h2>`)},
		{name: "yesterday", body: union(`<h2>Ayer 57.10</h2><h2>60.10</h2>`)},
		{name: "one dollar equals", body: union(`<h2>US$ 1.00</h2><h2>RD$ 58.10</h2>`)},
		{name: "a date", body: union(`<h2>17</h2><h2>58.10</h2><h2>60.10</h2>`)},
	}...), of("peravia-site", []misleading{
		{name: "as it is", body: peravia("RD$58.10", "RD$60.10"), want: "peravia USD 58.1/60.1"},
		{name: "sell first", body: peravia("RD$60.10", "RD$58.10")},
		{name: "the euro instead", body: peravia("EUR 66.10", "EUR 70.10")},
		{name: "struck out", body: peravia("<s>RD$57.10</s>", "RD$60.10")},
	}...), of("ademi-site", []misleading{
		{name: "as it is", body: ademi(`<tr><td>RD$ 58.10</td><td>RD$ 60.10</td></tr>`), want: "ademi USD 58.1/60.1"},
		{name: "the euro instead", body: ademi(`<tr><td>€ 66.10</td><td>€ 70.10</td></tr>`)},
		{name: "both currencies", body: ademi(`<tr><td>58.10</td><td>60.10</td></tr><tr><td>66.10</td><td>70.10</td></tr>`)},
	}...), of("la-nacional-site", []misleading{
		{name: "as it is", body: nacional(`<h5>Compra USD <span>58.10</span></h5><h5>Venta USD <span>60.10</span></h5>`), want: "la-nacional USD 58.1/60.1"},
		{name: "the reference", body: nacional(`<h5>Compra USD de referencia <span>58.10</span></h5><h5>Venta USD referencia <span>58.40</span></h5>`)},
	}...), of("qik-site", []misleading{
		{name: "as it is", body: qik("Vendemos: RD$ 60.10 Compramos: RD$ 58.10"), want: "qik USD 58.1/60.1"},
		{name: "with its unit, as in 2026", want: "qik USD 58.1/60.1",
			body: qik("<h4>Vendemos: <span>RD$60.10 x US$1.00</span><br>Compramos: <span>RD$58.10 x US$1.00</span></h4>")},
		{name: "an apostrophe for the point", body: qik("Vendemos: RD$ 60'10 Compramos: RD$ 58'10")},
		{name: "one apostrophe", body: qik("Vendemos: RD$ 60.10 Compramos: RD$ 58'10")},
		{name: "a range", body: qik("Vendemos: RD$ 60.10 Compramos: RD$ 58.10 - 59.00")},
		{name: "two prices with a slash", body: qik("Vendemos: RD$ 60.10 Compramos: RD$ 58.10/59.00")},
		{name: "of another unit", body: qik("Vendemos: RD$60.10 x US$100.00 Compramos: RD$58.10 x US$100.00")},
		{name: "an example that is hidden", want: "qik USD 58.1/60.1",
			body: qik(`<p style="display:none">Vendemos: RD$ 65.00 Compramos: RD$ 55.00</p>Vendemos: RD$ 60.10 Compramos: RD$ 58.10`)},
		{name: "twice", body: qik("Vendemos: RD$ 60.10 Compramos: RD$ 58.10 <p>Vendemos: RD$ 70.10 Compramos: RD$ 66.10</p>")},
		{name: "two currencies in one line", body: qik("Vendemos: RD$ 70.10 en euros. Compramos: RD$ 58.10")},
	}...), of("bonanza-site", []misleading{
		{name: "as it is", body: bonanza("Dólar Compra: RD$58.10 Venta: RD$60.10"), want: "bonanza USD 58.1/60.1"},
		{name: "the euro behind the dollar", body: bonanza("Dólar no disponible. Euro Compra: RD$66.10 Venta: RD$70.10")},
	}...), of("quezada-site", []misleading{
		{name: "as it is", body: quezada("Compra 58.10</label><label>Venta 60.10"), want: "quezada USD 58.1/60.1"},
		{name: "the euro instead", body: quezada("Euro 66.10</label><label>70.10")},
	}...), of("empire-site", []misleading{
		{name: "two numbers", body: "58.10 60.10"},
		{name: "a page", body: page("Empire", "58.10")},
		{name: "cut off", body: "58.1"},
	}...))
}

func misleadingData() []misleading {
	bhd := func(entries string) string { return `{"data":{"attributes":{"exchangeRates":[` + entries + `]}}}` }
	const usd = `{"heading":"Dólares US$","currency":"USD","buyingRate":58.1,"sellingRate":60.1}`
	popular := func(items string) string { return `{"d":{"results":[` + items + `]}}` }
	const item = `{"ItemID":"1","DollarBuyRate":58.1,"DollarSellRate":60.1}`
	vimenca := func(status, entries string) string { return `{"status":"` + status + `","data":[` + entries + `]}` }
	bcrd := func(body string) string { return `{"success":true,"result":{` + body + `}}` }
	const rates = `"actualPurchaseValue":58.1,"actualSellingValue":60.1`
	return slices.Concat(of("bhd-site", []misleading{
		{name: "as it is", body: bhd(usd), want: "bhd USD 58.1/60.1"},
		{name: "a currency twice", body: bhd(usd + `,{"heading":"Remesas","currency":"USD","buyingRate":57.1,"sellingRate":61.1}`)},
		{name: "a key twice", body: bhd(`{"currency":"USD","buyingRate":57.1,"buyingRate":58.1,"sellingRate":60.1}`)},
		{name: "thousands in a text", body: bhd(`{"currency":"USD","buyingRate":"58,100","sellingRate":"60,100"}`)},
		{name: "commas in a text", body: bhd(`{"currency":"USD","buyingRate":"58,10","sellingRate":"60,10"}`), want: "bhd USD 58.1/60.1"},
		{name: "another currency in a text", body: bhd(`{"currency":"EUR","buyingRate":"66.10 USD","sellingRate":"70.10 USD"}`)},
		{name: "exponents", body: bhd(`{"currency":"USD","buyingRate":5.81e1,"sellingRate":6.01e1}`)},
	}...), of("popular-site", []misleading{
		{name: "as it is", body: popular(item), want: "popular USD 58.1/60.1"},
		{name: "two entries", body: popular(`{"ItemID":"9","DollarBuyRate":50.1,"DollarSellRate":65.1},` + item)},
		{name: "none", body: popular("")},
	}...), of("vimenca-site", []misleading{
		{name: "as it is", body: vimenca("OK", `{"coinCode":2,"purchaseValue":58.1,"saleValue":60.1}`), want: "vimenca USD 58.1/60.1"},
		{name: "an error with values", body: vimenca("ERROR", `{"coinCode":2,"purchaseValue":58.1,"saleValue":60.1}`)},
		{name: "another coin", body: vimenca("OK", `{"coinCode":20,"purchaseValue":58.1,"saleValue":60.1}`)},
		{name: "zeros", body: vimenca("OK", `{"coinCode":2,"purchaseValue":0,"saleValue":0}`)},
	}...), of("bcrd-reference", []misleading{
		{name: "as it is", body: bcrd(rates + `,"date":"2026-09-17T00:00:00Z"`), want: "bcrd USD 58.1/60.1"},
		{name: "no date", body: bcrd(rates)},
		{name: "a moment for a day", body: bcrd(rates + `,"date":"2026-09-17T18:30:00Z"`)},
		{name: "next month", body: bcrd(rates + `,"date":"2026-10-17T00:00:00Z"`)},
		{name: "one side twice", body: bcrd(`"actualPurchaseValue":58.1,"actualSellingValue":58.1,"date":"2026-09-17T00:00:00Z"`)},
	}...), of("lafise-site", []misleading{
		{name: "as it is", body: `{"date":"2026-09-17","rates":{"USD":{"buying":58.1,"selling":60.1}}}`, want: "lafise USD 58.1/60.1"},
		{name: "Canadian dollars", body: `{"date":"2026-09-17","rates":{"USD":{"buying":39.6971,"selling":42.627}}}`},
	}...), of("promerica-site", misleading{name: "pounds", body: `{"value":[{"currency":"826","buys":75.1,"sales":80.1}]}`}),
		of("indexa", misleading{name: "another bank", page: 1, body: `{"status":"success","data":[{"bank":"bpd","rate":58.1,"date":"2026-09-17","name":"dollarbuyrate"}]}`}))
}

// shape is the document of a definition. BUY and SELL stand for the prices of the dollar.
type shape struct {
	source, body string
	page, sides  int      // with one side, the source has only what the institution buys for
	unread       []string // parts of forms that the definition does not read
}

// shapes reads testdata/shapes.txt: for each shape a line with source, page, number of sides and unread parts, the
// document in the next line, and a blank line.
func shapes(t *testing.T) (all []shape) {
	t.Helper()
	text, err := os.ReadFile("testdata/shapes.txt")
	must(t, err)
	for entry := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		head, body, _ := strings.Cut(entry, "\n")
		s := shape{body: body}
		_, err := fmt.Sscan(head, &s.source, &s.page, &s.sides)
		must(t, err)
		s.unread = strings.Fields(head)[3:]
		all = append(all, s)
	}
	return all
}

// A row of InfoDolar has the date that the row says. A row without a date has none; one with another text is skipped.
func TestInfoDolarRowsHaveTheirDates(t *testing.T) {
	var rows strings.Builder
	for name, title := range map[string]string{
		"RM": "2026-09-12T11:05:00-04:00", "SCT": "2026-09-17 14:30:00Z", "Alaver": "2026-09-16T09:00", "Duarte": "ayer",
		"Girosol": "", "Panora": "2026-09-17T12:00:00", "BHD": "2026-09-17T12:00:00", "Caribe": "jueves, 17 de septiembre de 2026 10:30 a",
	} {
		date := `<abbr class="timeago" title="` + title + `">hace</abbr>`
		if name == "Girosol" {
			date = ""
		}
		rows.WriteString(`<tr><td class="nombre">` + name + `</td><td>$58.10</td><td>$60.10</td><td>` + date + `</td></tr>`)
	}
	d, _ := source.DefaultSet().Find("infodolar")
	body := page("", `<table id="Dolar"><tr><th>Entidad</th><th>Compra</th><th>Venta</th></tr>`+rows.String()+`</table>`)
	result, err := d.Parse(0, &source.Document{Body: []byte(body)})
	must(t, err)
	dates := map[string]string{}
	for _, o := range result.Observations {
		dates[o.InstitutionID] = o.EffectiveDate.String() + " " + o.PublishedAt.Format("15:04")
	}
	want := map[string]string{
		"rm": "2026-09-12 15:05", "sct": "2026-09-17 14:30", "alaver": "2026-09-16 13:00", "panora": "2026-09-17 16:00",
		"bhd": "2026-09-17 16:00", "caribe": "2026-09-17 14:30", "girosol": engine.Date(0).String() + " 00:00",
	}
	if !maps.Equal(dates, want) || !strings.Contains(strings.Join(result.Notes, " "), "duarte USD is skipped") {
		t.Errorf("got %v with notes %q, want %v", dates, result.Notes, want)
	}
}

// Each built-in definition reads its prices from every shape that its site is known to have had, in the usual forms of
// a price but those that the shape names as unread. A JSON form without quotes is a number.
func TestShapes_InEveryFormOfAPrice(t *testing.T) {
	forms := [][2]string{{"58.10", "60.10"}, {"58.1000", "60.1"}, {"RD$58.10", "RD$ 60.10"}, {"58.10 DOP", "DOP 60.10"}, {"\u00a058,10\u00a0", "60,10"}}
	covered := map[string]bool{"bcrd-usd": true, "bcrd-currencies": true} // workbooks
	for _, s := range shapes(t) {
		covered[s.source] = true
		d, known := source.DefaultSet().Find(s.source)
		if !known {
			t.Fatalf("there is no definition %s", s.source)
		}
		want := []string{"58.1/", "58.1/60.1"}[s.sides-1]
		for _, form := range forms {
			isUnread := func(part string) bool { return strings.Contains(form[0]+form[1], part) }
			if slices.ContainsFunc(s.unread, isUnread) {
				continue
			}
			if form != forms[0] && strings.IndexAny(s.body, "{[") == 0 {
				form = [2]string{`"` + form[0] + `"`, `"` + form[1] + `"`}
			}
			body := strings.NewReplacer("BUY", form[0], "SELL", form[1]).Replace(s.body)
			if served, err := servedOf(t, d, s.page, body); !strings.HasSuffix(served, " "+want) {
				t.Errorf("%s, %q: served %q, want %q (%v)\n%s", s.source, form, served, want, err, body)
			}
		}
	}
	for _, d := range source.DefaultSet().Definitions() {
		if !covered[d.ID] {
			t.Errorf("%s has no shape", d.ID)
		}
	}
}
