// Package simulated has an invented exchange market and the websites of its institutions. It is for the demo, and for
// tests of the whole path from a page to a rate without a network.
//
//	Market  --snapshot-->  pageData (with a Fault)  --render-->  Site: a TLS server on loopback
//	   |                                                           answers for the real host names
//	   +--History, Refreshes-->  []engine.Refresh
//
// NewMarket returns a market with the institutions of the catalogue. Step moves its rates. NewSite returns a site with
// their pages, each in the form of the institution.
//
//	market := simulated.NewMarket(1)
//	site := simulated.NewSite(market)
//	err := site.Start()              // later: site.Close()
//	market.Step(now)                 // before the first step all responses have status 503
//	set := simulated.Definitions(source.DefaultSet())
//	client := fetch.New(fetch.Config{Dial: site.Dial, Roots: site.Roots(), ...})
//
// Definitions gives sources ids such as demo-popular, and names that say that the rates are simulated.
//
//	market.go, institutions.go, snapshot.go      the market, its institutions, the quotes of each source
//	site.go, serve.go, certificate.go            the server: addresses, cookies, validators, certificates
//	fault.go, fault_response.go, page_data.go    faults of prices, documents and transfers
//	bcrd.go, banks_html.go, banks_json.go, infodolar.go, pages/     the pages of institutions and aggregators
//	render.go, workbook.go                       writing of pages, JSON and workbooks
//
// # Adding a page
//
// Write the page from the real page, not from its definition. Tests read the page with the definition. They find an
// error in the definition only if page and definition were written independently.
//
//   - HTML and JSON: put the page into pages/ (renderPage explains the placeholders), and its host and path into
//     banks_html.go or banks_json.go.
//   - Workbooks: write a function from pageData to a document.
//   - Take all prices from pageData (Quote, Quotes), because it applies the faults.
//   - Add the institution to institutions.go.
//
// All pages are synthetic; none is copied from an institution.
//
// # Promises
//
// Everything depends only on the seed and the calls, except the keys of the certificates. Rates are whole numbers of
// ten-thousandths of a peso, never floating point. Market and Site are safe for concurrent use. Site.Close waits for
// every goroutine and connection.
package simulated
