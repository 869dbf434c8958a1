package pages

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

// plainKept is how long pages that don't change by themselves may be shown.
const plainKept = time.Hour

func (p *Pages) showTerms(w http.ResponseWriter, r *Request) {
	p.frame.WriteKept(w, r, "", func() (*Document, time.Time, error) {
		doc := &Document{Body: p.termsBody, Data: p.openSources(), Section: "/terms"}
		var err error
		if doc.Title, err = p.text(r.Language, "terms.title"); err == nil {
			doc.Description, err = p.text(r.Language, "terms.description")
		}
		return doc, r.Now.Add(plainKept), err
	})
}

// openSources are the sources that have a page to look at.
func (p *Pages) openSources() []engine.Source {
	var sources []engine.Source
	for _, source := range p.catalogue.Sources() {
		if source.URL != "" {
			sources = append(sources, source)
		}
	}
	return sources
}

// showRobots lets search engines read pages, and keeps them from the API and from what is somebody's own.
func (p *Pages) showRobots(w http.ResponseWriter, r *Request) {
	text := "User-agent: *\nDisallow: /v1/\nDisallow: /account\nDisallow: /en/account\n"
	if p.frame.config.PublicURL != "" {
		text += "Sitemap: " + p.frame.config.PublicURL + "/sitemap.xml\n"
	}
	p.sendPlain(w, r, "text/plain; charset=utf-8", []byte(text))
}

// showIcon is for browsers that ask for the icon without having read a page.
func (p *Pages) showIcon(w http.ResponseWriter, r *Request) {
	icon, err := p.frame.Asset("favicon.svg")
	if err != nil {
		p.frame.Fail(w, r, err)
		return
	}
	w.Header().Set("Location", icon)
	w.WriteHeader(http.StatusFound)
}

func (p *Pages) sendPlain(w http.ResponseWriter, r *Request, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "public, max-age="+seconds(plainKept))
	p.frame.send(w, r, body)
}

// sitemap is the file of sitemaps.org, with the other language of each page.
type sitemap struct {
	XMLName xml.Name     `xml:"http://www.sitemaps.org/schemas/sitemap/0.9 urlset"`
	XHTML   string       `xml:"xmlns:xhtml,attr"`
	Entries []sitemapURL `xml:"url"`
}

type sitemapURL struct {
	Location string        `xml:"loc"`
	Others   []sitemapLink `xml:"xhtml:link"`
}

type sitemapLink struct {
	Relation string   `xml:"rel,attr"`
	Language Language `xml:"hreflang,attr"`
	Address  string   `xml:"href,attr"`
}

func (p *Pages) showSitemap(w http.ResponseWriter, r *Request) {
	items, err := p.institutions()
	if err != nil {
		p.frame.Fail(w, r, err)
		return
	}
	places := []string{"/", "/institutions", "/docs", "/terms"}
	for i := range items {
		places = append(places, "/institutions/"+items[i].ID)
	}
	site := sitemap{XHTML: "http://www.w3.org/1999/xhtml"}
	for _, place := range places {
		var others []sitemapLink
		for _, language := range Languages() {
			others = append(others, sitemapLink{"alternate", language, p.frame.config.PublicURL + language.Path(place)})
		}
		for _, language := range Languages() {
			site.Entries = append(site.Entries, sitemapURL{p.frame.config.PublicURL + language.Path(place), others})
		}
	}
	text, err := xml.MarshalIndent(site, "", " ")
	if err != nil {
		p.frame.Fail(w, r, fmt.Errorf("make the sitemap: %w", err))
		return
	}
	p.sendPlain(w, r, "application/xml; charset=utf-8", []byte(strings.TrimSpace(xml.Header+string(text))+"\n"))
}
