package simulated

import (
	_ "embed"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"

	"github.com/tasard/tasard/engine"
)

// routeTable lists the addresses of the simulated site. Its columns: method, host, path, a required query parameter,
// the institution of the rates (empty: the list of a site that copies rates), the file in pages/ to render, and the
// path of the next request named in the page.
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
		case file == "infodolar.html":
			render = func(v *pageData) document {
				return renderPage(file, v, v.infodolarQuotes(currency), map[string]string{"currency": currency})
			}
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
		all[i] = route{row[0], row[1], row[2], row[3], render, row[6], nil}
	}
	return all
}

// infodolarQuotes returns InfoDolar's quotes of one currency.
func (v *pageData) infodolarQuotes(currency string) []shownQuote {
	return slices.DeleteFunc(slices.Clone(v.quotesShown), func(q shownQuote) bool {
		return q.Currency != currency || q.Name == "" || q.Buy+q.Sell == ""
	})
}
