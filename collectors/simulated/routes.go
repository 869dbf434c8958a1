package simulated

import (
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tasard/tasard/engine"
)

const (
	contentWorkbook = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	documents       = "/documents/estadisticas/mercado-cambiario/documents/"
)

// allRoutes returns the addresses of the simulated site, with the functions that render their documents.
func allRoutes() []route {
	var all []route
	for _, r := range []struct{ institution, host, path, file string }{
		{"bcrd", "www.bancentral.gov.do", "/SectorExterno/HistoricoTasas", "bcrd_historico.html"},
		{"banreservas", "www.banreservas.com", "/", "banreservas.html"},
		{"popular", "popularenlinea.com", "/personas/Paginas/Home.aspx", "popular.html"},
		{"scotiabank", "do.scotiabank.com", "/banca-personal/tarifas/tasas-de-cambio.html", "scotiabank.html"},
		{"lopez-de-haro", "www.blh.com.do", "/productos/compra-y-venta-de-divisas/", "blh.html"}, //nolint:misspell // Spanish
		{"bdi", "www.bdi.com.do", "/", "bdi.html"},
		{"caribe", "www.bancocaribe.com.do", "/", "caribe.html"},
		{"ademi", "bancoademi.com.do", "/", "ademi.html"},
		{"banesco", "www.banesco.com.do", "/", "banesco.html"},
		{"activo", "www.bancoactivo.com.do", "/tasas-tarifas.html", "activo.html"},
		{"qik", "qik.do", "/tasadeldia/", "qik.html"},
		{"jmmb", "do-bank.jmmb.com", "/es/tasas-de-referencia", "jmmb.html"},
		{"union", "www.bancounion.com.do", "/servicios/cambio-de-divisas/", "union.html"},
		{"bonanza", "www.bonanzabanco.com.do", "/", "bonanza.html"},
		{"apap", "www.apap.com.do", "/", "apap.html"},
		{"la-nacional", "asociacionlanacional.com.do", "/", "alnap.html"},
		{"peravia", "asociacionperavia.com.do", "/", "peravia.html"},
		{"caribe-express", "caribeexpress.com.do", "/", "caribe_express.html"},
		{"agente-la-nacional", "acn.com.do", "/", "acn.html"},
		{"quezada", "quezada.do", "/", "quezada.html"},
		{"moneycorps", "www.moneycorps.com.do", "/", "moneycorps.html"},
		{"quezada", "agentedecambioquezada.com", "/divisas.html", "quezada_divisas.html"},
		{"banreservas", "www.banreservas.com", "/_layouts/15/SharePointAPI/ObtenerTasas.ashx", "banreservas.json"},
		{"vimenca", "devops.bancovimenca.com", "/api-proxy.php", "vimenca.json"},
		{"lafise", "www.lafise.com", "/OpenBankingProxy/obl/v1/banks/BLRD/rates", "lafise.json"},
		{"cibao", "cibao.com.do", "/api/Coins/GetCoins", "cibao.json"},
		{"santa-cruz", "www.bsc.com.do", "/dynresources/wj/bsc/v1/divisas", "santa_cruz_legacy.json"},
		{"popular", "apipublico.bpd.com.do", "/bpd/bpd-publico/consultatasa/consultaTasa", "popular_api.json"},
	} {
		all = append(all, pageRoute(http.MethodGet, r.institution, r.host, r.path, r.file))
	}
	for _, r := range []struct{ institution, host, path, file string }{
		{"bcrd", "www.bancentral.gov.do", "/Home/GetActualExchangeRate", "bcrd.json"},
		{"promerica", "www.promerica.com.do", "/umbraco/Surface/TipoCambio/Consultar", "promerica.json"},
		{"santa-cruz", "bsc.com.do", "/api/gql", "santa_cruz.json"},
		{"santa-cruz", "www.bsc.com.do", "/graphql", "santa_cruz_coins.json"},
	} {
		all = append(all, pageRoute(http.MethodPost, r.institution, r.host, r.path, r.file))
	}
	promerica := pageRoute(http.MethodGet, "promerica", "www.promerica.com.do", "/", "promerica.html")
	promerica.apiPath = "/umbraco/Surface/TipoCambio/Consultar"
	popular := pageRoute(http.MethodGet, "popular", "popularenlinea.com", "/_api/web/lists/getbytitle('Rates')/items", "popular.json")
	popular.query = "$filter=ItemID eq '1'"
	bhd := pageRoute(http.MethodGet, "bhd", "backend.bhd.com.do", "/api/modal-cambio-rate", "bhd.json")
	bhdTable := pageRoute(http.MethodGet, "bhd", "backend.bhd.com.do", "/api/t-4-5s/1", "bhd_table.json") // edited by hand: texts such as "58.90 DOP"
	bhd.query, bhdTable.query = "populate=deep", "populate=deep"
	all = append(all, promerica, popular, bhd, bhdTable)
	for _, currency := range []string{"USD", "EUR"} {
		name := map[string]string{"USD": "dollar", "EUR": "euro"}[currency]
		all = append(all, plainTextRoute(name+"compra", currency, true), plainTextRoute(name+"venta", currency, false))
	}
	return append(all,
		renderRoute("bcrd", "cdn.bancentral.gov.do", documents+"TASA_DOLAR_REFERENCIA_MC.xlsx", bcrdDollars),
		renderRoute("bcrd", "cdn.bancentral.gov.do", documents+"TASAS_CONVERTIBLES_OTRAS_MONEDAS.xlsx", bcrdOthers),
		renderRoute("", "www.infodolar.com.do", "/", func(v *pageData) document { return infodolarPage(v, "USD") }),
		renderRoute("", "www.infodolar.com.do", "/precio-euro.aspx", func(v *pageData) document { return infodolarPage(v, "EUR") }),
		renderRoute("", "livedolar.do", "/api/rates", livedolar),
		renderRoute("", "api.indexa.do", "/api/rates", indexa),
		renderRoute("", "tasareal.com", "/api/v1/rates", func(v *pageData) document {
			rows := v.infodolarQuotes("USD")
			return renderPage("tasareal.json", v, rows, map[string]string{"count": strconv.Itoa(len(rows)), "date": v.Now.Format("2006-01-02")})
		}))
}

func renderRoute(institution, host, path string, render func(*pageData) document) route {
	return route{method: http.MethodGet, host: host, path: path, institution: institution, render: render}
}

// pageRoute returns the route of a page that is a file in pages/ with the quotes of one institution.
func pageRoute(method, institution, host, path, file string) route {
	return route{method: method, host: host, path: path, institution: institution,
		render: func(v *pageData) document { return renderPage(file, v, v.Quotes(institution), nil) }}
}

// plainTextRoute returns the route of a text file of Banco Empire. Such a file contains only a price.
func plainTextRoute(file, currency string, buy bool) route {
	return renderRoute("empire", "www.bancoempire.com.do", "/txt/"+file+".txt", func(v *pageData) document {
		q := v.Quote("empire", currency, engine.Unspecified)
		side := q.Sell
		if buy {
			side = q.Buy
		}
		return document{contentType: "text/plain", body: []byte(side + "\r\n")}
	})
}

// referenceQuotes has the reference rates of one day.
type referenceQuotes struct {
	date   engine.Date
	quotes map[string]shownQuote // by currency
}

// referenceRates returns the reference rates of each day, oldest first. A fault of prices affects only the newest day.
func (v *pageData) referenceRates() []referenceQuotes {
	var all []referenceQuotes
	for _, day := range v.days {
		quotes := map[string]shownQuote{}
		for _, o := range day.quotes {
			quotes[o.Currency] = shownQuote{Observation: o}
		}
		all = append(all, referenceQuotes{day.date, quotes})
	}
	if n := len(all); n > 0 && v.fault != Frozen {
		newest := referenceQuotes{quotes: map[string]shownQuote{}}
		for _, q := range v.Quotes("bcrd") {
			newest.date, newest.quotes[q.Currency] = q.EffectiveDate, q
		}
		all[n-1] = newest
	}
	return all
}

// bcrdDollars returns the workbook with the reference rates of the US dollar.
func bcrdDollars(v *pageData) document {
	rows := [][]string{{"TASA DE CAMBIO DE REFERENCIA DEL DÓLAR DE LOS ESTADOS UNIDOS (RD$/US$)"}, {"Promedio ponderado del mercado spot"},
		{"Año", "Mes", "Día", "Compra", "Venta"}}
	for _, day := range v.referenceRates() {
		rows = append(rows, append(dayCells(day.date), day.quotes["USD"].Buy, day.quotes["USD"].Sell))
	}
	return v.bcrdWorkbook("Diaria", append(rows, nil, []string{"Fuente: Banco Central, área del sector externo. Datos preliminares desde 1991."}))
}

// bcrdOthers returns the workbook with the other currencies, which have a single rate for both sides.
func bcrdOthers(v *pageData) document {
	columns := []struct{ heading, currency string }{
		{"DOLAR AUSTRALIANO", "AUD"}, {"REAL BRASILENO", "BRL"}, {"DOLAR CANADIENSE", "CAD"}, {"FRANCO SUIZO", "CHF"}, {"YUAN CHINO", "CNY"},
		{"DERECHO ESPECIAL DE GIRO", "XDR"}, {"CORONA DANESA", "DKK"}, {"EURO", "EUR"}, {"LIBRA ESTERLINA", "GBP"}, {"YEN JAPONES", "JPY"},
		{"CORONA NORUEGA", "NOK"}, {"LIBRA ESCOCESA", "GBP"}, {"CORONA SUECA", "SEK"}, {"DOLAR ESTADOUNIDENSE", "USD"},
		{"*BOLIVAR FUERTE VENEZOLANO", "VES"},
	}
	if v.fault == Reordered {
		slices.Reverse(columns)
	}
	headings := []string{"Año", "Mes", "Día"}
	for _, c := range columns {
		headings = append(headings, c.heading)
	}
	rows := [][]string{{"TASAS DE CAMBIO DE OTRAS MONEDAS CONVERTIBLES"}, {"En pesos dominicanos por unidad de moneda"}, headings}
	for _, day := range v.referenceRates() {
		row := dayCells(day.date)
		for _, c := range columns {
			row = append(row, day.quotes[c.currency].Buy)
		}
		rows = append(rows, row)
	}
	return v.bcrdWorkbook("Diario", append(rows, nil, []string{"* A partir del 20 de agosto de 2018: bolívar soberano."}))
}

// bcrdWorkbook writes a workbook. With the fault Layout it renames the headings.
func (v *pageData) bcrdWorkbook(sheet string, rows [][]string) document {
	for _, row := range rows {
		for i, text := range row {
			if v.fault == Layout && len(text) >= 4 && !jsonNumber.MatchString(text) {
				row[i] = "Col. " + text + " (n)"
			}
		}
	}
	return document{contentType: contentWorkbook, body: workbook(sheet, rows)}
}

// dayCells returns the cells with the year, the month and the day, as the central bank writes them.
func dayCells(date engine.Date) []string {
	months := []string{"Ene", "Feb", "Mar", "Abr", "May", "Jun", "Jul", "Ago", "Sep", "Oct", "Nov", "Dic"}
	day := localDay(date)
	return []string{fmt.Sprint(day.Year()), months[day.Month()-1], fmt.Sprint(day.Day())}
}

// infodolarPage returns the page of InfoDolar that lists the rates of one currency.
func infodolarPage(v *pageData, currency string) document {
	rows, texts := v.infodolarQuotes(currency), map[string]string{"title": "Precio del dólar hoy en República Dominicana", "table": "Dolar", "average": "DolarPromedio"}
	if currency == "EUR" {
		texts = map[string]string{"title": "Precio del euro hoy en República Dominicana", "table": "cotizaciones", "average": "EuroPromedio"}
	}
	texts["averagebuy"] = average(rows, func(q shownQuote) string { return q.Buy })
	texts["averagesell"] = average(rows, func(q shownQuote) string { return q.Sell })
	return renderPage("infodolar.html", v, rows, texts)
}

// infodolarQuotes returns the quotes of one currency that InfoDolar lists. The row of an institution without rates
// stays if its own site is simulated.
func (v *pageData) infodolarQuotes(currency string) []shownQuote {
	return slices.DeleteFunc(slices.Clone(v.quotesShown), func(q shownQuote) bool {
		return q.Currency != currency || q.Name == "" || q.Buy+q.Sell == "" || v.silent[q.InstitutionID] && !v.hasSite[q.InstitutionID]
	})
}

// average returns the mean of a side over the rows that have it, with two decimals.
func average(rows []shownQuote, side func(shownQuote) string) string {
	sum, count := new(big.Rat), int64(0)
	for _, row := range rows {
		if value, ok := new(big.Rat).SetString(side(row)); ok {
			sum.Add(sum, value)
			count++
		}
	}
	return sum.Quo(sum, big.NewRat(max(count, 1), 1)).FloatString(2)
}

func livedolar(v *pageData) document {
	names := map[string]string{"popular": "bpd", "banreservas": "banreservas", "bhd": "bhd", "scotiabank": "scotiabank", "caribe": "caribe"}
	var rows []string
	for _, row := range v.infodolarQuotes("USD") {
		if name, ok := names[row.InstitutionID]; ok && row.Channel != engine.Digital {
			rows = append(rows, fmt.Sprintf(`{"bank_name":%q,"display_name":%q,"buy":%s,"sell":%s}`, name, row.Name, jsonStringOrNull(row.Buy), jsonStringOrNull(row.Sell)))
		}
	}
	return jsonDocument("[%s]", strings.Join(rows, ","))
}

// indexa returns the rates of the bank that the request names.
func indexa(v *pageData) document {
	institution := map[string]string{
		"bpd": "popular", "bnr": "banreservas", "bns": "scotiabank", "bsc": "santa-cruz", "bdi": "bdi", "bpm": "promerica", "bvm": "vimenca",
	}[v.bank]
	names := map[string]string{"USD": "dollar", "EUR": "euro", "CHF": "swissfranc", "GBP": "poundsterling", "CAD": "cdollar"}
	var rows []string
	for _, q := range v.Quotes(institution) {
		for suffix, rate := range map[string]string{"buyrate": q.Buy, "sellrate": q.Sell} {
			if q.Channel != engine.Digital && rate != "" {
				rows = append(rows, fmt.Sprintf(`{"bank":%q,"rate":%s,"date":"%s","name":%q}`,
					v.bank, jsonNumberOrNull(rate), v.Now.Format("2006-01-02"), names[q.Currency]+suffix))
			}
		}
	}
	slices.Sort(rows)
	return jsonDocument(`{"status":"success","data":[%s]}`, strings.Join(rows, ","))
}

func jsonStringOrNull(side string) string {
	if side == "" {
		return "null"
	}
	return jsonString(side)
}
