// Package simulated provides an invented exchange market and the websites of its institutions. It is for the demo, and
// for tests of the whole path from a page to a rate without a network.
//
//	market := simulated.NewMarket(1)
//	site := simulated.NewSite(market)
//	err := site.Start()              // plain HTTP on loopback; later: site.Close()
//	market.Step(now)                 // before the first step the pages have no rates
//	set := simulated.Definitions(source.DefaultSet())
//	client := fetch.New(fetch.Config{Dial: site.Dial, ...})
//
// Step moves the rates of the market. Definitions gives sources ids such as demo-popular, and names that mark the rates
// as simulated.
//
//	market.go, market.csv                        the market, its table of prices, the quotes of each source
//	site.go                                      the server; faults of prices and documents
//	routes.csv, render.go, pages/                the pages of institutions and aggregators
//
// # Adding a page
//
// Write the page from the real page, not from its definition. Put it into pages/ (renderPage explains the
// placeholders), its host and path into routes.csv, and the institution into market.csv. Tests read the page with
// the definition; they find an error in the definition only if page and definition were written independently. All
// pages are synthetic; none is copied from an institution.
//
// # Promises
//
// Everything depends only on the seed and the calls. Rates are whole numbers of ten-thousandths of a peso, never
// floating point. Market and Site are safe for concurrent use.
package simulated
