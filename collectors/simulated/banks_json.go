package simulated

import (
	"fmt"
	"net/http"
	"strings"
)

// bankServices returns the routes of JSON services, which scripts in the pages of banks call. A route is an address of
// the simulated site, with the function that renders the response.
func bankServices() []route {
	promerica := htmlRoute("promerica", "www.promerica.com.do", "/", "promerica.html")
	promerica.apiPath = "/umbraco/Surface/TipoCambio/Consultar"
	promerica.cookies = []string{"__RequestVerificationToken=k58Yb60; path=/; HttpOnly; secure"}
	return []route{
		{method: http.MethodGet, host: "www.banreservas.com", path: "/_layouts/15/SharePointAPI/ObtenerTasas.ashx",
			institution: "banreservas", render: banreservasRates},
		{method: http.MethodGet, host: "popularenlinea.com", path: "/_api/web/lists/getbytitle('Rates')/items",
			query: "$filter=ItemID eq '1'", institution: "popular", render: popularRates},
		{method: http.MethodGet, host: "backend.bhd.com.do", path: "/api/modal-cambio-rate",
			query: "populate=deep", institution: "bhd", render: bhdRates},
		{method: http.MethodGet, host: "backend.bhd.com.do", path: "/api/t-4-5s/1",
			query: "populate=deep", institution: "bhd", render: bhdTable},
		{method: http.MethodPost, host: "bsc.com.do", path: "/api/gql", institution: "santa-cruz", render: santaCruzRates},
		{method: http.MethodPost, host: "www.bsc.com.do", path: "/graphql", institution: "santa-cruz", render: santaCruzCoins},
		{method: http.MethodGet, host: "www.bsc.com.do", path: "/dynresources/wj/bsc/v1/divisas",
			institution: "santa-cruz", render: santaCruzLegacy},
		promerica,
		{method: http.MethodPost, host: "www.promerica.com.do", path: promerica.apiPath, institution: "promerica",
			accepts: isPromericaRequest, render: promericaRates},
		{method: http.MethodGet, host: "devops.bancovimenca.com", path: "/api-proxy.php", institution: "vimenca",
			render: vimencaRates},
		{method: http.MethodGet, host: "www.lafise.com", path: "/OpenBankingProxy/obl/v1/banks/BLRD/rates",
			institution: "lafise", render: lafiseRates},
	}
}

func banreservasRates(v *pageData) document {
	usd, eur := v.Quote("banreservas", "USD"), v.Quote("banreservas", "EUR")
	return jsonDocument(`{"compraUS":%s,"ventaUS":%s,"compraEU":%s,"ventaEU":%s,"info":{"version":"15.0.5415","tasaHipotecaria":"11.50","estado":1}}`,
		jsonStringOrNull(usd.Buy), jsonStringOrNull(usd.Sell), jsonStringOrNull(eur.Buy), jsonStringOrNull(eur.Sell))
}

// popularRates returns the rates of Banco Popular: a SharePoint list in the verbose JSON of SharePoint.
func popularRates(v *pageData) document {
	usd, eur := v.Quote("popular", "USD"), v.Quote("popular", "EUR")
	d := jsonDocument(`{"d":{"results":[{"__metadata":{"id":"Web/Lists(guid'5890')/Items(1)","etag":"\"5957\"","type":"SP.Data.RatesListItem"},`+
		`"FirstUniqueAncestorSecurableObject":{"__deferred":{"uri":"https://popularenlinea.com/_api/Items(1)/First"}},`+
		`"Id":1,"Title":"Tasas","ItemID":"1","DollarBuyRate":%s,"DollarSellRate":%s,"EuroBuyRate":%s,"EuroSellRate":%s,`+
		`"Modified":"%s","AuthorId":58,"OData__UIVersionString":"60.0","GUID":"0f58b9c1-59aa-4e6f-9d0b-7a3e5d6c1b60"}]}}`,
		jsonStringOrNull(usd.Buy), jsonStringOrNull(usd.Sell), jsonStringOrNull(eur.Buy), jsonStringOrNull(eur.Sell),
		v.Now.UTC().Format("2006-01-02T15:04:05Z"))
	d.contentType = "application/json;odata=verbose;charset=utf-8"
	return d
}

func bhdRates(v *pageData) document {
	var rows []string
	for i, q := range v.Quotes("bhd") {
		heading := "Dólares US$"
		if q.Currency == "EUR" {
			heading = "Euros EU€"
		}
		rows = append(rows, fmt.Sprintf(`{"id":%d,"heading":%q,"currency":%q,"buyingRate":%s,"sellingRate":%s}`,
			i+1, heading, q.Currency, jsonNumberOrNull(q.Buy), jsonNumberOrNull(q.Sell)))
	}
	return jsonDocument(`{"data":{"id":1,"attributes":{"createdAt":"2023-05-09T14:57:30.590Z","updatedAt":"%s","locale":"es","heading":"Tasas de cambio","exchangeRates":[%s]}},"meta":{}}`,
		v.Now.UTC().Format("2006-01-02T15:04:05.000Z"), strings.Join(rows, ","))
}

// bhdTable returns a table that the bank edits by hand, so its rates are texts such as "58.90 DOP".
func bhdTable(v *pageData) document {
	usd, eur := v.Quote("bhd", "USD"), v.Quote("bhd", "EUR")
	cell := func(side string) string {
		if side != "" {
			side += " DOP"
		}
		return jsonStringOrNull(side)
	}
	row := func(label, buy, sell string) string {
		return fmt.Sprintf(`{"id":58,"rowdata":[{"id":1,"headname":"Divisas"},{"id":2,"headname":%q},{"id":3,"headname":%s},{"id":4,"headname":%s}]}`,
			label, buy, sell)
	}
	return jsonDocument(`{"data":{"id":1,"attributes":{"title":"Tasas de cambio","table_head":[{"headname":"Moneda"},{"headname":"Compra"},{"headname":"Venta"}],"table_body":[%s,%s]}},"meta":{}}`,
		row("Dólares", cell(usd.Buy), cell(usd.Sell)), row("Euros", cell(eur.Buy), cell(eur.Sell)))
}

func santaCruzRates(v *pageData) document {
	entry := func(currency, title string) string {
		q := v.Quote("santa-cruz", currency)
		return fmt.Sprintf(`{"buy":%s,"sale":%s,"title":%q}`, jsonNumberOrNull(q.Buy), jsonNumberOrNull(q.Sell), title)
	}
	return jsonDocument(`{"data":{"calculators":{"other":{"foreign_exchange":{"usd":%s,"eur":%s}},"loans":{"rate":14.95}}},"extensions":{"tracing":{"duration":58.90}}}`,
		entry("USD", "Dólares"), entry("EUR", "Euros"))
}

func santaCruzCoins(v *pageData) document {
	coin := func(currency, name string) string {
		q := v.Quote("santa-cruz", currency)
		return fmt.Sprintf(`{"name":%q,"price":{"buy":%s,"sell":%s}}`, name, jsonNumberOrNull(q.Buy), jsonNumberOrNull(q.Sell))
	}
	return jsonDocument(`{"data":{"coins":[%s,%s]}}`, coin("USD", " Dolar"), coin("EUR", "Euro"))
}

func santaCruzLegacy(v *pageData) document {
	entry := func(currency string) string {
		q := v.Quote("santa-cruz", currency)
		return fmt.Sprintf(`{"precio_compra":%s,"precio_venta":%s}`, jsonStringOrNull(q.Buy), jsonStringOrNull(q.Sell))
	}
	return jsonDocument(`{"usd":%s,"eur":%s,"gbp":{"precio_compra":"","precio_venta":""},"cad":{"precio_compra":"","precio_venta":""}}`,
		entry("USD"), entry("EUR"))
}

// isPromericaRequest reports whether a request to the service of Banco Promerica is valid. The server sends an empty
// body for any other request.
func isPromericaRequest(r *http.Request) bool {
	return strings.ReplaceAll(r.Form.Get("json"), " ", "") == `{"operacion":2}` && r.Header.Get("X-Requested-With") == "XMLHttpRequest"
}

func promericaRates(v *pageData) document {
	var rows []string
	for _, q := range v.Quotes("promerica") {
		code := "840"
		if q.Currency == "EUR" {
			code = "978"
		}
		rows = append(rows, fmt.Sprintf(`{"currency":%q,"buys":%s,"sales":%s,"order":%d}`, code, jsonNumberOrNull(q.Buy), jsonNumberOrNull(q.Sell), len(rows)+1))
	}
	return jsonDocument(`{"value":[%s],"status":200,"message":"OK"}`, strings.Join(rows, ","))
}

func vimencaRates(v *pageData) document {
	codes := map[string]string{"USD": "2", "EUR": "4", "CAD": "32", "CHF": "33", "GBP": "59"}
	names := map[string]string{
		"USD": "DOLAR ESTADOUNIDENSE", "EUR": "EURO", "CAD": "DOLAR CANADIENSE", "CHF": "FRANCO SUIZO", "GBP": "LIBRA ESTERLINA",
	}
	var rows []string
	for _, q := range v.Quotes("vimenca") {
		rows = append(rows, fmt.Sprintf(`{"coinCode":%s,"coinName":%q,"purchaseValue":%s,"saleValue":%s,"fecha":"%s"}`,
			codes[q.Currency], names[q.Currency], jsonNumberOrNull(q.Buy), jsonNumberOrNull(q.Sell), v.Now.Format("2006-01-02T15:04:05")))
	}
	rows = append(rows, `{"coinCode":1,"coinName":"PESO DOMINICANO","purchaseValue":1,"saleValue":1}`)
	return jsonDocument(`{"status":"OK","code":0,"data":[%s]}`, strings.Join(rows, ","))
}

func lafiseRates(v *pageData) document {
	usd, eur := v.Quote("lafise", "USD"), v.Quote("lafise", "EUR")
	return jsonDocument(`{"bank":"BLRD","date":"%s","baseCurrency":"DOP","rates":{"USD":{"buying":%s,"selling":%s},"EUR":{"buying":%s,"selling":%s}},"loan":{"rate":12.95}}`,
		usd.Date, jsonNumberOrNull(usd.Buy), jsonNumberOrNull(usd.Sell), jsonNumberOrNull(eur.Buy), jsonNumberOrNull(eur.Sell))
}
