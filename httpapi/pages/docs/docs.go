package docs

import (
	"embed"
	"io/fs"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/httpapi/pages"
)

//go:embed all:files vendored
var embedded embed.FS

// Limits are what callers are held to.
type Limits struct {
	On     bool
	Day    int // requests
	Minute int // requests in any 60 seconds
}

// Config says what the guide tells. Frame is required.
type Config struct {
	Frame *pages.Frame
	// PublicURL is the address under which people reach the service. Empty: what the browser asked for.
	PublicURL string
	Secure    bool // the service is reached by https, where PublicURL says nothing
	Limits    Limits
	// KeysRequired is the end of anonymous access; the zero time means that none is announced. nil: none ever is.
	KeysRequired func() time.Time
}

// Docs are the guide and the reference. Safe for concurrent use.
type Docs struct {
	config           Config
	guide, reference *pages.Body
	policy           string // of the reference: that of all pages, with the pictures that Swagger UI's style has in it
	snippets         []snippet
}

// Names of assets.
const (
	guideStyle      = "docs.css"
	referenceStyle  = "reference.css"
	referenceScript = "reference.js"
	swaggerStyle    = "swagger-ui.css"
	swaggerScript   = "swagger-ui-bundle.js"
)

const (
	rootPage = "/docs"
	// keptFor is how long a page is kept: so late is what it says of the end of anonymous access at most.
	keptFor    = time.Minute
	copyScript = "copy.js" // the frame's
)

// snippet is a program or a text to be copied.
type snippet struct {
	Name, Title string
	Run         string // how it is started, "" = as it is
	Text        string // {{service}} stands for the address of the service
}

// at is the snippet for the service at an address.
func (s snippet) at(service string) snippet {
	s.Text = strings.TrimSpace(strings.ReplaceAll(s.Text, "{{service}}", service))
	return s
}

// New makes the pages and adds their assets to the frame. It panics when an embedded file is damaged.
func New(config Config) *Docs {
	config.PublicURL = strings.TrimRight(config.PublicURL, "/")
	files, err := fs.Sub(embedded, "files")
	must("open the files", err)
	for name, kind := range map[string]string{guideStyle: "text/css", referenceStyle: "text/css", referenceScript: "text/javascript"} {
		config.Frame.AddAsset(name, kind+"; charset=utf-8", read("files/"+name))
	}
	for name, kind := range map[string]string{swaggerStyle: "text/css", swaggerScript: "text/javascript"} {
		config.Frame.AddPackedAsset(name, kind+"; charset=utf-8", read("vendored/"+name+".gz"))
	}
	d := &Docs{config: config, guide: config.Frame.Body(files, "guide"), reference: config.Frame.Body(files, "reference")}
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
	must("read "+name, err)
	return content
}

func must(do string, err error) {
	if err != nil {
		panic("docs: " + do + ": " + err.Error())
	}
}

// Register adds the pages to a mux.
func (d *Docs) Register(mux *http.ServeMux) {
	d.config.Frame.Handle(mux, http.MethodGet, rootPage, d.showGuide)
	d.config.Frame.Handle(mux, http.MethodGet, rootPage+"/reference", d.showReference)
}

// guideView is what the guide gets.
type guideView struct {
	Snippets     []snippet
	Attributions []snippet
	Operations   []operation
	Errors       []refusal
	Limits       limitsView
	Announced    bool
	Required     bool // the day has come
	RequiredAt   time.Time
}

// limitsView has counts with separators.
type limitsView struct {
	On          bool
	Day, Minute string
}

func (d *Docs) showGuide(w http.ResponseWriter, r *pages.Request) {
	service, key := d.service(r)
	d.config.Frame.WriteKept(w, r, key, func() (*pages.Document, time.Time, error) {
		until := r.Now.Add(keptFor)
		view := guideView{
			Operations: operations(), Errors: refusals(),
			Limits: limitsView{d.config.Limits.On, grouped(d.config.Limits.Day), grouped(d.config.Limits.Minute)},
		}
		if d.config.KeysRequired != nil {
			view.RequiredAt = d.config.KeysRequired()
		}
		view.Announced = !view.RequiredAt.IsZero()
		view.Required = view.Announced && !r.Now.Before(view.RequiredAt)
		if view.Announced && !view.Required && view.RequiredAt.Before(until) {
			until = view.RequiredAt
		}
		for _, s := range d.snippets {
			view.Snippets = append(view.Snippets, s.at(service))
		}
		for _, s := range attributions(r.Language) {
			view.Attributions = append(view.Attributions, s.at(service))
		}
		document := &pages.Document{
			Body: d.guide, Data: &view, Title: "API", Section: rootPage, Styles: []string{guideStyle}, Scripts: []string{copyScript},
			Description: "Rates of the Dominican Republic as JSON: quick starts, limits, errors, attribution.",
		}
		if r.Language == pages.Spanish {
			document.Description = "Tasas de la República Dominicana en JSON: primeros pasos, límites, errores, atribución."
		}
		return document, until, nil
	})
}

func (d *Docs) showReference(w http.ResponseWriter, r *pages.Request) {
	d.config.Frame.WriteKept(w, r, "", func() (*pages.Document, time.Time, error) {
		title := "API reference"
		if r.Language == pages.Spanish {
			title = "Referencia de la API"
		}
		return &pages.Document{
			Body: d.reference, Title: title, Section: rootPage, Policy: d.policy,
			Styles: []string{swaggerStyle, referenceStyle}, Scripts: []string{swaggerScript, referenceScript},
		}, r.Now.Add(time.Hour), nil
	})
}

// hosts are names and addresses with or without a port, nothing that a shell or a program would read as more.
var hosts = regexp.MustCompile(`^(\[[0-9A-Fa-f:.]{2,45}\]|[0-9A-Za-z.-]{1,253})(:[0-9]{1,5})?$`)

// service is the address that examples show, and what tells kept pages apart by it.
func (d *Docs) service(r *pages.Request) (address, key string) {
	if d.config.PublicURL != "" {
		return d.config.PublicURL, ""
	}
	host := strings.ToLower(r.Host)
	if !hosts.MatchString(host) {
		host = "localhost"
	}
	if d.config.Secure {
		return "https://" + host, host
	}
	return "http://" + host, host
}

// grouped is a count with a comma between thousands, as both languages write it in the Dominican Republic.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
