package collectors

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// shape is the document of a definition. BUY and SELL stand for the prices of the dollar.
type shape struct {
	source, body string
	page         int
	oneSided     bool   // the source has only what the institution buys for
	never        string // parts of forms that the source has never printed
}

func shapes() []shape {
	const infodolar = `<table class="cotizaciones" id="Dolar"><tr><th>Entidad</th><th>Compra</th><th>Venta</th></tr>` +
		`<tr><td class="nombre">RM</td><td>BUY</td><td>SELL</td></tr>ROWS</table>`
	var silent strings.Builder
	for _, name := range []string{"Alaver", "Duarte", "Girosol", "Panora", "SCT"} {
		silent.WriteString(`<tr><td class="nombre">` + name + `</td><td>-</td><td>-</td></tr>`)
	}
	return []shape{
		{source: "activo-site", body: page("", `<table class="table"><tr><td class="subtitulo-dolar">D</td><td>BUY</td><td>SELL</td></tr></table>`)},
		{source: "ademi-site", body: page("", `<div id="popmake-1"><table><tr><th>Moneda</th><th>Compra</th><th>Venta</th></tr>`+
			`<tr><td>US$</td><td>BUY</td><td>SELL</td></tr><tr><td>Euro</td><td>N/A</td><td>N/A</td></tr></table></div>`)},
		{source: "ademi-site", body: page("", `<div id="popmake-1"><table><tr><th>Compra</th><th>Venta</th></tr><tr><td>BUY</td><td>SELL</td></tr></table></div>`)},
		{source: "agente-la-nacional-site", oneSided: true,
			body: page("", `<div class="plan"><h3>DOLARES</h3><div class="plan-features"><h4>BUY</h4></div></div>`)},
		{source: "apap-site", body: page("", `<b id="currency-buy-USD">BUY</b><b id="currency-sell-USD">SELL</b>`)},
		{source: "apap-site", never: "DOP", body: page("", `<b id="currency-buy-USD"></b><b id="currency-sell-USD"></b><script>`+
			`function getRates() { $("#currency-buy-USD").html(addZeroes(BUY)); $("#currency-sell-USD").html(addZeroes("SELL")).delay(300) }</script>`)},
		{source: "banesco-site", body: page("", `<p class="calculator" data-currency-usd-rate-buy="BUY" data-currency-usd-rate-sell="SELL" data-currency-date="2026-09-17T08:00:00">`)},
		{source: "banreservas-json", body: `{"compraUS":BUY,"ventaUS":SELL,"info":{}}`},
		{source: "banreservas-site",
			body: page("", `<b class="tasacambio-compraUS">BUY</b><b class="tasacambio-compraUS">Compra BUY</b><b class="tasacambio-ventaUS">SELL</b>`)},
		{source: "bcrd-reference", never: ",", body: `{"success":true,"result":{"actualPurchaseValue":BUY,"actualSellingValue":SELL,"date":"2026-09-17T00:00:00Z"}}`},
		{source: "bdi-site", body: page("", `<input id="rd-compra" value="BUY"><input id="rd-venta" value="SELL"><div class="modal-footer"><p>Actualizado: 17/09/2026 10:05</p></div>`)},
		{source: "bhd-site", body: `{"data":{"attributes":{"exchangeRates":[{"currency":"USD","buyingRate":BUY,"sellingRate":SELL}]}}}`},
		{source: "bhd-table", body: `{"data":{"attributes":{"table_body":[{"rowdata":[{"headname":"USD"},{},{"headname":BUY},{"headname":SELL}]}]}}}`},
		{source: "bonanza-site", body: page("", `<marquee>Dólar Compra BUY Venta SELL</marquee>`)},
		{source: "caribe-express-site", body: page("", `<div class="plan"><h3>DOLARES AMERICANOS</h3><b class="value">BUY</b> compra</div>`), oneSided: true},
		{source: "caribe-site", body: page("", `<b id="us_buy_num">BUY</b><b id="mus_buy_num">BUY</b><b id="us_sell_num">SELL</b>`)},
		{source: "cibao-site", body: `[{"codigoMoneda":"US$","compra":BUY,"nombre":"US$","venta":SELL},{"codigoMoneda":"EUR$","compra":null,"nombre":"EUR$","venta":"0"}]`},
		{source: "empire-site", never: "1000 RD$ DOP", body: "BUY", oneSided: true},
		{source: "indexa", body: `{"status":"success","data":[{"bank":"bpd","rate":BUY,"date":"2026-09-17","name":"dollarbuyrate"},` +
			`{"bank":"bpd","rate":SELL,"date":"2026-09-17","name":"dollarsellrate"}]}`},
		{source: "infodolar", body: page("", strings.Replace(infodolar, "ROWS", silent.String(), 1))},
		{source: "infodolar", body: page("", strings.NewReplacer("<td>BUY", `<td data-order="BUY">BUY`, "ROWS", silent.String()).Replace(infodolar))},
		{source: "infodolar", page: 1, body: page("InfoDolar.com.do - Precio del euro", strings.NewReplacer(`id="Dolar"`, ``, "ROWS", silent.String()).Replace(infodolar))},
		{source: "infodolar", page: 1, body: page("Precio del euro", `<table class="cotizaciones destacadas">`+
			`<tr><th>Entidad</th><th>Compra</th><th>Venta</th></tr><tr><td class="nombre">SCT</td><td>59</td><td>61</td></tr></table>`+
			strings.NewReplacer(`class="cotizaciones" id="Dolar"`, `id="cotizaciones"`, "ROWS", silent.String()).Replace(infodolar))},
		{source: "jmmb-site", body: page("", `<table class="main-table"><tr><th>Moneda</th><th>Compra</th><th>Venta</th></tr><tr><td>USD</td><td>BUY</td><td>SELL</td></tr></table>`)},
		{source: "la-nacional-site", body: page("", `<div id="tasasModal"><h5>Compra USD <span>BUY</span></h5><h5>Venta USD: <span>SELL</span></h5></div>`)},
		{source: "lafise-site", body: `{"date":"2026-09-17","rates":{"USD":{"buying":BUY,"selling":SELL}}}`},
		{source: "livedolar", body: `[{"display_name":"BHD","buy":BUY,"sell":SELL},{"display_name":"BDI","buy":null,"sell":null},{"display_name":"Qik","buy":null,"sell":null}]`},
		{source: "lopez-de-haro-site", body: page("", `<table><tr><td>Moneda</td><td>Compra</td><td>Venta</td></tr><tr><td>Dólar</td><td>BUY</td><td>SELL</td></tr></table>`)},
		{source: "moneycorps-site", body: page("", `<script>x={"monedas":[{"nombre":"USD","compra":"BUY","venta":"SELL"}]}</script>`)},
		{source: "peravia-site",
			body: page("", `<div class="tasas"><p class="compra"><strong>BUY</strong></p><p class="compra"><strong>SELL</strong></p></div>`)},
		{source: "popular-api", body: `{"monedas":{"fechaConsulta":"2026-09-17","moneda":[{"descripcion":"USD","compra":BUY,"venta":SELL}]}}`},
		{source: "popular-html", body: page("", `<input id="compra_peso_dolar_modal" value="BUY"><input id="venta_peso_dolar_modal" value="SELL">`)},
		{source: "popular-site", body: `{"value":[{"DollarBuyRate":BUY,"DollarSellRate":SELL}]}`},
		{source: "promerica-site", body: `{"value":[{"currency":"840","buys":BUY,"sales":SELL}]}`},
		{source: "qik-site", never: "RD$ DOP", body: page("", `<main>Vendemos: RD$SELL Compramos: RD$BUY</main>`)},
		{source: "qik-site", never: "RD$ DOP", body: page("", `<h4>Vendemos: <span>RD$SELL x US$1.00</span> Compramos: <span>RD$BUY x US$1.00</span></h4>`)},
		{source: "qik-site", never: "RD$ DOP", body: page("", `<main>Vendemos: RD$ SELL Compramos: RD$ BUY</main>`)},
		{source: "quezada-cash", body: page("", `<li class="da-ef">COMPRA: BUY - VENTA SELL</li>`)},
		{source: "quezada-site", body: page("", `<header><div class="overlay"><label>BUY</label><label>SELL</label></div></header>`)},
		{source: "santa-cruz-json", body: `{"usd":{"precio_compra":BUY,"precio_venta":SELL}}`},
		{source: "santa-cruz-site", body: `{"data":{"calculators":{"other":{"foreign_exchange":{"usd":{"buy":BUY,"sale":SELL}}}}}}`},
		{source: "santa-cruz-site", body: `{"data":{"coins":[{"name":" Dolar","price":{"buy":BUY,"sell":SELL}}]}}`},
		{source: "scotiabank-site", body: page("", `<div class="_bns--table"><table><tr><th></th><th>Tipo</th><th>Compra</th><th>Venta</th></tr>`+
			`<tr><td></td><td>Dólar&nbsp;(US) Sucursales</td><td>BUY</td><td>SELL</td></tr><tr><td></td><td>Euro (EU)</td><td>-</td><td>-</td></tr></table></div>`)},
		{source: "tasareal", body: `{"date":"2026-09-17","count":3,"rates":[{"institution":"bhd","institution_name":"Banco BHD","buy":BUY,"sell":SELL},` +
			`{"institution":"popular","institution_name":"Banco Popular","buy":0,"sell":0.01},{"institution":"bdi","institution_name":"BDI","buy":0.01,"sell":0.00}]}`},
		{source: "tasareal", body: `{"date":"2026-09-17","count":3,"rates":[{"institution":"bhd","institution_name":"BHD Dominicano","buy":BUY,"sell":SELL},` +
			`{"institution":"popular","institution_name":"El Popular","buy":0,"sell":0.01},{"institution":"cibao","institution_name":"ACAP RD","buy":0.01,"sell":0}]}`},
		{source: "union-site", body: page("", `<div class="tasatable"><h2>BUY</h2><h2>SELL</h2></div>`)},
		{source: "vimenca-site", body: `{"status":"OK","data":[{"coinCode":2,"purchaseValue":BUY,"saleValue":SELL}]}`},
	}
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

// The dollar has many names in tables, in several encodings. Another currency that has the word in its name is not it.
func TestNamesOfTheDollar(t *testing.T) {
	table := func(class, channel string) string {
		return page("", `<div class="`+class+`"><table><tr><th>Moneda</th><th>Tipo</th><th>Compra</th><th>Venta</th></tr><tr><td>LABEL</td><td>LABEL`+channel+`</td><td>58.10</td><td>60.10</td></tr>`+
			`<tr><td>Euro</td><td>Euro (EU)</td><td>-</td><td>-</td></tr></table></div>`)
	}
	for id, body := range map[string]string{
		"lopez-de-haro-site": table("", ""), "scotiabank-site": table("_bns--table", " Sucursales*"),
		"caribe-express-site": page("", `<div class="plan"><h3>LABEL</h3><b class="value">58.10</b> compra</div>`),
	} {
		d, _ := source.DefaultSet().Find(id)
		want := map[string]string{"caribe-express-site": "caribe-express USD 58.1/"}[id]
		if want == "" {
			want = d.Institution + " USD 58.1/60.1"
		}
		for label, isDollar := range map[string]bool{
			"Dólares (US$)": true, "D&oacute;lar USD": true, "D\xf3lar&nbsp;US": true, "Do\u0301lar (USD)": true, "DOLAR US$": true,
			"Dólar canadiense": false, "Dólar (CA)": false, "Dólar remesas": false, "Franco": false,
		} {
			if id == "caribe-express-site" { // words, no codes
				label = strings.NewReplacer(" (US$)", " americanos", " (USD)", " americano", " US$", "", " USD", "", "&nbsp;US", "").Replace(label)
			}
			got, err := servedOf(t, d, 0, strings.ReplaceAll(body, "LABEL", label))
			if isDollar != (got == want) || !isDollar && strings.Contains(got, " USD ") {
				t.Errorf("%s, %q: served %q (%v)", id, label, got, err)
			}
		}
	}
}

// Each built-in definition reads its prices from every shape that its site is known to have had, in every form of a
// price that sites have printed. A JSON form without quotes is a number.
func TestShapes_InEveryFormOfAPrice(t *testing.T) {
	forms := [][2]string{{"58.10", "60.10"}, {"58.1000", "60.1"}, {"RD$58.10", "RD$ 60.10"}, {"58.10 DOP", "DOP 60.10"}, {"\u00a058,10\u00a0", "60,10"}}
	covered := map[string]bool{"bcrd-usd": true, "bcrd-currencies": true} // workbooks
	for _, s := range shapes() {
		covered[s.source] = true
		d, known := source.DefaultSet().Find(s.source)
		if !known {
			t.Fatalf("there is no definition %s", s.source)
		}
		want := "58.1/60.1"
		if s.oneSided {
			want = "58.1/"
		}
		for _, form := range forms {
			isNever := func(part string) bool { return strings.Contains(form[0]+form[1], part) }
			if slices.ContainsFunc(strings.Fields(s.never), isNever) {
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
