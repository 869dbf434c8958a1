// Package pages serves the public HTML pages: rates, institutions and terms. Pages of other packages use its type
// Frame. Pages are rendered on the server with gomponents and work without JavaScript. They load nothing from other
// sites.
//
//	request → limit of the client address → cache → engine.Service → Document → Frame → HTML
//
// The pages use the Dominican words for the two sides of a rate: compra is the price at which an institution buys, and
// venta the price at which it sells.
//
// # Pages in other packages
//
//	texts := pages.ReadTexts(files) // words.es.json, words.en.json, and prose such as guide.es.html
//	frame.AddAssets(files, "docs.css")
//	frame.Handle(mux, http.MethodGet, "/docs", func(w http.ResponseWriter, r *pages.Request) { // and /en/docs
//		frame.WriteCached(w, r, "", func() (*pages.Document, error) {
//			l := texts.In(r)
//			body := Group{H1(l.T("terms.title")), A(l.Href("/terms"), l.T("nav.terms"))}
//			return &pages.Document{Body: body, Title: "API", Section: "/docs", Styles: []string{"docs.css"}}, nil
//		})
//	})
//
// WriteCached is for pages that are the same for every visitor, Write for all others. gomponents escapes texts and
// attributes. Use Raw only for content of the program itself, and External for links from data. A body begins with its
// only h1, and every field has a label.
//
// # Languages
//
// An English page has the Spanish page's path after /en. Every page links to itself in the other language; the header
// Accept-Language changes nothing.
//
// # Cost
//
// Pages are cached for the rest of the second, and past days for five minutes. Concurrent requests for the same page
// render it once. A client address may send PerMinuteDefault requests a minute.
//
// # Behavior
//
//   - Unknown query parameters are ignored. For an invalid value the page has status 400, shows the problem next to the
//     field, and uses the default.
//   - An amount may have commas between thousands (1,250.50) or a decimal comma (250,50).
//   - With operation=pesos the amount is in pesos. It is divided by the price and rounded down to cents.
//   - The best, median and reference rates of a day come from the history of that day, over all channels. The median of
//     an even number of values is the mean of the middle two, rounded half up to four decimals.
//
// # Where to start reading
//
//	pages.go                         Config and routes
//	request.go, frame.go, layout.go  how a request becomes a page
//	home.go, rates.go, history.go    pages with rates
//	share.go                         what other sites show of the pages
//	testdata/golden                  every page; go test -run Golden -update rewrites them
package pages
