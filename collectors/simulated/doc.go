// Package simulated is a market that does not exist, and the sites of the institutions that publish it: for the demo, and for tests
// that want the whole way from a page to a rate without leaving the machine.
//
// # Where to begin
//
// NewMarket(seed) opens a market over the institutions of the catalogue. History gives its past as refreshes at once, Step moves
// it, Quotes tells what it says now. NewSite publishes it: one server on loopback, with TLS and certificates of its own, that
// answers at the real addresses of the definitions that the program carries, in the shape in which each institution publishes.
//
//	market := simulated.NewMarket(1)
//	site := simulated.NewSite(simulated.SiteConfig{Market: market, Clock: clock})
//	err := site.Start()              // then site.Close()
//	market.Step(clock())             // before the first step every institution is silent: 503
//	set := simulated.Definitions(source.DefaultSet())
//	client := fetch.New(fetch.Config{Dial: site.Dial, Roots: site.Roots(), ...})
//
// Sources of the demo are called demo-…, and their names say that they are simulated, so that nobody takes their rates for real
// ones. History and Refreshes give each quote to the source that counts most among those that read it, so that collection goes on
// with the same sources. Document gives the bytes of one page without any network.
//
//	market.go, desks.go, publication.go    the market: levels, desks, what each source says
//	site.go, serve.go, certificate.go      the server: addresses, cookies, validators, certificates
//	fault.go, misbehave.go, view.go        what goes wrong, and where it is put in
//	visits.go                              who came, and how many at once
//	bcrd.go, banks_html.go, banks_json.go, infodolar.go, pages/    the publications, a family in a file
//	render.go, sheet.go                    pages, texts, workbooks
//
// # To add a page
//
// Write it from what is known of the real page, not from its definition: the round trip of the tests finds a wrong definition only
// because the two were written apart. Put the page into pages/ (html says what may stand in it; head and foot, which all pages
// share, bring the phone numbers, dates and loan rates that a reader must not take for rates), and a line with its host and path
// into the function of its family; JSON and workbooks are a function from a view to a document. A page takes every value from the
// view (Quote, Of): so the faults of values reach it. Then give the institution a line in desks.go.
//
// Every page here is synthetic. No page of an institution was copied.
//
// # Faults
//
// SetFault switches a Fault on for a source or a host, while the site runs; SetFaultTimes for so many answers. Those of values are put
// into the view, those of documents into the rendered bytes, those of the way into the answer.
//
// # Rules for this package
//
// Everything follows from the seed and the calls that were made, but for the keys of the certificates. No float type: a rate is a
// whole number of ten-thousandths of a peso. Market and Site are safe for concurrent use. Site.Close waits for the two accept loops
// and for every connection.
package simulated
