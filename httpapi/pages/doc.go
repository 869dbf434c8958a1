// Package pages is what people read: the frame of all pages, and the public ones (rates, institutions, terms). Pages are made on the
// server with gomponents and work without JavaScript; nothing is loaded from elsewhere, nothing is inline. They ask an engine.Service;
// their limits are their own, and so is what they may cost.
//
// # A page in another package
//
// A package below this one (account, docs) gets the *Frame of Pages in its Config and registers its pages with it:
//
//	texts := pages.ReadTexts(files) // words.es.json, words.en.json, and long prose: guide.es.html, guide.en.html
//	frame.AddAssets(files, "docs.css")
//	frame.Handle(mux, http.MethodGet, "/docs", func(w http.ResponseWriter, r *pages.Request) { // /en/docs too
//		frame.WriteCached(w, r, "", func() (*pages.Document, error) {
//			l := texts.In(r)
//			body := Group{H1(l.T("terms.title")), A(l.Href("/terms"), l.T("nav.terms"))}
//			return &pages.Document{Body: body, Title: "API", Section: "/docs", Styles: []string{"docs.css"}}, nil
//		})
//	})
//
// Handle keeps the limit of the client's address (429) and sets the headers that protect. WriteCached is for pages that are the same for
// every visitor, Write for what is for one visitor only (no-store). The handler may set headers of its own before (cookies, Location
// with http.StatusSeeOther). NotFound, BadRequest and Fail answer an error as a page in the visitor's language.
//
// Every text and attribute is escaped. Raw is for what this program holds itself; External links to an address that came from
// elsewhere. A body begins with its one h1, every field has a label, and classes are those of assets/style.css (its head lists them).
//
// # Languages
//
// The path decides: Spanish has the plain one, English the same under /en. Accept-Language only adds a line that suggests the other.
//
// # What a page costs
//
// A page that was asked for within the second is answered from memory, in tens of microseconds. Otherwise about ten small questions are
// asked and the page is rendered, in about one millisecond; charts and their tables once a minute, the past of a currency (365 small
// questions) once in five. Many requests for the same page at once cost one rendering. All that is kept is bounded; 100 pages at most
// are rendered in a second, and what is beyond gets 503. An address has PerMinuteDefault requests a minute (429).
//
// # Decisions
//
//   - Unknown parameters are passed over, because links collect them. A wrong value of a known one leaves the default and is told
//     beside its field; the answer is 400.
//   - An amount may have commas between thousands, 1,250.50. Any other comma is refused: 1,5 might mean two things.
//   - The table compares every rate of the ranking; expired rates, rates without the side and the reference stand apart.
//   - Best, median and reference of a day are over that day's rows of history, of all channels. The median of an even number is the exact
//     mean of the two in the middle, rounded half even to four decimals, unless both are equal.
//   - A chart goes on over at most seven days without a row, and is broken where there are more.
//
// # Where to start
//
// pages.go has Config and the routes, layout.go the frame of a page, frame.go and kept.go how pages go out and are kept, texts.go and
// language.go what is written in two languages, home.go and rates.go the page of rates, history.go, panel.go and chart.go the history.
// testdata/golden has every page in both languages; go test -run Golden -update rewrites them: read the diff.
package pages
