package simulated

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

const (
	centralBank   = "www.bancentral.gov.do"
	sessionCookie = "ASP.NET_SessionId"
	documents     = "/documents/estadisticas/mercado-cambiario/documents/"
)

// bcrdRoutes returns the routes of the central bank (BCRD): addresses of the simulated site, with the functions that
// render the responses.
func bcrdRoutes() []route {
	history := pageRoute("bcrd", centralBank, "/SectorExterno/HistoricoTasas", "bcrd_historico.html")
	history.cookies = bcrdCookies()
	actual := pageRoute("bcrd", centralBank, "/Home/GetActualExchangeRate", "bcrd.json")
	actual.method, actual.accepts = http.MethodPost, hasBCRDCookies
	all := []route{history, actual}
	for file, render := range map[string]func(*pageData) document{
		"TASA_DOLAR_REFERENCIA_MC.xlsx": bcrdDollars, "TASAS_CONVERTIBLES_OTRAS_MONEDAS.xlsx": bcrdOthers,
	} {
		all = append(all, route{
			method: http.MethodGet, host: "cdn.bancentral.gov.do", path: documents + file, institution: "bcrd", render: render,
		})
	}
	return all
}

// bcrdCookies returns the cookies that the first page sets. It sets wptem twice, and only the second value is valid.
func bcrdCookies() []string {
	return []string{
		"wptem=; path=/",
		sessionCookie + "=58k9dq0hzr1yx5; path=/; HttpOnly; SameSite=Lax",
		"TS01f058a1=0158caf9; Path=/; Secure; HTTPOnly",
		"wptem=5D0A58C1; path=/; HttpOnly",
	}
}

// hasBCRDCookies reports whether a request has all cookies. The server sends an empty body for any other request.
func hasBCRDCookies(r *http.Request) bool {
	for name, value := range map[string]string{"wptem": "5D0A58C1", sessionCookie: "58k9dq0hzr1yx5", "TS01f058a1": "0158caf9"} {
		sent := r.CookiesNamed(name)
		if len(sent) != 1 || sent[0].Value != value {
			return false
		}
	}
	return true
}

// referenceQuotes has the reference rates of one day.
type referenceQuotes struct {
	date   engine.Date
	quotes map[string]shownQuote // by currency
}

// referenceRates returns the reference rates of each day, oldest first. A fault that changes prices (Fault) affects
// only the newest day.
func (v *pageData) referenceRates() []referenceQuotes {
	var all []referenceQuotes
	for _, day := range v.days {
		quotes := map[string]shownQuote{}
		for _, o := range day.quotes {
			quotes[o.Currency] = shownQuote{Observation: o}
		}
		all = append(all, referenceQuotes{day.date, quotes})
	}
	newest := referenceQuotes{quotes: map[string]shownQuote{}}
	for _, q := range v.Quotes("bcrd") {
		newest.date, newest.quotes[q.Currency] = q.EffectiveDate, q
	}
	if n := len(all); n > 0 && !v.frozen {
		return append(all[:n-1], newest)
	}
	return all
}

// bcrdDollars returns the workbook with the reference rates of the US dollar.
func bcrdDollars(v *pageData) document {
	rows := [][]string{{"TASA DE CAMBIO DE REFERENCIA DEL DÓLAR DE LOS ESTADOS UNIDOS (RD$/US$)"}, {"Promedio ponderado del mercado spot"},
		{"Año", "Mes", "Día", "Compra", "Venta"}}
	for _, day := range v.referenceRates() {
		q := day.quotes["USD"]
		rows = append(rows, append(dayCells(day.date), q.Buy, withBinaryNoise(q.Sell)))
	}
	rows = append(rows, []string{"", "", "", "", ""}, []string{"Fuente: Banco Central, área del sector externo. Datos preliminares desde 1991."})
	book := []sheet{{"Diaria", rows}}
	for _, name := range []string{"PromMensual", "PromTrimestral", "PromAnual", "FPMensual", "FPTrimestral", "FPAnual"} {
		book = append(book, sheet{name, [][]string{{"TASA DE CAMBIO"}, {"Promedios del período"}, {"Año", "Mes", "Compra", "Venta"},
			{"2025", "Enero-Marzo", "61.8821", "62.3107"}}})
	}
	return bcrdWorkbook(v, book)
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
			row = append(row, withBinaryNoise(day.quotes[c.currency].Buy))
		}
		rows = append(rows, row)
	}
	rows = append(rows, []string{"", "", ""}, []string{"* A partir del 20 de agosto de 2018: bolívar soberano."})
	return bcrdWorkbook(v, []sheet{{"Diario", rows}, {"PromMensual", [][]string{{"Año", "Mes", "EURO"}, {"2025", "Ene", "64.1203"}}}})
}

// bcrdWorkbook writes a workbook. It applies the faults Bomb (the workbook decompresses to a multiple of its size) and
// Layout (headings are renamed). The time of modification depends on the date of the newest rate.
func bcrdWorkbook(v *pageData, sheets []sheet) document {
	modified := v.Now
	if q := v.Quote("bcrd", "USD"); q.EffectiveDate != 0 {
		modified = localDay(q.EffectiveDate).Add(HistoryHour * time.Hour)
	}
	padding := int64(0)
	switch v.fault {
	case Bomb:
		padding = sheetBytes
	case Layout:
		for _, s := range sheets {
			for _, row := range s.rows {
				for i, text := range row {
					if len(text) >= 4 && !jsonNumber.MatchString(text) {
						row[i] = "Col. " + text + " (n)"
					}
				}
			}
		}
	}
	return document{contentType: contentWorkbook, body: workbook(sheets, padding), modified: modified}
}

// dayCells returns the cells with the year, the month and the day, as the central bank writes them.
func dayCells(date engine.Date) []string {
	months := []string{"Ene", "Feb", "Mar", "Abr", "May", "Jun", "Jul", "Ago", "Sep", "Oct", "Nov", "Dic"}
	day := localDay(date)
	return []string{fmt.Sprint(day.Year()), months[day.Month()-1], fmt.Sprint(day.Day())}
}
