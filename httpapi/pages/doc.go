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
// # Where to change what
//
//	pages.go     Config, New, Register
//	frame.go     Document, the layout's data, how pages go out; frame/ has the layout, the page of errors and their texts
//	request.go   Request, Handle, headers, errors
//	body.go      templates and what they may call; words.go, language.go: texts, dates
//	assets.go    files under /assets/, with their hash in the name
//	kept.go      what was rendered, and how much may be rendered in a second
//	limit.go     requests of one address
package pages
