package simulated

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/tasard/tasard/engine"
)

const contentWorkbook = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

// routeTable lists the addresses of the simulated site. Its columns: method, host, path, a required query parameter,
// the institution of the rates (empty: the list of a site that copies rates), the file in pages/ to render (empty for a
// workbook), and the path of the next request named in the page.
//
//go:embed routes.csv
var routeTable string

// allRoutes returns the addresses of the simulated site, with the functions for their documents.
func allRoutes() []route {
	rows, err := csv.NewReader(strings.NewReader(routeTable)).ReadAll()
	if err != nil {
		panic("simulated: the embedded table of addresses: " + err.Error()) // impossible: a test reads it
	}
	all := make([]route, len(rows)-1)
	for i, row := range rows[1:] {
		institution := row[4]
		file, currency, _ := strings.Cut(row[5], " ")
		render := func(v *pageData) document { return renderPage(file, v, v.Quotes(institution), nil) }
		switch {
		case file == "dollars":
			render = bcrdDollars
		case file == "others":
			render = bcrdOthers
		case file == "infodolar.html":
			render = func(v *pageData) document { return infodolarPage(v, currency) }
		case file == "livedolar.json":
			render = func(v *pageData) document {
				banks := []string{"popular", "banreservas", "bhd", "scotiabank", "caribe"}
				isOther := func(q shownQuote) bool {
					return !slices.Contains(banks, q.InstitutionID) || q.Channel == engine.Digital
				}
				return renderPage(file, v, slices.DeleteFunc(v.infodolarQuotes("USD"), isOther), nil)
			}
		case file == "indexa.json":
			render = func(v *pageData) document {
				return renderPage(file, v, slices.DeleteFunc(v.Quotes(institution), func(q shownQuote) bool { return q.Channel == engine.Digital }), nil)
			}
		case file == "tasareal.json":
			render = func(v *pageData) document {
				quotes := v.infodolarQuotes("USD")
				return renderPage(file, v, quotes, map[string]string{"count": strconv.Itoa(len(quotes))})
			}
		}
		all[i] = route{row[0], row[1], row[2], row[3], render, institution, row[6], nil}
	}
	return all
}

// referenceQuotes is the reference rates of one day.
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

// bcrdOthers returns the workbook with the other currencies. They have a single rate for both sides.
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

// dayCells returns the cells of year, month and day, in the central bank's form.
func dayCells(date engine.Date) []string {
	months := []string{"Ene", "Feb", "Mar", "Abr", "May", "Jun", "Jul", "Ago", "Sep", "Oct", "Nov", "Dic"}
	day := localDay(date)
	return []string{fmt.Sprint(day.Year()), months[day.Month()-1], fmt.Sprint(day.Day())}
}

// infodolarPage returns InfoDolar's page about one currency.
func infodolarPage(v *pageData, currency string) document {
	rows, texts := v.infodolarQuotes(currency), map[string]string{"title": "Precio del dólar hoy en República Dominicana", "table": "Dolar", "average": "DolarPromedio"}
	if currency == "EUR" {
		texts = map[string]string{"title": "Precio del euro hoy en República Dominicana", "table": "cotizaciones", "average": "EuroPromedio"}
	}
	texts["averagebuy"] = average(rows, func(q shownQuote) string { return q.Buy })
	texts["averagesell"] = average(rows, func(q shownQuote) string { return q.Sell })
	return renderPage("infodolar.html", v, rows, texts)
}

// infodolarQuotes returns InfoDolar's quotes of one currency. The row of an institution without rates stays if its own
// site is simulated.
func (v *pageData) infodolarQuotes(currency string) []shownQuote {
	return slices.DeleteFunc(slices.Clone(v.quotesShown), func(q shownQuote) bool {
		return q.Currency != currency || q.Name == "" || q.Buy+q.Sell == "" || v.silent[q.InstitutionID] && !v.hasSite[q.InstitutionID]
	})
}

// average returns the mean of a side over the rows with that side, with two decimals.
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
