package pages

import (
	"cmp"
	"embed"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/fields"
)

//go:embed public
var publicFiles embed.FS

// Config configures Pages. Service, Catalogue and Clock are required.
type Config struct {
	Service   engine.Service
	Catalogue *engine.Catalogue
	Clock     func() time.Time
	// PublicURL is the origin of the site, such as https://tasas.example.do. Absolute links and examples begin with it.
	// If it is "", links are relative.
	PublicURL string
	Secure    bool         // browsers use https; New sets Secure if PublicURL is https
	Logger    *slog.Logger // nil means no log
	Demo      bool         // the rates are simulated, and every page says so
	Contact   string       // e-mail address or URL of the operator; "" means none
	// Collection returns the time of the next fetch from the sources, or zero if the node reads no sources, and the ids
	// of the sources that could not be read. It may be nil.
	Collection func() (next time.Time, failed []string)
	PerMinute  int // limit of requests per minute of a client address; 0 means PerMinuteDefault
}

// Pages serves the public pages. It is safe for concurrent use.
type Pages struct {
	frame     *Frame
	service   engine.Service
	catalogue *engine.Catalogue
	history   historyCache
	texts     *Texts
}

// New creates the pages. It panics if an embedded file is invalid.
func New(config Config) *Pages {
	config.PublicURL = strings.TrimRight(config.PublicURL, "/")
	config.Secure = config.Secure || strings.HasPrefix(config.PublicURL, "https:")
	config.PerMinute = cmp.Or(config.PerMinute, PerMinuteDefault)
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	texts := ReadTexts(Folder(publicFiles, "public"))
	return &Pages{
		frame: newFrame(config), service: config.Service, catalogue: config.Catalogue, history: newHistoryCache(config.Service),
		texts: texts,
	}
}

// Frame returns the Frame for pages of other packages.
func (p *Pages) Frame() *Frame { return p.frame }

// Register adds the pages and their assets to a mux.
func (p *Pages) Register(mux *http.ServeMux) {
	f := p.frame
	f.handle(mux, http.MethodGet, assetsPath+"{name}", f.serveAsset)
	f.Handle(mux, http.MethodGet, "/", p.showHome)
	f.Handle(mux, http.MethodGet, "/institutions", p.showInstitutions)
	f.Handle(mux, http.MethodGet, "/institutions/{id}", p.showInstitution)
	f.Handle(mux, http.MethodGet, "/terms", p.showTerms)
	p.registerShare(mux)
	p.registerShort(mux)
	f.handle(mux, http.MethodGet, "/robots.txt", p.showRobots)
	f.handle(mux, http.MethodGet, "/favicon.ico", p.showIcon)
}

// registerShort adds short paths: /usd for a currency's rates, /popular for an institution. If a path is already in
// use, registerShort skips the name.
func (p *Pages) registerShort(mux *http.ServeMux) {
	add := func(name, page, query string) {
		path := "/" + url.PathEscape(name)
		if _, pattern := mux.Handler(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/" + name}}); pattern != "" || slices.Contains(ownNames(), name) {
			return
		}
		p.frame.Handle(mux, http.MethodGet, path, func(w http.ResponseWriter, r *Request) {
			w.Header().Set("Location", r.Language.Path(page)+query)
			w.WriteHeader(http.StatusFound)
		})
	}
	if p.catalogue == nil {
		return
	}
	for _, currency := range p.catalogue.Currencies() {
		add(strings.ToLower(currency.Code), "/", "?"+parameterCurrency+"="+currency.Code)
	}
	for _, institution := range p.catalogue.Institutions() {
		if institution.Active {
			add(institution.ID, "/institutions/"+url.PathEscape(institution.ID), "")
		}
	}
}

// ownNames returns first path segments used by the rest of the site, which cannot be short paths.
func ownNames() []string {
	return []string{"v1", "en", "account", "docs", "data", "feeds", "assets", "embed", "share"}
}

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
