// Package simulated has an invented market and the web sites of its institutions. It is for the demo, and for tests of
// the whole path from a page to a rate without a network.
//
// NewMarket(seed) returns a market of the institutions in the catalogue. History returns its past as refreshes, Step
// moves it. NewSite publishes it: a TLS server on loopback answers at the real addresses of the built-in definitions,
// with pages in the form of each institution.
//
//	market := simulated.NewMarket(1)
//	site := simulated.NewSite(market)
//	err := site.Start()              // then site.Close()
//	market.Step(now)                 // before the first step all responses are 503
//	set := simulated.Definitions(source.DefaultSet())
//	client := fetch.New(fetch.Config{Dial: site.Dial, Roots: site.Roots(), ...})
//
// Sources of the demo have ids demo-..., and names that say that they are simulated. History assigns each quote to
// the source that a node would prefer, so that collection continues with the same sources. SetFault sets a fault of
// a source or a host while the site runs. Document returns a page without the network.
//
//	market.go, institutions.go, snapshot.go      the market: levels, institutions, what each source publishes
//	site.go, serve.go, certificate.go            the server: addresses, cookies, validators, certificates
//	fault.go, fault_response.go, page_data.go    faults of values, documents and transfers
//	bcrd.go, banks_html.go, banks_json.go, infodolar.go, pages/     the publications
//	render.go, workbook.go                       pages, JSON values, workbooks
//
// # Adding a page
//
// Write it from the real page, not from its definition: tests read the page by the definition, and find an error in it
// only if both were written independently. Put an HTML page into pages/ (renderPage explains the placeholders) and a
// line with its host and path into banks_html.go. JSON and workbooks are functions from pageData to a document. Take
// every value from pageData (Quote, Quotes), because faults are applied there. Then add the institution to
// institutions.go.
//
// All pages are synthetic; none is copied from an institution.
//
// # Promises
//
// Everything depends only on the seed and the calls, except the keys of the certificates. Rates are whole numbers of
// ten-thousandths of a peso, never floating point. Market and Site are safe for concurrent use. Site.Close waits for
// every goroutine and connection.
package simulated
