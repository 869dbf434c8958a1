package pages

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// Document is the content of a page.
type Document struct {
	Body        Node      // begins with the only h1
	Title       string    // title of the browser tab
	Description string    // description for search engines; "" means none
	Status      int       // 0 means 200
	Query       string    // URL query of the link to the other language
	Section     string    // the page's menu entry: "/", "/institutions", "/docs", "/account" or "/terms"
	NoIndex     bool      // search engines must not index the page
	Scripts     []string  // names of assets, see Frame.AddAssets
	Styles      []string  // names of assets, see Frame.AddAssets
	Policy      string    // Content-Security-Policy; "" means the constant Policy
	Until       time.Time // expiry in WriteCached's cache
	Address     string    // URL query of the page for search engines and previews; "" means none
	Picture     string    // path of the Spanish picture for previews; "" means none
	Feed        string    // path of a feed of the page; "" means none
}

// render returns the HTML of a document in the layout.
func (f *Frame) render(r *Request, doc *Document) (*renderedPage, error) {
	var text bytes.Buffer
	l := f.texts.In(r)
	page := HTML(Lang(string(r.Language)), f.head(l, r, doc), Body(
		A(Class("skip"), Href("#content"), l.T("frame.skip")),
		If(f.config.Demo, P(Class("demo"), Role("note"), l.T("frame.demo"))),
		f.header(l, r, doc),
		Main(ID("content"), Class("wide"), doc.Body),
		Footer(Class("bottom"), Div(Class("wide"),
			P(l.T("frame.footer.notice")),
			P(l.T("frame.footer.attribution"), Text(" "), A(l.Href("/terms"), l.T("nav.terms"))),
			If(f.config.Contact != "", P(f.Contact(l.Str("frame.contact")))),
			P(Class("tagline"), Strong(l.T("frame.name")), Text(" · "), l.T("frame.tagline")),
		)),
	))
	if err := Doctype(page).Render(&text); err != nil {
		return nil, fmt.Errorf("render %s: %w", r.Page, err)
	}
	return &renderedPage{cmp.Or(doc.Status, http.StatusOK), cmp.Or(doc.Policy, Policy), rendered.Undated(text.Bytes())}, nil
}

func (f *Frame) head(l *Localizer, r *Request, doc *Document) Node {
	urlOf := func(language Language) string {
		return f.config.PublicURL + withQuery(language.Path(r.Page), doc.Address)
	}
	alternate := func(name string, language Language) Node {
		return Link(Rel("alternate"), Attr("hreflang", name), Href(urlOf(language)))
	}
	links := Group{Link(Rel("canonical"), Href(urlOf(r.Language)))}
	for _, language := range Languages() {
		links = append(links, alternate(string(language), language))
	}
	links = append(links, alternate("x-default", Spanish))
	if doc.NoIndex {
		links = Group{Meta(Name("robots"), Content("noindex"))}
	}
	return Head(
		Meta(Charset("utf-8")),
		Meta(Name("viewport"), Content("width=device-width, initial-scale=1")),
		TitleEl(Text(doc.Title+" · "), l.T("frame.name")),
		If(doc.Description != "", Meta(Name("description"), Content(doc.Description))),
		Meta(Name("color-scheme"), Content("light dark")),
		links,
		f.preview(l, r, doc),
		If(doc.Feed != "", Link(Rel("alternate"), Type("application/atom+xml"), Title(l.Str("frame.feed")), Href(doc.Feed))),
		Link(Rel("icon"), Href(f.Asset("favicon.svg")), Type("image/svg+xml")),
		Link(Rel("manifest"), Href(manifestPath)),
		Map(append([]string{"style.css"}, doc.Styles...), func(name string) Node { return Link(Rel("stylesheet"), Href(f.Asset(name))) }),
		Map(doc.Scripts, func(name string) Node { return Script(Src(f.Asset(name)), Defer()) }),
	)
}

func (f *Frame) header(l *Localizer, r *Request, doc *Document) Node {
	entry := func(page, key string) Node {
		return A(l.Href(page), If(page == doc.Section, Aria("current", "page")), l.T(key))
	}
	return Header(Class("top"), Div(Class("wide"),
		A(Class("brand"), l.Href("/"), Raw(`<svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">`+
			`<rect class="mark" width="32" height="32" rx="8"/><path class="line" d="M6 21l6-6 5 4 9-10"/></svg>`), l.T("frame.name")),
		Nav(Aria("label", l.Str("frame.menu")),
			entry("/", "nav.home"), entry("/institutions", "nav.institutions"), entry("/docs", "nav.docs"), entry("/account", "nav.account")),
		A(Href(withQuery(r.Language.Other().Path(r.Page), doc.Query)), Attr("hreflang", string(r.Language.Other())), Class("other"),
			Lang(string(r.Language.Other())), l.T("frame.other")),
	))
}
