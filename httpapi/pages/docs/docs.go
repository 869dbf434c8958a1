package docs

import (
	"embed"
	"net/http"
	"strings"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/httpapi/pages"
)

//go:embed files vendored
var embedded embed.FS

// Limits are the quotas shown in the guide.
type Limits struct {
	On     bool // the node enforces quotas
	Day    int  // requests in a day
	Minute int  // requests within 60 seconds
}

// Config configures Docs. Frame is required.
type Config struct {
	Frame  *pages.Frame
	Limits Limits
	// KeysRequired returns the date from which API keys are required, or zero if none is announced. It may be nil.
	KeysRequired func() time.Time
}

// Docs serves the guide and the reference. It is safe for concurrent use.
type Docs struct {
	config   Config
	texts    *pages.Texts
	policy   string // Content-Security-Policy of the reference
	answer   string // an example response for the guide
	snippets []snippet
}

// Names of assets, the static files that pages load.
const (
	guideStyle      = "docs.css"
	referenceStyle  = "reference.css"
	referenceScript = "reference.js"
	swaggerStyle    = "swagger-ui.css"
	swaggerScript   = "swagger-ui-bundle.js"
)

const (
	rootPage = "/docs"
	// cachedFor is the cache lifetime of the guide, and so the longest time until it shows a new date of KeysRequired.
	cachedFor  = time.Minute
	copyScript = "copy.js" // an asset of pages.Frame
)

// snippet is an example program.
type snippet struct {
	Name, Title string
	Run         string // command that runs the program, or ""
	Text        string // {{service}} stands for the URL of the service
}

// New creates the pages and adds their assets to the Frame. It panics if an embedded file is invalid.
func New(config Config) *Docs {
	files := pages.Folder(embedded, "files")
	config.Frame.AddAssets(files, guideStyle, referenceStyle, referenceScript)
	config.Frame.AddAssets(embedded, "vendored/"+swaggerStyle+".gz", "vendored/"+swaggerScript+".gz")
	d := &Docs{config: config, texts: pages.ReadTexts(files), answer: string(read("files/answer.json"))}
	d.policy = strings.Replace(pages.Policy, "img-src 'self'", "img-src 'self' data:", 1)
	for _, s := range []snippet{
		{Name: "curl", Title: "curl"},
		{Name: "go", Title: "Go", Run: "go run rates.go"},
		{Name: "javascript", Title: "JavaScript", Run: "node rates.mjs"},
		{Name: "python", Title: "Python", Run: "python3 rates.py"},
		{Name: "php", Title: "PHP", Run: "php rates.php"},
	} {
		s.Text = string(read("files/snippets/" + s.Name + ".txt"))
		d.snippets = append(d.snippets, s)
	}
	return d
}

func read(name string) []byte {
	content, err := embedded.ReadFile(name)
	if err != nil {
		panic("docs: read an embedded file: " + err.Error())
	}
	return content
}

// Register adds the pages to a mux.
func (d *Docs) Register(mux *http.ServeMux) {
	d.config.Frame.Handle(mux, http.MethodGet, rootPage, d.showGuide)
	d.config.Frame.Handle(mux, http.MethodGet, rootPage+"/reference", d.showReference)
}

func (d *Docs) showGuide(w http.ResponseWriter, r *pages.Request) {
	service := d.config.Frame.ServiceURL(r)
	d.config.Frame.WriteCached(w, r, service, func() (*pages.Document, error) {
		l := d.texts.In(r)
		keys, expires := d.keysSection(l, r.Now)
		return &pages.Document{
			Title: "API", Description: l.Str("guide.description"), Section: rootPage, Styles: []string{guideStyle}, Scripts: []string{copyScript},
			Until: expires,
			Body: l.Prose("guide", pages.Slots{
				"quick": d.quickStarts(l, service), "answer": Text(d.answer), "limits": d.limitsSection(l), "keys": keys, "service": Text(service),
				"contact": d.config.Frame.Contact(" " + l.Str("errors.internal.contact")), "suspended": d.config.Frame.Contact(" " + l.Str("errors.contact")),
			}),
		}, nil
	})
}

func (d *Docs) limitsSection(l *pages.Localizer) Node {
	if !d.config.Limits.On {
		return l.Prose("limits-off", nil)
	}
	return l.Prose("limits-on", pages.Slots{"day": Text(pages.Grouped(d.config.Limits.Day)), "minute": Text(pages.Grouped(d.config.Limits.Minute))})
}

// keysSection returns the text about the date from which API keys are required, and the expiry of the cached page.
func (d *Docs) keysSection(l *pages.Localizer, now time.Time) (Node, time.Time) {
	expires := now.Add(cachedFor)
	var requiredAt time.Time
	if d.config.KeysRequired != nil {
		requiredAt = d.config.KeysRequired()
	}
	slots := pages.Slots{"at": l.Time(requiredAt)}
	switch {
	case requiredAt.IsZero():
		return l.Prose("keys-open", nil), expires
	case !now.Before(requiredAt):
		return l.Prose("keys-required", slots), expires
	case requiredAt.Before(expires):
		expires = requiredAt
	}
	return l.Prose("keys-announced", slots), expires
}

// quickStarts returns the example programs, each with a copy button. Only the first is expanded.
func (d *Docs) quickStarts(l *pages.Localizer, service string) Node {
	var programs Group
	for i, s := range d.snippets {
		id := "snippet-" + s.Name
		text := strings.TrimSpace(strings.ReplaceAll(s.Text, "{{service}}", service))
		programs = append(programs, Details(Class("quick"), Name("quick"), ID("quick-"+s.Name), If(i == 0, Attr("open")), Summary(Text(s.Title)),
			If(s.Run != "", P(Class("fine"), Code(Text(s.Run)))),
			Pre(TabIndex("0"), Aria("label", s.Title), Attr("translate", "no"), Code(ID(id), Text(text))),
			P(Button(Class("plain"), Type("button"), Hidden(""), Data("copy", id), Data("done", l.Str("copied")), Data("failed", l.Str("copy.failed")),
				l.T("copy"), Span(Class("quiet"), Text(": "+s.Title))))))
	}
	return programs
}

func (d *Docs) showReference(w http.ResponseWriter, r *pages.Request) {
	d.config.Frame.WriteCached(w, r, "", func() (*pages.Document, error) {
		l := d.texts.In(r)
		document := func(name string) Node { return A(Href("/"+name), Text(name)) }
		return &pages.Document{
			Title: l.Str("reference.title"), Section: rootPage, Policy: d.policy, Until: r.Now.Add(time.Hour),
			Styles: []string{swaggerStyle, referenceStyle}, Scripts: []string{swaggerScript, referenceScript},
			Body: Group{
				H1(l.T("reference.title")), P(Class("lead"), l.T("reference.lead")),
				P(A(l.Href(rootPage), l.T("reference.guide")), Text(" · "), document("openapi.json"), Text(" · "), document("openapi.yaml")),
				El("noscript", P(Class("notice"), l.T("reference.script"))),
				P(Class("notice bad"), ID("reference-failed"), Role("alert"), Hidden(""), l.T("reference.failed")),
				Div(ID("reference"), Lang("en")),
			},
		}, nil
	})
}
