package main

// Names of mixes; those of one operation are its name in reports.
const (
	mixBest         = "best"    // what is asked most: the ten best places to buy dollars
	mixFull         = "full"    // a whole ranking on one page
	mixGzip         = "gzip"    // the same, compressed
	mixConvert      = "convert" // an amount that nobody asked for before
	mixRates        = "rates"
	mixHistory      = "history"
	mixCurrencies   = "currencies"
	mixInstitutions = "institutions"
	mixInstitution  = "institution"
	mixAll          = "all" // as users ask them, together
)

// mixes are the operations as users ask them, each alone, and all of them by how often they are asked. The institution is one
// that has rates and history in dollars.
func mixes(institution string) map[string][]question {
	all := []question{
		{operation: mixBest, weight: 50, path: "/v1/rates/best?currency=USD&operation=buy&limit=10"},
		{operation: mixConvert, weight: 15, path: "/v1/convert?currency=USD&operation=buy&limit=10&amount=", amounts: true},
		{operation: mixRates, weight: 10, path: "/v1/rates?currency=USD&limit=20"},
		{operation: mixGzip, weight: 6, path: "/v1/rates/best?currency=USD&operation=buy&limit=200", lines: "Accept-Encoding: gzip\r\n"},
		{operation: mixInstitution, weight: 6, path: "/v1/institutions/" + institution},
		{operation: mixHistory, weight: 5, path: "/v1/rates/history?currency=USD&institution=" + institution + "&limit=30"},
		{operation: mixCurrencies, weight: 4, path: "/v1/currencies"},
		{operation: mixFull, weight: 2, path: "/v1/rates/best?currency=USD&operation=buy&limit=200"},
		{operation: mixInstitutions, weight: 2, path: "/v1/institutions?limit=50"},
	}
	table := map[string][]question{mixAll: all}
	for _, q := range all {
		table[q.operation] = []question{q}
	}
	return table
}
