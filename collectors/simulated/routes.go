package simulated

import (
	_ "embed"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
)

// routeTable lists the addresses of the simulated site. Its columns: method, host, path, a required query parameter,
// the institution of the rates (empty: the list of a site that copies rates), the file in pages/ to render (and the
// currency of the list), and the path of the next request named in the page.
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
		file, currency, _ := strings.Cut(row[5], " ")
		all[i] = route{row[0], row[1], row[2], row[3], func(v *pageData) document {
			quotes := v.Quotes(row[4])
			if row[4] == "" {
				quotes = v.listed(currency)
			}
			return renderPage(file, v, quotes, map[string]string{"currency": currency, "count": strconv.Itoa(len(quotes))})
		}, row[6], nil}
	}
	return all
}

// listed returns the quotes of one currency in the lists of sites that copy rates.
func (v *pageData) listed(currency string) []shownQuote {
	return slices.DeleteFunc(slices.Clone(v.quotesShown), func(q shownQuote) bool {
		return q.Currency != currency || q.Name == "" || q.Buy+q.Sell == ""
	})
}
