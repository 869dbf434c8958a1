package pages

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/rendered"
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
	return &Pages{
		frame: newFrame(config), service: config.Service, catalogue: config.Catalogue,
		history: historyCache{config.Service, rendered.NewCache[string, []marketDay](historyCacheMax, 0)},
		texts:   ReadTexts(Folder(publicFiles, "public")),
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
	f.Handle(mux, http.MethodGet, "/embed/{currency}", p.showEmbed)
	if f.config.PublicURL != "" {
		f.Handle(mux, http.MethodGet, "/share/{picture}", p.showPicture)
	}
	p.registerShort(mux)
	f.handle(mux, http.MethodGet, manifestPath, p.showManifest)
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

const (
	// plainCacheDuration is how long clients may cache files and pages without rates, such as robots.txt.
	plainCacheDuration   = time.Hour
	pictureCacheDuration = time.Minute
	pictureWidth         = 1200 // in pixels, as expected for link previews
	pictureHeight        = 630
	pictureMargin        = 70
	manifestPath         = "/manifest.webmanifest"
	// embedPolicy is the Content-Security-Policy of a card, which any site may show in a frame.
	embedPolicy = "default-src 'none'; style-src 'self'; form-action 'none'; frame-ancestors *; base-uri 'none'"
)

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

// bestRates contains the best rate of a currency for each operation, if there is one.
type bestRates map[engine.Operation]*engine.Rate

func (p *Pages) bestRates(currency string) (bestRates, error) {
	best := bestRates{}
	for _, operation := range []engine.Operation{engine.Sell, engine.Buy} {
		ranking, err := p.service.Ranking(engine.RankingQuery{
			Filter: engine.Filter{Currency: currency}, PageRequest: engine.PageRequest{Limit: 1}, Operation: operation,
		})
		if err != nil {
			return best, err
		}
		if len(ranking.Items) > 0 {
			best[operation] = ranking.Items[0]
		}
	}
	return best, nil
}

// of returns the price of the best rate for an operation, or null.
func (b bestRates) of(operation engine.Operation) engine.Decimal {
	if b[operation] == nil {
		return engine.Decimal{}
	}
	return b[operation].Side(operation)
}

// heading returns the heading of a page about a currency: Dólar hoy en RD.
func (p *Pages) heading(l *Localizer, code string) string {
	name := l.Str("currency." + code)
	if name == "" {
		name = p.nameOf(l, code)
	}
	return l.Str("home.heading", name)
}

// shareLinks returns links for sharing the page. Without a public URL or rates it returns nil.
func (p *Pages) shareLinks(q pageQuery, best bestRates, l *Localizer) Node {
	if p.frame.config.PublicURL == "" || len(best) == 0 {
		return nil
	}
	address := p.frame.config.PublicURL + pathWith(l.Path("/"), q.values())
	text := p.heading(l, q.Currency) + ": " + l.Str("share.text", sideOrDash(best.of(engine.Sell)), sideOrDash(best.of(engine.Buy))) + " " + address
	return P(Class("fine"), l.T("share.label"), Text(" "),
		External("https://wa.me/?text="+strings.ReplaceAll(url.QueryEscape(text), "+", "%20"), "WhatsApp"), Text(" · "),
		A(Href(address), l.T("share.link")))
}

// embedCode returns HTML that another site can use to show the card of a currency. Without a public URL it returns nil.
func (p *Pages) embedCode(q pageQuery, l *Localizer) Node {
	if p.frame.config.PublicURL == "" {
		return nil
	}
	code := fmt.Sprintf(`<iframe src="%s" title="%s" width="380" height="260" style="border:0" loading="lazy"></iframe>`,
		p.frame.config.PublicURL+l.Path("/embed/"+strings.ToLower(q.Currency)), p.heading(l, q.Currency))
	return Group{P(l.T("share.embed")), Pre(TabIndex("0"), Aria("label", "HTML"), Attr("translate", "no"), Code(Text(code)))}
}

// preview returns the Open Graph tags of a page, from which other sites and messengers make link previews. Without a
// public URL it returns nil, because the tags need absolute URLs.
func (f *Frame) preview(l *Localizer, r *Request, doc *Document) Node {
	if f.config.PublicURL == "" || doc.Description == "" {
		return nil
	}
	tag := func(property, content string) Node { return Meta(Attr("property", "og:"+property), Content(content)) }
	locale := "es_DO"
	if r.Language == English {
		locale = "en_US"
	}
	tags := Group{
		tag("type", "website"), tag("site_name", l.Str("frame.name")), tag("locale", locale), tag("title", doc.Title), tag("description", doc.Description),
		tag("url", f.config.PublicURL+withQuery(r.Language.Path(r.Page), doc.Address)),
	}
	if doc.Picture == "" {
		return tags
	}
	return append(tags, tag("image", f.config.PublicURL+r.Language.Path(doc.Picture)), tag("image:type", "image/png"),
		tag("image:width", fmt.Sprint(pictureWidth)), tag("image:height", fmt.Sprint(pictureHeight)), tag("image:alt", doc.Title),
		Meta(Name("twitter:card"), Content("summary_large_image")))
}

// showManifest serves the web manifest, with which a phone lists the site among its apps.
func (p *Pages) showManifest(w http.ResponseWriter, r *Request) {
	l := p.texts.In(r)
	sendPlain(w, "application/manifest+json", plainCacheDuration, fmt.Appendf(nil,
		`{"name":%q,"short_name":%q,"lang":"es","start_url":"/","scope":"/","display":"minimal-ui","background_color":"#f6f8f9","theme_color":"#0b5c7a",`+
			`"icons":[{"src":%q,"sizes":"any","type":"image/svg+xml"}]}`,
		l.Str("frame.tagline"), l.Str("frame.name"), p.frame.Asset("favicon.svg")))
}

// cachedOf returns the cached page about a currency. If there is none, cachedOf calls render with the best rates, which
// are empty if the service has no data.
func (p *Pages) cachedOf(r *Request, currency string, render func(bestRates) (*renderedPage, time.Time, error)) (*renderedPage, error) {
	return p.frame.cached(r, cacheKey{language: r.Language, page: r.Page, query: currency}, func() (*renderedPage, time.Time, error) {
		best, err := p.bestRates(currency)
		if err != nil && !isUnavailable(err) {
			return nil, time.Time{}, err
		}
		return render(best)
	})
}

// showEmbed serves the card of a currency.
func (p *Pages) showEmbed(w http.ResponseWriter, r *Request) {
	currency, ok := p.catalogue.Currency(strings.ToUpper(r.PathValue("currency")))
	if !ok {
		p.frame.NotFound(w, r)
		return
	}
	page, err := p.cachedOf(r, currency.Code, func(best bestRates) (*renderedPage, time.Time, error) {
		l := p.texts.In(r)
		days, err := p.history.market(currency.Code, l.now)
		if err != nil && !isUnavailable(err) {
			return nil, time.Time{}, err
		}
		home := withQuery(l.Path("/"), addressQuery(currency.Code))
		var at Node
		if len(best) > 0 {
			at = l.asOf(slices.Collect(maps.Values(best)), nil)
		}
		var text bytes.Buffer
		err = Doctype(HTML(Lang(string(r.Language)),
			Head(Meta(Charset("utf-8")), Meta(Name("viewport"), Content("width=device-width, initial-scale=1")), Meta(Name("robots"), Content("noindex")),
				Meta(Name("color-scheme"), Content("light dark")), TitleEl(Text(p.heading(l, currency.Code))), Base(Target("_blank")),
				Link(Rel("stylesheet"), Href(p.frame.Asset("style.css")))),
			Body(Class("embed"), If(p.frame.config.Demo, P(Class("demo"), Role("note"), l.T("share.demo"))),
				Main(H1(A(Href(home), Text(p.heading(l, currency.Code)))), l.summaryCard(best, days, at))))).Render(&text)
		return &renderedPage{http.StatusOK, embedPolicy, rendered.Undated(text.Bytes())}, r.Now.Truncate(time.Second).Add(time.Second), err
	})
	if err != nil {
		p.frame.Fail(w, r, err)
		return
	}
	w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	setPageHeaders(w.Header(), r, page, revalidate)
	page.body.Send(w, r.Request, page.status)
}

// showPicture serves a picture of the best rates of a currency, for link previews.
func (p *Pages) showPicture(w http.ResponseWriter, r *Request) {
	name, isPNG := strings.CutSuffix(r.PathValue("picture"), ".png")
	currency, ok := p.catalogue.Currency(strings.ToUpper(name))
	if !ok || !isPNG {
		p.frame.NotFound(w, r)
		return
	}
	page, err := p.cachedOf(r, currency.Code, func(best bestRates) (*renderedPage, time.Time, error) {
		content, err := p.draw(p.texts.In(r), currency.Code, best)
		return &renderedPage{body: rendered.Undated(content)}, r.Now.Add(pictureCacheDuration), err
	})
	if err != nil {
		p.frame.Fail(w, r, err)
		return
	}
	w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	sendPlain(w, "image/png", pictureCacheDuration, page.body.Plain())
}

// draw returns the picture of the best rates of a currency, as PNG.
func (p *Pages) draw(l *Localizer, code string, best bestRates) ([]byte, error) {
	c := &canvas{image: image.NewRGBA(image.Rect(0, 0, pictureWidth, pictureHeight))}
	ink, soft, brand := image.NewUniform(color.RGBA{0x16, 0x22, 0x2b, 0xff}), image.NewUniform(color.RGBA{0x4c, 0x5b, 0x66, 0xff}), image.NewUniform(color.RGBA{0x0b, 0x5c, 0x7a, 0xff})
	title, number := c.face(gobold.TTF, &opentype.FaceOptions{Size: 56, DPI: 72}), c.face(gobold.TTF, &opentype.FaceOptions{Size: 130, DPI: 72})
	plain, strong := c.face(goregular.TTF, &opentype.FaceOptions{Size: 36, DPI: 72}), c.face(gobold.TTF, &opentype.FaceOptions{Size: 36, DPI: 72})
	if c.err != nil {
		return nil, c.err
	}
	const width, column = pictureWidth - 2*pictureMargin, (pictureWidth - 2*pictureMargin) / 2
	draw.Draw(c.image, c.image.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(c.image, image.Rect(0, 0, pictureWidth, 130), brand, image.Point{}, draw.Src)
	c.text(pictureMargin, 88, width, title, image.White, p.heading(l, code))
	side := func(x int, key string, operation engine.Operation) {
		institution := l.Str("glance.none")
		if rate := best[operation]; rate != nil {
			institution = rate.InstitutionName
		}
		c.text(x, 210, column, plain, soft, l.Str(key)+" ("+l.Str(key+".who")+")")
		c.text(x, 345, column-20, number, ink, sideOrDash(best.of(operation)))
		c.text(x, 415, column-20, plain, ink, institution)
	}
	side(pictureMargin, "glance.compra", engine.Sell)
	side(pictureMargin+column, "glance.venta", engine.Buy)
	note := l.Date(engine.DateOf(l.now))
	if p.frame.config.Demo {
		note = l.Str("share.demo")
	}
	c.text(pictureMargin, 515, width, plain, soft, note)
	_, host, _ := strings.Cut(p.frame.config.PublicURL, "://")
	c.text(pictureMargin, 575, width, strong, brand, l.Str("frame.name")+" · "+host)
	var out bytes.Buffer
	err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, c.image)
	return out.Bytes(), err
}

// canvas is a picture with text.
type canvas struct {
	image *image.RGBA
	err   error // error of the last font that could not be read
}

func (c *canvas) face(ttf []byte, options *opentype.FaceOptions) (face font.Face) {
	parsed, err := opentype.Parse(ttf)
	if err == nil {
		face, err = opentype.NewFace(parsed, options)
	}
	c.err = cmp.Or(err, c.err)
	return face
}

// text draws a line of text from x on, with the baseline y. If the text is wider than width, it ends with an ellipsis.
func (c *canvas) text(x, y, width int, face font.Face, ink image.Image, text string) {
	for runes := []rune(text); len(runes) > 0 && font.MeasureString(face, text).Ceil() > width; {
		runes = runes[:len(runes)-1]
		text = string(runes) + "…"
	}
	(&font.Drawer{Dst: c.image, Src: ink, Face: face, Dot: fixed.P(x, y)}).DrawString(text)
}
