// Package pages serves the public HTML pages: rates, institutions and terms. It also has Frame, which the pages of
// other packages use. Pages are rendered on the server with gomponents and work without JavaScript. Nothing is loaded
// from other sites.
//
//	request → limit of the address → cache → engine.Service → Document → Frame → HTML
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
// WriteCached is for pages that are the same for every visitor, Write for all others. Texts and attributes are
// escaped. Use Raw only for content that is part of the program, and External for links that come from data. A body
// begins with its only h1, and every field has a label.
//
// # Languages
//
// English pages have the path of the Spanish page under /en. The header Accept-Language does not change the language of
// a page: it only adds a link to the other language.
//
// # Cost
//
// Pages are cached for a second, charts and tables for a minute, and the history of a currency for five minutes.
// Concurrent requests for a page render it once. At most 100 pages a second are rendered. Further requests get 503. A
// client address may send PerMinuteDefault requests a minute.
//
// # Behavior
//
//   - Unknown query parameters are ignored. An invalid value is reported next to its field with status 400, and the
//     default is used.
//   - An amount may have commas between thousands (1,250.50). Other commas are invalid, because 1,5 is ambiguous.
//   - Best, median and reference of a day are computed from the history of that day, over all channels. The median of
//     an even number of values is the mean of the middle two, rounded half even to four decimals.
//
// # Where to start reading
//
//	pages.go                        Config and routes
//	request.go, frame.go, layout.go how a request becomes a page
//	texts.go, language.go           the two languages
//	home.go, rates.go               rates; history.go, panel.go, chart.go: their history
//	testdata/golden                 every page; go test -run Golden -update rewrites them
package pages
