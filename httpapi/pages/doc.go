// Package pages is what people read: the frame of all pages, and the public ones (rates, institutions, terms). Pages are made on the
// server with html/template, from embedded files, and work without JavaScript; nothing is loaded from elsewhere, nothing is inline.
// They ask an engine.Service and never touch a gate: their limits are their own, and so is what they may cost.
//
// # A page in another package
//
// A package below this one (account, docs) gets the *Frame of Pages in its Config and registers its pages with it:
//
//	//go:embed files
//	var embedded embed.FS // files/docs.html, files/words.es.json, files/words.en.json, files/docs.css
//
//	func New(c Config) *Docs {
//		files, _ := fs.Sub(embedded, "files")
//		c.Frame.AddAsset("docs.css", "text/css; charset=utf-8", css)
//		return &Docs{frame: c.Frame, body: c.Frame.Body(files, "docs")}
//	}
//
//	func (d *Docs) Register(mux *http.ServeMux) {
//		d.frame.Handle(mux, http.MethodGet, "/docs", d.show) // /en/docs too
//	}
//
//	func (d *Docs) show(w http.ResponseWriter, r *pages.Request) {
//		d.frame.WriteKept(w, r, "", func() (*pages.Document, time.Time, error) {
//			return &pages.Document{
//				Body: d.body, Data: d.limits, Title: "API", Section: "/docs", Styles: []string{"docs.css"},
//			}, r.Now.Add(time.Hour), nil
//		})
//	}
//
// Handle keeps the limit of the client's address (429) and sets the headers that protect. WriteKept is for pages that are the same for
// everybody, Write for what one visitor alone may see (no-store). The handler may set headers of its own before (cookies, Location with
// http.StatusSeeOther). NotFound, BadRequest and Fail answer an error as a page in the visitor's language.
//
// Body documents what templates may call: t and count for texts, href for links to pages (always by the Spanish path), asset, date,
// instant, ago. Texts are keys of words.es.json and words.en.json beside the template; long prose has a template for each language
// (docs.es.html, docs.en.html). A body begins with its one h1, and every field has a label; classes are those of assets/style.css
// (its head lists them).
//
// # Languages
//
// The path decides: Spanish has the plain one, English the same under /en. Accept-Language only adds a line that suggests the other.
//
// # What a page costs
//
// A page that somebody else asked for within the second is answered from memory, tens of microseconds, without a question to the
// service. Otherwise about ten small questions are asked and the page is rendered, one or two milliseconds; charts and their tables once a
// minute, the past of a currency (365 small questions) once in five. Many who ask for the same at once cost one rendering. All that is
// kept is bounded; 100 pages at most are rendered in a second, whoever asks, and what is beyond gets 503. An address has PerMinuteDefault
// requests a minute (429). go test -bench Page measures it.
//
// # Decisions
//
// The tests carry the ids of the decisions register. What that leaves open was decided here:
//
//   - V1: a parameter that a page does not know is passed over, because links collect them; a wrong value of a known one leaves the default,
//     is told beside its field, and the answer is 400.
//   - V2: an amount may be typed with commas between thousands, 1,250.50; it becomes what /v1/convert takes. Any other comma is refused: 1,5
//     might mean two things.
//   - V3: the table compares every rate of the ranking (S7); those that are expired or lack the side stand apart (S4, T1), the reference too.
//   - V4: best, median and reference of a day are over the rows of history of that day (T5), of all channels. The median of an even number is
//     the exact mean of the two in the middle, rounded half even to four decimals, unless both are equal.
//   - V5: a chart goes on over at most seven days without a row, and is broken where there are more.
//   - V6: the other language is suggested to who prefers it, and only on the plain path; nobody is sent there.
//
// # Where to change what
//
//	pages.go           Config, New, Register
//	frame.go           Document, the layout's data, how pages go out; frame/ has the layout, the page of errors and their texts
//	request.go         Request, Handle, headers, errors
//	body.go            templates and what they may call; words.go, language.go: texts, dates
//	assets.go          files under /assets/, with their hash in the name; assets/
//	kept.go            what was rendered, and how much may be rendered in a second
//	limit.go           requests of one address
//	query.go           what a page with rates can be asked, and links that change one thing of it
//	home.go, row.go    the page of rates; institutions.go, terms.go: the others; public/ has their templates and texts
//	history.go         days of a currency: best, median, reference; panel.go, chart.go: how they are shown
//	testdata/golden    every page in both languages; go test -run Golden -update rewrites them: read the diff
package pages
