package pages

import (
	"cmp"
	"net/http"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

// plainCacheDuration is how long clients may cache files and pages without rates, such as robots.txt.
const plainCacheDuration = time.Hour

func (p *Pages) showTerms(w http.ResponseWriter, r *Request) {
	p.frame.WriteCached(w, r, "", func() (*Document, error) {
		l, publicURL := p.texts.In(r), p.frame.config.PublicURL
		return &Document{
			Title: l.Str("terms.title"), Description: l.Str("terms.description"), Section: "/terms", Until: r.Now.Add(plainCacheDuration),
			Body: l.Prose("terms", Slots{
				"service": Text(cmp.Or(publicURL, "https://…")), "sources": p.openSources(l),
				"where": If(publicURL == "", P(Class("fine"), Raw(l.Str("terms.where", "<code>https://…</code>")))),
			}),
		}, nil
	})
}

// openSources lists the sources with a URL.
func (p *Pages) openSources(l *Localizer) Node {
	var items Group
	for _, source := range p.catalogue.Sources() {
		if source.URL == "" {
			continue
		}
		upstream := source.UpstreamSource
		items = append(items, Li(External(source.URL, source.Name),
			If(upstream != "", Group{Text(" "), Span(Class("meta"), l.T("source.via", upstream))})))
	}
	if len(items) == 0 {
		return nil
	}
	return Group{H2(ID("sources"), l.T("terms.sources")), P(l.T("terms.sources.text")), Ul(Class("list"), items)}
}

// showRobots serves robots.txt, which excludes crawlers from the API and the account pages.
func (p *Pages) showRobots(w http.ResponseWriter, _ *Request) {
	sendPlain(w, "text/plain; charset=utf-8", plainCacheDuration, []byte("User-agent: *\nDisallow: /v1/\nDisallow: /account\nDisallow: /en/account\n"))
}

func (p *Pages) showIcon(w http.ResponseWriter, _ *Request) {
	w.Header().Set("Location", p.frame.Asset("favicon.svg"))
	w.WriteHeader(http.StatusFound)
}

// sendPlain sends a file that clients may cache.
func sendPlain(w http.ResponseWriter, contentType string, cached time.Duration, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "public, max-age="+fields.RetryAfter(cached))
	_, _ = w.Write(body) //nolint:gosec // G705: none of these files is HTML; httpapi keeps it until it is sent
}
