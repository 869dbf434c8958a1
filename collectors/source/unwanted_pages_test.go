package source_test

import (
	"slices"
	"strings"
)

func of(source string, cases ...unwanted) []unwanted {
	for i := range cases {
		cases[i].source = source
	}
	return cases
}

// exchanged are headings with buy and sell in each other's place.
func exchanged(headings string) string {
	return strings.NewReplacer("Compra", "Venta", "Venta", "Compra").Replace(headings)
}

// unwantedTables are pages with tables or cards.
func unwantedTables() []unwanted {
	return slices.Concat(scotiabankTables(), of("lopez-de-haro-site", haroTables()...), of("infodolar", infodolarTables()...), houseCards())
}

func scotiabankTables() []unwanted {
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
	return of("scotiabank-site", []unwanted{
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

func haroTables() []unwanted {
	table := func(rows, behind string) string {
		return page("BLH", `<table><tr><td>Moneda</td><td>Compra</td><td>Venta</td></tr>`+rows+`</table>`+behind)
	}
	const dollar = `<tr><td>Dólar</td><td>58.10</td><td>60.10</td></tr>`
	const reference = `<h3>Tasas del Banco Central</h3><table><tr><td>Moneda</td><td>Compra</td><td>Venta</td></tr>
		<tr><td>Euro</td><td>69.10</td><td>69.90</td></tr></table>`
	const want = "lopez-de-haro USD 58.1/60.1"
	return []unwanted{
		{name: "as it is", body: table(dollar, ""), want: want},
		{name: "the table of the central bank", body: table(dollar, reference)},
		{name: "the same for narrow screens", body: table(dollar, table(dollar, "")), want: want},
		{name: "a hidden row of yesterday", body: table(`<tr hidden><td>Dólar</td><td>57.10</td><td>59.10</td></tr>`+dollar, "")},
		{name: "a table in a template", body: table(dollar, "<template>"+reference+"</template>"), want: want},
		{name: "interest", body: table(`<tr><td>Dólar</td><td>2.15%</td><td>3.40%</td></tr>`, "")},
	}
}

// infodolarTables are lists of an aggregator.
func infodolarTables() []unwanted {
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
	return []unwanted{
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

func houseCards() []unwanted {
	card := func(label, value, word string) string {
		return `<div class="plan"><h3>` + label + `</h3><b class="value">` + value + `</b> <i>` + word + `</i></div>`
	}
	plan := func(label, value string) string {
		return `<div class="plan"><h3>` + label + `</h3><div class="plan-features"><h4>` + value + `</h4></div></div>`
	}
	return slices.Concat(of("caribe-express-site", []unwanted{
		{name: "as it is", body: page("CE", card("EUROS", "66.00", "compra")), want: "caribe-express EUR 66/"},
		{name: "what it sells for", body: page("CE", card("EUROS", "70.00", "venta"))},
		{name: "both ways", body: page("CE", card("EUROS", "66.00", "compra")+card("EUROS", "70.00", "venta")), want: "caribe-express EUR 66/"},
		{name: "remittances", body: page("CE", card("DOLARES AMERICANOS", "59.00", "remesas"))},
		{name: "two prices", body: page("CE", card("EUROS", `66.00</b> <b class="value">66.50`, "compra"))},
	}...), of("agente-la-nacional-site", []unwanted{
		{name: "as it is", body: page("ACN", plan("EUROS", "$66.00")), want: "agente-la-nacional EUR 66/"},
		{name: "what it sells for", body: page("ACN", plan("EUROS", "$70.00 venta"))},
		{name: "two euros", body: page("ACN", plan("EUROS", "$66.00")+plan("EURO", "$75.45"))},
		{name: "raised cents", body: page("ACN", plan("EUROS", "$66<sup>50</sup>"))},
	}...))
}

// unwantedTexts are pages of which the words are read.
func unwantedTexts() []unwanted {
	union := func(text string) string { return page("Unión", `<div class="tasatable">`+text+`</div>`) }
	peravia := func(buy, sell string) string {
		return page("Peravia", `<div class="tasas"><p class="compra"><strong>`+buy+`</strong></p><p class="compra"><strong>`+sell+`</strong></p></div>`)
	}
	ademi := func(rows string) string {
		return page("Ademi", `<div id="popmake-6122"><table><tr><th>Compra</th><th>Venta</th></tr>`+rows+`</table></div>`)
	}
	nacional := func(text string) string {
		return page("ALNAP", `<div class="block-content"><table>`+text+`</table></div>`)
	}
	qik := func(text string) string { return page("Qik", `<main>`+text+`</main>`) }
	bonanza := func(text string) string { return page("Bonanza", `<marquee>`+text+`</marquee>`) }
	quezada := func(text string) string {
		return page("Quezada", `<header><div class="overlay"><label>`+text+`</label></div></header>`)
	}
	return slices.Concat(of("union-site", []unwanted{
		{name: "as it is", body: union(`<h2>RD$ 58.10</h2><h2>RD$ 60.10</h2>`), want: "union USD 58.1/60.1"},
		{name: "the euro instead", body: union(`<h2>Euro: RD$ 66.10</h2><h2>RD$ 70.10</h2>`)},
		{name: "a euro by its sign", body: union(`<h2>€ 66.10</h2><h2>€ 70.10</h2>`)},
		{name: "remittances", body: union(`<h2>Remesas 57.10</h2><h2>60.10</h2>`)},
		{name: "yesterday", body: union(`<h2>Ayer 57.10</h2><h2>60.10</h2>`)},
		{name: "one dollar equals", body: union(`<h2>US$ 1.00</h2><h2>RD$ 58.10</h2>`)},
		{name: "a date", body: union(`<h2>17</h2><h2>58.10</h2><h2>60.10</h2>`)},
	}...), of("peravia-site", []unwanted{
		{name: "as it is", body: peravia("RD$58.10", "RD$60.10"), want: "peravia USD 58.1/60.1"},
		{name: "sell first", body: peravia("RD$60.10", "RD$58.10")},
		{name: "the euro instead", body: peravia("EUR 66.10", "EUR 70.10")},
		{name: "struck out", body: peravia("<s>RD$57.10</s>", "RD$60.10")},
	}...), of("ademi-site", []unwanted{
		{name: "as it is", body: ademi(`<tr><td>RD$ 58.10</td><td>RD$ 60.10</td></tr>`), want: "ademi USD 58.1/60.1"},
		{name: "the euro instead", body: ademi(`<tr><td>€ 66.10</td><td>€ 70.10</td></tr>`)},
		{name: "both currencies", body: ademi(`<tr><td>58.10</td><td>60.10</td></tr><tr><td>66.10</td><td>70.10</td></tr>`)},
	}...), of("la-nacional-site", []unwanted{
		{name: "as it is", body: nacional(`<tr><td>Compra</td><td>Venta</td></tr><tr><td>58.10</td><td>60.10</td></tr>`), want: "la-nacional USD 58.1/60.1"},
		{name: "the reference", body: nacional(`<tr><td>Compra de referencia</td><td>Venta</td></tr><tr><td>58.10</td><td>58.40</td></tr>`)},
	}...), of("qik-site", []unwanted{
		{name: "as it is", body: qik("Vendemos: RD$ 60.10 Compramos: RD$ 58.10"), want: "qik USD 58.1/60.1"},
		{name: "an example that is hidden", want: "qik USD 58.1/60.1",
			body: qik(`<p style="display:none">Vendemos: RD$ 65.00 Compramos: RD$ 55.00</p>Vendemos: RD$ 60.10 Compramos: RD$ 58.10`)},
		{name: "twice", body: qik("Vendemos: RD$ 60.10 Compramos: RD$ 58.10 <p>Vendemos: RD$ 70.10 Compramos: RD$ 66.10</p>")},
		{name: "two currencies in one line", body: qik("Vendemos: RD$ 70.10 en euros. Compramos: RD$ 58.10")},
	}...), of("bonanza-site", []unwanted{
		{name: "as it is", body: bonanza("Dólar Compra: RD$58.10 Venta: RD$60.10"), want: "bonanza USD 58.1/60.1"},
		{name: "the euro behind the dollar", body: bonanza("Dólar no disponible. Euro Compra: RD$66.10 Venta: RD$70.10")},
	}...), of("quezada-site", []unwanted{
		{name: "as it is", body: quezada("Compra 58.10</label><label>Venta 60.10"), want: "quezada USD 58.1/60.1"},
		{name: "the euro instead", body: quezada("Euro 66.10</label><label>70.10")},
	}...), of("empire-site", []unwanted{
		{name: "two numbers", body: "58.10 60.10"},
		{name: "a page", body: page("Empire", "58.10")},
		{name: "cut off", body: "58.1"},
	}...))
}

// unwantedData are answers of services.
func unwantedData() []unwanted {
	bhd := func(entries string) string { return `{"data":{"attributes":{"exchangeRates":[` + entries + `]}}}` }
	const usd = `{"heading":"Dólares US$","currency":"USD","buyingRate":58.1,"sellingRate":60.1}`
	popular := func(items string) string { return `{"d":{"results":[` + items + `]}}` }
	const item = `{"ItemID":"1","DollarBuyRate":58.1,"DollarSellRate":60.1}`
	vimenca := func(status, entries string) string { return `{"status":"` + status + `","data":[` + entries + `]}` }
	bcrd := func(body string) string { return `{"success":true,"result":{` + body + `}}` }
	const rates = `"actualPurchaseValue":58.1,"actualSellingValue":60.1`
	return slices.Concat(of("bhd-site", []unwanted{
		{name: "as it is", body: bhd(usd), want: "bhd USD 58.1/60.1"},
		{name: "a currency twice", body: bhd(usd + `,{"heading":"Remesas","currency":"USD","buyingRate":57.1,"sellingRate":61.1}`)},
		{name: "a key twice", body: bhd(`{"currency":"USD","buyingRate":57.1,"buyingRate":58.1,"sellingRate":60.1}`)},
		{name: "thousands in a text", body: bhd(`{"currency":"USD","buyingRate":"58,100","sellingRate":"60,100"}`)},
		{name: "commas in a text", body: bhd(`{"currency":"USD","buyingRate":"58,10","sellingRate":"60,10"}`), want: "bhd USD 58.1/60.1"},
		{name: "another currency in a text", body: bhd(`{"currency":"EUR","buyingRate":"66.10 USD","sellingRate":"70.10 USD"}`)},
		{name: "exponents", body: bhd(`{"currency":"USD","buyingRate":5.81e1,"sellingRate":6.01e1}`)},
	}...), of("popular-site", []unwanted{
		{name: "as it is", body: popular(item), want: "popular USD 58.1/60.1"},
		{name: "two entries", body: popular(`{"ItemID":"9","DollarBuyRate":50.1,"DollarSellRate":65.1},` + item)},
		{name: "none", body: popular("")},
	}...), of("vimenca-site", []unwanted{
		{name: "as it is", body: vimenca("OK", `{"coinCode":2,"purchaseValue":58.1,"saleValue":60.1}`), want: "vimenca USD 58.1/60.1"},
		{name: "an error with values", body: vimenca("ERROR", `{"coinCode":2,"purchaseValue":58.1,"saleValue":60.1}`)},
		{name: "another coin", body: vimenca("OK", `{"coinCode":20,"purchaseValue":58.1,"saleValue":60.1}`)},
		{name: "zeros", body: vimenca("OK", `{"coinCode":2,"purchaseValue":0,"saleValue":0}`)},
	}...), of("bcrd-reference", []unwanted{
		{name: "as it is", body: bcrd(rates + `,"date":"2026-09-17T00:00:00Z"`), want: "bcrd USD 58.1/60.1"},
		{name: "no date", body: bcrd(rates)},
		{name: "a moment for a day", body: bcrd(rates + `,"date":"2026-09-17T18:30:00Z"`)},
		{name: "next month", body: bcrd(rates + `,"date":"2026-10-17T00:00:00Z"`)},
		{name: "one side twice", body: bcrd(`"actualPurchaseValue":58.1,"actualSellingValue":58.1,"date":"2026-09-17T00:00:00Z"`)},
	}...), of("lafise-site", []unwanted{
		{name: "as it is", body: `{"date":"2026-09-17","rates":{"USD":{"buying":58.1,"selling":60.1}}}`, want: "lafise USD 58.1/60.1"},
		{name: "Canadian dollars", body: `{"date":"2026-09-17","rates":{"USD":{"buying":39.6971,"selling":42.627}}}`},
	}...), of("promerica-site", unwanted{name: "pounds", body: `{"value":[{"currency":"826","buys":75.1,"sales":80.1}]}`}),
		of("indexa", unwanted{name: "another bank", page: 1, body: `{"status":"success","data":[{"bank":"bpd","rate":58.1,"date":"2026-09-17","name":"dollarbuyrate"}]}`}))
}
