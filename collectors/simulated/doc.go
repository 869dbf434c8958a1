// Package simulated is an invented market and the web sites of the institutions that publish it, for the demo and for
// tests of the whole path from a page to a rate without a network.
//
// NewMarket(seed) returns a market of the institutions in the catalogue. History gives its past as refreshes, Step
// moves it. NewSite publishes it: one TLS server on loopback that answers for the real addresses of the built-in
// definitions, in the form of each institution.
//
//	market := simulated.NewMarket(1)
//	site := simulated.NewSite(market)
//	err := site.Start()              // then site.Close()
//	market.Step(now)                 // before the first step every institution is silent: 503
//	set := simulated.Definitions(source.DefaultSet())
//	client := fetch.New(fetch.Config{Dial: site.Dial, Roots: site.Roots(), ...})
//
// Sources of the demo have ids demo-..., and names that say that they are simulated. History assigns each quote to
// the source that a node would prefer, so that collection continues with the same sources. SetFault makes a source or
// a host go wrong while the site runs. Document returns a page without the network.
//
//	market.go, institutions.go, snapshot.go      the market: levels, institutions, what each source publishes
//	site.go, serve.go, certificate.go            the server: addresses, cookies, validators, certificates
//	fault.go, fault_response.go, page_data.go    faults of values, documents and transfers
//	bcrd.go, banks_html.go, banks_json.go, infodolar.go, pages/     the publications
//	render.go, workbook.go                       pages, JSON values, workbooks
//
// # Adding a page
//
// Write it from what is known of the real page, not from its definition: the round trip of the tests finds a wrong
// definition only if both were written independently. Put an HTML page into pages/ (renderPage explains the
// placeholders) and a line with its host and path into banks_html.go. JSON and workbooks are functions from pageData
// to a document. Take every value from pageData (Quote, Of), so that faults reach it. Then add the institution to
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
