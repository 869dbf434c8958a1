// Package pages serves the public HTML pages: rates, institutions and terms of use. Pages are rendered on the server
// with gomponents, a library of Go functions for HTML, and work without JavaScript. They load nothing from other sites.
//
//	request → limit of the client address → cache → engine.Service → Document → Frame → HTML
//
// Terms:
//
//	compra:          the price at which an institution buys a currency; a visitor gets it for selling
//	venta:           the price at which an institution sells a currency; a visitor pays it for buying
//	side:            one of the two prices of a rate
//	operation:       what the visitor wants to do: engine.Buy (at venta) or engine.Sell (at compra)
//	reference rate:  a rate published by the central bank, not an offer
//	Frame:           the common part of all pages, also for pages of other packages
//	card:            a small page with a currency's best rates, for frames (iframe) of other sites
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
// attributes. Use Raw only for texts in the program, and External for links in data. A body begins with its only h1,
// and every input field has a label.
//
// # Languages
//
// The path of an English page is /en and the path of the Spanish page. Every page links to itself in the other
// language. The header Accept-Language is ignored.
//
// # Cost
//
// Pages are cached for the rest of the second, and the history of past days for five minutes. Concurrent requests for
// the same page render it once. A client address may send PerMinuteDefault requests a minute.
//
// # Behavior
//
//   - Unknown query parameters are ignored. After an invalid value the page has status 400, shows the problem next to
//     the field, and uses the default.
//   - An amount may have commas between thousands (1,250.50) or a decimal comma (250,50).
//   - With operation=pesos the amount is in pesos. It is divided by the price and rounded down to cents.
//   - The best, median and reference rates of a day are those of the day's history, over all channels.
//
// # Where to start reading
//
//	pages.go                         Config and routes; cards, pictures and links for other sites
//	frame.go                         how a request becomes a page
//	home.go, history.go              pages with rates
//	testdata/golden                  every page; go test -run Golden -update rewrites them
package pages
