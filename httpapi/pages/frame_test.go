package pages_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/pages"
)

// get sends a GET with headers in pairs.
func get(t testing.TB, h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	r.RemoteAddr = "192.0.2.1:0"
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Address" {
			r.RemoteAddr = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func mustContain(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// TestFrame_LanguagesOfAnotherPackage checks a page of another package in both languages, and the link to the other
// one.
func TestFrame_LanguagesOfAnotherPackage(t *testing.T) {
	p := pages.New(pages.Config{PublicURL: "https://tasas.example.do/", Demo: true, Catalogue: engine.DefaultCatalogue(), Clock: pages.Noon})
	texts := pages.ReadTexts(fstest.MapFS{
		"words.es.json": {Data: []byte(`{"hello": "Hola, %s"}`)},
		"words.en.json": {Data: []byte(`{"hello": "Hello, %s"}`)},
		"extra.es.html": {Data: []byte(`<p>{{name}} {{nothing}}</p>`)},
		"extra.en.html": {Data: []byte(`<p>{{name}}</p>`)},
	})
	h := http.NewServeMux()
	p.Register(h)
	p.Frame().Handle(h, http.MethodGet, "/extra", func(w http.ResponseWriter, r *pages.Request) {
		p.Frame().WriteCached(w, r, "", func() (*pages.Document, error) {
			l, name := texts.In(r), `<Ana> "'&`
			body := Group{
				H1(l.T("hello", name)), A(l.Href("/terms"), Title(name), Text("x")), l.Prose("extra", pages.Slots{"name": Text(name)}),
				pages.External("javascript:alert(1)", "no link"), pages.External(`https://a.example/?a=1&b="`, "link"),
			}
			return &pages.Document{Body: body, Title: name, Description: name, Query: "a=1&b=2"}, nil
		})
	})
	const escaped = "&lt;Ana&gt; &#34;&#39;&amp;"
	spanish := get(t, h, "/extra")
	mustContain(t, spanish.Body.String(), `<html lang="es">`, "<h1>Hola, "+escaped+"</h1>", `<a href="/terms" title="`+escaped+`">`, "<p>"+escaped+" </p>no link<a href",
		"<title>"+escaped+" · ", `name="description" content="`+escaped+`"`, `<a href="https://a.example/?a=1&amp;b=&#34;"`,
		`href="/en/extra?a=1&amp;b=2"`, "todas las tasas de este sitio son simuladas",
		`<link rel="canonical" href="https://tasas.example.do/extra">`, `hreflang="en" href="https://tasas.example.do/en/extra"`)
	english := get(t, h, "/en/extra")
	mustContain(t, english.Body.String(), `<html lang="en">`, "<h1>Hello, "+escaped+"</h1>", `<a href="/en/terms" `, `href="/extra?a=1&amp;b=2"`, "every rate on this site is simulated")
}
