package simulated

import (
	"cmp"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tasard/tasard/engine"
)

// aggregatorRoutes returns the routes of aggregators, which are sites that copy the rates of institutions. A route is
// an address of the simulated site, with the function that renders the response.
func aggregatorRoutes() []route {
	infodolar := func(path, currency string) route {
		return route{method: http.MethodGet, host: "www.infodolar.com.do", path: path,
			render: func(v *pageData) document { return infodolarPage(v, currency) }}
	}
	return []route{
		infodolar("/", "USD"), infodolar("/precio-euro.aspx", "EUR"),
		{method: http.MethodGet, host: "livedolar.do", path: "/api/rates", render: livedolar},
		{method: http.MethodGet, host: "api.indexa.do", path: "/api/rates", render: indexa},
		withToken("secret", route{method: http.MethodGet, host: "tasareal.com", path: "/api/v1/rates", render: func(v *pageData) document {
			rows := v.infodolarQuotes("USD")
			return renderPage("tasareal.json", v, rows, map[string]string{"count": strconv.Itoa(len(rows)), "date": v.Now.Format("2006-01-02")})
		}}),
	}
}

// infodolarEntity is a row in the list of the aggregator InfoDolar.
type infodolarEntity struct {
	institution, name string
	channel           engine.Channel // of the quote in the row; "" = unspecified
	direct            bool           // its own site is simulated too; the row stays if that site gives no rates
}

func infodolarEntities() []infodolarEntity {
	return []infodolarEntity{
		{"banreservas", "Banreservas", "", true}, {"popular", "Banco Popular", "", true}, {"bhd", "Banco BHD", "", true},
		{"scotiabank", "Scotiabank", engine.Branch, true}, {"scotiabank", "Scotiabank Cambio online", engine.Digital, true},
		{"scotiabank", "Scotiabank", "", true},
		{"santa-cruz", "Banco Santa Cruz", "", true}, {"promerica", "Banco Promerica", "", true},
		{"lopez-de-haro", "Banco López de Haro", "", true}, {"bdi", "Banco BDI", "", true}, {"vimenca", "Banco Vimenca", "", true},
		{"caribe", "Banco Caribe", "", true}, {"ademi", "Banco Ademi", "", true}, {"lafise", "Banco Lafise", "", true},
		{"banesco", "Banesco", "", true}, {"activo", "Banco Activo", "", false}, {"jmmb", "JMMB Bank", "", false},
		{"union", "Banco Unión", "", true}, {"motor-credito", "Motor Crédito", "", false},
		{"bonanza", "Bonanza Banco", "", true},
		{"apap", "Asociación Popular de Ahorros y Préstamos", "", true}, {"cibao", "Asociación Cibao de Ahorros y Préstamos", "", true},
		{"la-nacional", "Asociación La Nacional de Ahorros y Préstamos", "", true}, {"alaver", "Alaver", "", false},
		{"peravia", "Asociación Peravia de Ahorros y Préstamos", "", true},
		{"duarte", "Asociación Duarte de Ahorros y Préstamos", "", false},
		{"mocana", "Asociación Mocana de Ahorros y Préstamos", "", false},
		{"romana", "Asociación Romana de Ahorros y Préstamos", "", false}, {"abonap", "Abonap", "", false},
		{"caribe-express", "Caribe Express", "", true}, {"agente-la-nacional", "Agente de Cambio La Nacional", "", true},
		{"quezada", "Quezada", "", true}, {"girosol", "Girosol", "", false}, {"moneycorps", "Moneycorps", "", false},
		{"capla", "Capla", "", false}, {"taveras", "Taveras", "", false}, {"cambio-extranjero", "Cambio Extranjero", "", false},
		{"gamelin", "Gamelin", "", false}, {"rm", "RM", "", false}, {"sct", "SCT", "", false}, {"panora", "Panora Exchange", "", false},
		{"imbert-y-balbuena", "Imbert y Balbuena", "", false},
	}
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

// infodolarQuotes returns the quotes of one currency with the names that InfoDolar uses.
func (v *pageData) infodolarQuotes(currency string) []shownQuote {
	var rows []shownQuote
	for _, e := range infodolarEntities() {
		q := v.Quote(e.institution, currency, cmp.Or(e.channel, engine.Unspecified))
		if q.Buy+q.Sell == "" || v.silent[e.institution] && !e.direct {
			continue
		}
		q.Name = e.name
		rows = append(rows, q)
	}
	if v.fault == Reordered {
		slices.Reverse(rows)
	}
	return rows
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

// indexa returns the rates of a bank. For a request without a token it returns an error text; its status is 200 too.
func indexa(v *pageData) document {
	if v.request.Header.Get("X-Access-Token") == "" {
		return jsonDocument(`{"status":"error","message":"Token is missing"}`)
	}
	bank := v.request.URL.Query().Get("bank")
	institution := map[string]string{
		"bpd": "popular", "bnr": "banreservas", "bns": "scotiabank", "bsc": "santa-cruz", "bdi": "bdi", "bpm": "promerica", "bvm": "vimenca",
	}[bank]
	names := map[string]string{"USD": "dollar", "EUR": "euro", "CHF": "swissfranc", "GBP": "poundsterling", "CAD": "cdollar"}
	var rows []string
	add := func(rate, name string) {
		if rate != "" {
			rows = append(rows, fmt.Sprintf(`{"bank":%q,"rate":%s,"date":"%s","name":%q}`, bank, jsonNumberOrNull(rate), v.Now.Format("2006-01-02"), name))
		}
	}
	for _, q := range v.Quotes(institution) {
		if q.Channel != engine.Digital {
			add(q.Buy, names[q.Currency]+"buyrate")
			add(q.Sell, names[q.Currency]+"sellrate")
		}
	}
	return jsonDocument(`{"status":"success","data":[%s]}`, strings.Join(rows, ","))
}
