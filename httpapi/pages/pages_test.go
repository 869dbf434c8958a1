package pages_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/net/html"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/data"
	"github.com/tasard/tasard/httpapi/pages"
)

// TestPages_NotReady checks the pages without data: 503 with Retry-After, but institutions are known.
func TestPages_NotReady(t *testing.T) {
	w := newFakeService(t)
	w.err = &engine.Error{Code: engine.CodeDataUnavailable, Message: "nothing yet", RetryAfter: 1500 * time.Millisecond}
	h := serve(w.config())
	for path, text := range map[string]string{"/": "Todavía no hay tasas", "/en": "There are no rates yet"} {
		answer := get(t, h, path)
		if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") != "2" || answer.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v", path, answer.Code, answer.Header())
		}
		mustContain(t, answer.Body.String(), text, "<h1>")
	}
	if answer := get(t, h, "/institutions/colon"); answer.Code != http.StatusOK {
		t.Errorf("an institution: %d", answer.Code)
	}
	w.err = nil
	if answer := get(t, h, "/"); answer.Code != http.StatusOK || answer.Header().Get("Retry-After") != "" {
		t.Errorf("with data: %d, the refusal was kept", answer.Code)
	}
}

// TestPages_E5 checks that the cause of an error is logged under the id on the page, and not shown.
func TestPages_E5(t *testing.T) {
	var log bytes.Buffer
	w := newFakeService(t)
	w.err = errors.New("secret detail")
	c := w.config()
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	answer := get(t, serve(c), "/en", "X-Request-Id", "abc123")
	if answer.Code != http.StatusInternalServerError {
		t.Errorf("status %d", answer.Code)
	}
	mustContain(t, answer.Body.String(), "<code>abc123</code>", "Something went wrong")
	mustContain(t, log.String(), "requestId=abc123", "secret detail")
	if strings.Contains(answer.Body.String(), "secret") {
		t.Error("the visitor reads the cause")
	}
}

// TestPages_Contact checks that pages ask the visitor to write to the operator only if a contact is configured.
func TestPages_Contact(t *testing.T) {
	for contact, link := range map[string]string{
		"ana@example.do":           `<a href="mailto:ana@example.do">ana@example.do</a>`,
		"https://example.do/ayuda": `<a href="https://example.do/ayuda" rel="noopener nofollow external">https://example.do/ayuda</a>`,
		"":                         "",
	} {
		w := newFakeService(t)
		c := w.config()
		c.Contact = contact
		h := serve(c)
		terms := get(t, h, "/terms").Body.String()
		w.err = errors.New("broken")
		failed := get(t, h, "/", "X-Request-Id", "abc123").Body.String()
		asked := contact != ""
		if strings.Contains(terms, "Contacto: "+link) != asked || strings.Contains(failed, "escríbanos") != asked || !strings.Contains(failed, link) {
			t.Errorf("contact %q:\n%s\n%s", contact, terms, failed)
		}
	}
}

// TestPages_Limit checks the 429 page, and that assets count.
func TestPages_Limit(t *testing.T) {
	w := newFakeService(t)
	c := w.config()
	c.PerMinute = 60
	h := serve(c)
	refused := 0
	for i := range 70 {
		path := []string{"/terms", "/assets/nothing", "/robots.txt"}[i%3]
		answer := get(t, h, path, "Address", "[2001:db8::1]:0")
		if answer.Code != http.StatusTooManyRequests {
			continue
		}
		refused++
		if answer.Header().Get("Retry-After") != "1" {
			t.Errorf("Retry-After %q", answer.Header().Get("Retry-After"))
		}
		mustContain(t, answer.Body.String(), "Demasiadas solicitudes")
	}
	if refused != 10 {
		t.Errorf("%d of 70 refused, want 10", refused)
	}
	w.now = w.now.Add(time.Second)
	if code := get(t, h, "/terms", "Address", "[2001:db8::1]:0").Code; code != http.StatusOK {
		t.Errorf("a second later: %d", code)
	}
}

// TestPages_Cached checks that a page is rendered once a second.
func TestPages_Cached(t *testing.T) {
	w := newFakeService(t)
	h := serve(w.config())
	first := get(t, h, "/")
	asked := w.queries.Load()
	for range 50 {
		if answer := get(t, h, "/?utm_source=x"); answer.Body.String() != first.Body.String() {
			t.Fatal("within the second the page changed")
		}
	}
	if again := w.queries.Load(); again != asked {
		t.Errorf("the service was asked %d times more", again-asked)
	}
	if asked > 400 {
		t.Errorf("the first page asked %d questions", asked)
	}
	w.book("USD").SourceQuotes[1].Sell = pages.MustDecimal(t, "59.05")
	w.now = w.now.Add(time.Second)
	mustContain(t, get(t, h, "/").Body.String(), "<strong>59.05</strong>")
	if cost := w.queries.Load() - asked; cost > 15 {
		t.Errorf("the next page asked %d questions", cost)
	}
}

// TestPages_Assets checks caching, and that compressed assets are the same with and without gzip.
func TestPages_Assets(t *testing.T) {
	var script bytes.Buffer
	writer := gzip.NewWriter(&script)
	code := strings.Repeat("let a = 1;", 200)
	_, err := writer.Write([]byte(code))
	must(t, errors.Join(err, writer.Close()))
	p, h := pages.New(newFakeService(t).config()), http.NewServeMux()
	p.Frame().AddAssets(fstest.MapFS{"big.js.gz": {Data: script.Bytes()}}, "big.js.gz")
	p.Register(h)
	js := p.Frame().Asset("big.js")
	css := regexp.MustCompile(`/assets/style[^"]+`).FindString(get(t, h, "/").Body.String())
	plain, packed := get(t, h, js, "Accept-Encoding", "gzip;q=0"), get(t, h, js, "Accept-Encoding", "br, gzip")
	if plain.Header().Get("Content-Encoding") != "" || packed.Header().Get("Content-Encoding") != "gzip" ||
		packed.Header().Get("Vary") != "Accept-Encoding" || packed.Header().Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("headers %v and %v", plain.Header(), packed.Header())
	}
	if plain.Body.String() != code || packed.Body.Len() > 200 {
		t.Errorf("%q and %q", plain.Body, packed.Body)
	}
	asset := get(t, h, css)
	if asset.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" || asset.Header().Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("the asset's headers: %v", asset.Header())
	}
	if code := get(t, h, "/assets/style.css").Code; code != http.StatusNotFound {
		t.Errorf("an asset without its hash: %d", code)
	}
	defer func() {
		if recover() == nil {
			t.Error("an asset that is not there has a path")
		}
	}()
	p.Frame().Asset("other.js")
}

// FuzzQuestion checks that the page of any query is valid HTML without injected text.
func FuzzQuestion(f *testing.F) {
	for _, seed := range []string{
		"currency=USD", "amount=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", "operation=buy&operation=sell", "days=99999999999999999999", "%zz", "amount=1,000.5;",
		"channel=branch&currency=EUR&days=365&amount=0.5", "amount=\xff\xfe", "currency=" + strings.Repeat("A", 300),
	} {
		f.Add(seed)
	}
	w := newFakeService(f)
	h := serve(w.config())
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{"/", "/en/institutions/colon"} {
			w.now = w.now.Add(time.Second)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
			r.URL.RawQuery, r.RemoteAddr = query, "192.0.2.1:0"
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, r)
			if answer.Code != http.StatusOK && answer.Code != http.StatusBadRequest {
				t.Fatalf("%s?%q: %d", path, query, answer.Code)
			}
			mustBeValid(t, path, answer)
		}
	})
}

// TestPages_ShortAddresses: /usd and /colon lead to the pages of a currency and an institution, in both languages.
func TestPages_ShortAddresses(t *testing.T) {
	h := serve(newFakeService(t).config())
	for path, want := range map[string]string{
		"/usd": "/?currency=USD", "/en/eur": "/en?currency=EUR", "/colon": "/institutions/colon", "/en/colon": "/en/institutions/colon",
		"/gone": "", "/USD": "", "/terms": "", "/nothing": "",
	} {
		if got := get(t, h, path).Header().Get("Location"); got != want {
			t.Errorf("%s leads to %q, want %q", path, got, want)
		}
	}
}

// TestPages_SlashAtTheEnd: some pages with a slash at the end lead to the page; other paths are not found.
func TestPages_SlashAtTheEnd(t *testing.T) {
	h := pages.New(newFakeService(t).config()).Frame().NotFoundHandler()
	for path, want := range map[string]string{"/en/": "/en", "/docs/": "/docs", "/nothing/": "", "/%5Cevil.example/": "", "//evil.example/": ""} {
		if got := get(t, h, path).Header().Get("Location"); got != want {
			t.Errorf("%s leads to %q, want %q", path, got, want)
		}
	}
}

// TestShare_Picture decodes the picture of the best rates. It is drawn once a minute, and only with a public URL.
func TestShare_Picture(t *testing.T) {
	w := newFakeService(t)
	config := w.config()
	h := serve(config)
	first := get(t, h, "/share/usd.png")
	picture, err := png.Decode(bytes.NewReader(first.Body.Bytes()))
	if err != nil || picture.Bounds().Dx() != 1200 || picture.Bounds().Dy() != 630 || first.Header().Get("Content-Type") != "image/png" {
		t.Fatalf("%v, %v", err, first.Header())
	}
	dark := 0 // pixels of the large numbers
	for x := range 1200 {
		for y := 230; y < 350; y++ {
			if r, _, _, _ := picture.At(x, y).RGBA(); r < 0x4000 {
				dark++
			}
		}
	}
	if dark < 5000 {
		t.Errorf("the numbers have %d pixels", dark)
	}
	asked := w.queries.Load()
	w.book("USD").SourceQuotes[1].Sell = pages.MustDecimal(t, "59.05")
	w.now = w.now.Add(59 * time.Second)
	if again := get(t, h, "/share/usd.png"); !bytes.Equal(again.Body.Bytes(), first.Body.Bytes()) || w.queries.Load() != asked {
		t.Error("it was drawn again within the minute")
	}
	w.now = w.now.Add(time.Second)
	if again := get(t, h, "/share/usd.png"); bytes.Equal(again.Body.Bytes(), first.Body.Bytes()) {
		t.Error("it is older than a minute")
	}
	w.err = &engine.Error{Code: engine.CodeDataUnavailable}
	config.PublicURL = ""
	private := serve(config)
	for path, want := range map[string]int{"/en/share/eur.png": 200, "/share/usd": 404, "/share/zzz.png": 404, "/embed/eur": 200, "/embed/zzz": 404} {
		if got := get(t, h, path).Code; got != want {
			t.Errorf("%s without data: %d, want %d", path, got, want)
		}
	}
	if got := get(t, private, "/share/usd.png").Code; got != http.StatusNotFound {
		t.Errorf("without a public URL: %d", got)
	}
}

// TestShare_NextCollection: without rates the page says when sources are read next, and which failed.
func TestShare_NextCollection(t *testing.T) {
	w := newFakeService(t)
	w.err = &engine.Error{Code: engine.CodeDataUnavailable, RetryAfter: time.Second}
	config := w.config()
	var next time.Time
	config.Collection = func() (time.Time, []string) { return next, []string{"colon-web"} }
	h := serve(config)
	for _, c := range []struct {
		next time.Time
		want string
	}{
		{w.now.Add(time.Hour), "La próxima consulta es a las 1:00\u00a0p.\u00a0m.<"},
		{w.now.Add(24 * time.Hour), "La próxima consulta es el 22 nov a las 12:00\u00a0p.\u00a0m.<"},
	} {
		next, w.now = c.next, w.now.Add(time.Second)
		mustContain(t, get(t, h, "/").Body.String(), c.want, "No se pudieron leer:</p><ul><li>Sitio web de Banco Colón</li>")
	}
}

func nodes(t testing.TB, text string) []*html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	must(t, err)
	var all []*html.Node
	for node := range root.Descendants() {
		if node.Type == html.ElementNode {
			all = append(all, node)
		}
	}
	return all
}

func attribute(node *html.Node, key string) (string, bool) {
	for _, a := range node.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

// problemsOf checks the HTML of a page. That nothing is loaded from other sites is ensured by its policy; labels, names
// and roles are checked in a browser (make pages-test).
func problemsOf(all []*html.Node, language string) []string {
	var problems []string
	report := func(what ...string) { problems = append(problems, strings.Join(what, " ")) }
	count, ids := map[string]int{}, map[string]bool{}
	for _, node := range all {
		count[node.Data]++
		if id, ok := attribute(node, "id"); ok {
			if ids[id] {
				report("the id", id, "stands twice")
			}
			ids[id] = true
		}
		if source, _ := attribute(node, "src"); node.Data == "script" && (source == "" || node.FirstChild != nil) {
			report("an inline script")
		}
		for _, a := range node.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				report(node.Data, "has the inline attribute", a.Key)
			}
			if strings.Contains(a.Val, "ZgotmplZ") || strings.HasPrefix(strings.ToLower(strings.TrimSpace(a.Val)), "javascript:") {
				report(node.Data, "has a dangerous", a.Key, a.Val)
			}
		}
	}
	for element, want := range map[string]int{"h1": 1, "main": 1, "title": 1, "style": 0, "iframe": 0, "header": 1, "footer": 1} {
		if count[element] != want && !(want == 1 && count["base"] == 1 && (element == "header" || element == "footer")) { // a card has no frame
			report("there are not as many as there should be of", element)
		}
	}
	if got, _ := attribute(all[0], "lang"); got != language {
		report("the language is", got)
	}
	return problems
}

// mustBeValid checks an answer if it is a page.
func mustBeValid(t *testing.T, path string, answer *httptest.ResponseRecorder) {
	t.Helper()
	if !strings.HasPrefix(answer.Header().Get("Content-Type"), "text/html") {
		return
	}
	language := "es"
	if strings.HasPrefix(path, "/en") {
		language = "en"
	}
	for _, problem := range problemsOf(nodes(t, answer.Body.String()), language) {
		t.Errorf("%s: %s", path, problem)
	}
}

// TestPages_ControlValid checks that broken pages are found.
func TestPages_ControlValid(t *testing.T) {
	bad := nodes(t, `<html lang="xx"><body onload="x"><h1>a</h1><h1>b</h1><p id="i"></p><p id="i" style="x"></p><script>1</script><a href="javascript:x"></a>`)
	got := strings.Join(problemsOf(bad, "es"), "\n")
	mustContain(t, got, "inline attribute onload", "inline attribute style", "id i stands twice", "of h1", "language is xx", "an inline script", "dangerous href")
}

// TestPages_LinksLead checks that internal links and their fragments exist, in the same language.
func TestPages_LinksLead(t *testing.T) {
	w := newFakeService(t)
	mux := http.NewServeMux()
	pages.New(w.config()).Register(mux)
	data.Register(mux, data.Config{
		Service: w, Catalogue: w.catalogue, Clock: func() time.Time { return w.now }, Admit: func(*http.Request) (time.Duration, bool) { return 0, true },
	})
	h := http.Handler(mux)
	ids := map[string]map[string]bool{}
	queue, seen := []string{"/", "/en"}, map[string]bool{}
	for len(queue) > 0 && len(seen) < 500 {
		at := queue[0]
		queue = queue[1:]
		if seen[at] {
			continue
		}
		seen[at], w.now = true, w.now.Add(time.Second) // because of the limits
		answer := get(t, h, at)
		if answer.Code != http.StatusOK {
			t.Errorf("%s: %d", at, answer.Code)
			continue
		}
		if !strings.HasPrefix(answer.Header().Get("Content-Type"), "text/html") {
			continue
		}
		mustBeValid(t, at, answer)
		ids[at] = map[string]bool{}
		all := nodes(t, answer.Body.String())
		for _, node := range all {
			id, _ := attribute(node, "id")
			ids[at][id] = true
		}
		for _, node := range all {
			target, _ := attribute(node, "href")
			to, err := url.Parse(target)
			if err != nil {
				t.Errorf("%s: %q: %v", at, target, err)
				continue
			}
			if node.Data != "a" || to.Host != "" || strings.Contains(to.Path, "/docs") || strings.Contains(to.Path, "/account") {
				continue
			}
			_, other := attribute(node, "hreflang")
			if english := strings.HasPrefix(to.Path, "/en"); to.Path != "" && !strings.HasPrefix(to.Path, "/data/") && !strings.HasPrefix(to.Path, "/feeds/") && english != strings.HasPrefix(at, "/en") && !other {
				t.Errorf("%s: %s leads to the other language", at, target)
			}
			fragment := to.Fragment
			if to.Fragment = ""; to.String() == "" {
				if !ids[at][fragment] {
					t.Errorf("%s: nothing is called %s", at, fragment)
				}
				continue
			}
			queue = append(queue, to.String())
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d pages were found: %v", len(seen), seen)
	}
}

// updateFlag is set by make golden.
var updateFlag = flag.Bool("update", false, "rewrite the golden files")

// TestGolden_Pages compares every page in both languages with its golden file and checks its HTML. Hashes of assets
// are left out.
func TestGolden_Pages(t *testing.T) {
	hash := regexp.MustCompile(`\.[0-9a-f]{16}\.`)
	w := newFakeService(t)
	h := serve(w.config())
	for _, path := range append(inBothLanguages(publicPaths()), "/institutions/gone", "/en/institutions/%3Cscript%3E", "/robots.txt",
		"/embed/usd", "/en/embed/htg", "/manifest.webmanifest") {
		name := strings.Trim(regexp.MustCompile(`[^a-zA-Z0-9,.]+`).ReplaceAllString(path, "-"), "-")
		if name == "" {
			name = "home"
		}
		t.Run(name, func(t *testing.T) {
			answer := get(t, h, path)
			got := fmt.Sprintf("%d\n%s\n\n%s", answer.Code, headerLines(answer.Header()), lines(hash.ReplaceAllString(answer.Body.String(), ".hash.")))
			file := filepath.Join("testdata", "golden", name+".txt")
			if *updateFlag {
				must(t, os.WriteFile(file, []byte(got), 0o600))
			}
			if want, err := os.ReadFile(file); err != nil || got != string(want) {
				t.Errorf("%s differs (%v); make golden rewrites it. It is\n%s", file, err, got)
			}
			mustBeValid(t, path, answer)
		})
	}
}

// lines breaks a page into lines between its tags.
func lines(text string) string {
	if !strings.HasPrefix(text, "<!doctype html>") {
		return text
	}
	return strings.ReplaceAll(text, "><", ">\n<")
}

func headerLines(header map[string][]string) string {
	var all []string
	for name, values := range header {
		if name == "Etag" {
			values = []string{`W/"tag"`}
		}
		all = append(all, name+": "+strings.Join(values, ", "))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustContain(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// TestExternal: only addresses of the web become links; all are escaped.
func TestExternal(t *testing.T) {
	for address, want := range map[string]string{
		"javascript:alert(1)": "a&lt;b", "": "a&lt;b",
		`https://a.example/?a=1&b="`: `<a href="https://a.example/?a=1&amp;b=&#34;" rel="noopener nofollow external">a&lt;b</a>`,
	} {
		var text strings.Builder
		if err := pages.External(address, "a<b").Render(&text); err != nil || text.String() != want {
			t.Errorf("%q: %s, %v", address, text.String(), err)
		}
	}
}

// fakeService is an engine.Service with real currency states and a clock.
type fakeService struct {
	catalogue *engine.Catalogue
	states    map[string]*engine.SavedCurrency
	now       time.Time
	err       error        // of every query that needs rates
	queries   atomic.Int64 // number of queries
}

// newFakeService has every kind of rate: ties, one side, channels, expired, manual, reference, and ten days of
// history.
func newFakeService(t testing.TB) *fakeService {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "catalogue.json"))
	must(t, err)
	defer file.Close()
	catalogue, err := new(engine.Catalogue).Extend(file, "catalogue.json")
	must(t, err)
	w := &fakeService{catalogue: catalogue, states: map[string]*engine.SavedCurrency{}, now: pages.Noon()}
	offer := func(currency, institution string, channel engine.Channel, kind engine.Kind, buy, sell, source string, checked time.Duration) *engine.SourceQuote {
		book := w.book(currency)
		book.SourceQuotes = append(book.SourceQuotes, engine.SourceQuote{
			Key: engine.QuoteKey{Institution: institution, Channel: channel, Kind: kind}, SourceID: source,
			Buy: pages.MustDecimal(t, buy), Sell: pages.MustDecimal(t, sell), CollectedAt: pages.Noon().Add(-50 * time.Hour), LastCheckedAt: pages.Noon().Add(-checked),
			ExpiresAt: pages.Noon().Add(26*time.Hour - checked), Priority: engine.PriorityDefault,
		})
		return &book.SourceQuotes[len(book.SourceQuotes)-1]
	}
	offer("USD", "bcrd", engine.Unspecified, engine.Reference, "58.9580", "59.3080", "bcrd-web", 4*time.Hour).EffectiveDate = engine.DateOf(pages.Noon()).AddDays(-1)
	offer("USD", "colon", engine.Branch, engine.Commercial, "58.10", "59.60", "colon-web", 2*time.Hour)
	offer("USD", "colon", engine.Digital, engine.Commercial, "58.30", "59.3", "colon-web", 2*time.Hour)
	offer("USD", "duarte", engine.Unspecified, engine.Commercial, "58.40", "59.30", "colon-web", 30*time.Hour) // expired
	one := offer("USD", "espaillat", engine.Cash, engine.Commercial, "58.50", "", "list", 61*time.Minute)
	one.UpstreamSource, one.CollectedAt = "InfoEjemplo", pages.Noon().AddDate(0, 0, -9)
	offer("EUR", "colon", engine.Unspecified, engine.Commercial, "66.10", "70.123456", "colon-web", 30*time.Second)
	typed := offer("EUR", "duarte", engine.Unspecified, engine.Commercial, "67", "70.123456", "manual", 5*time.Minute)
	typed.Manual = true
	for back := 9; back >= 0; back-- {
		w.addDay(engine.DateOf(pages.Noon()).AddDays(-back))
	}
	return w
}

func (w *fakeService) book(currency string) *engine.SavedCurrency {
	if w.states[currency] == nil {
		w.states[currency] = &engine.SavedCurrency{Currency: currency}
	}
	return w.states[currency]
}

func (w *fakeService) addDay(day engine.Date) {
	for currency, book := range w.states {
		for i := range book.SourceQuotes {
			o := &book.SourceQuotes[i]
			book.History = append(book.History, engine.HistoryEntry{
				Date: day, InstitutionID: o.Key.Institution, Currency: currency, Channel: o.Key.Channel, Kind: o.Key.Kind,
				Buy: o.Buy, Sell: o.Sell, SourceID: o.SourceID, DatePrecision: engine.PrecisionUnknown, ObservedAt: day.Start().Add(12 * time.Hour),
			})
		}
	}
}

func (w *fakeService) market() *engine.MarketView {
	w.queries.Add(1)
	var boards []*engine.CurrencySnapshot
	for _, state := range w.states {
		boards = append(boards, engine.RestoreCurrencyState(*state, w.catalogue, engine.DefaultRules()).Snapshot())
	}
	return engine.NewMarketView(w.catalogue, boards, w.now)
}

func (w *fakeService) Currencies() (*engine.Page[engine.CurrencyItem], error) {
	return w.market().Currencies(), nil
}

func (w *fakeService) Institutions(q engine.InstitutionsQuery) (*engine.Page[engine.InstitutionItem], error) {
	return w.market().Institutions(q), nil
}

func (w *fakeService) Institution(id string) (*engine.InstitutionDetail, error) {
	return w.market().Institution(id)
}

func (w *fakeService) Rates(q engine.RatesQuery) (*engine.Page[*engine.Rate], error) {
	return w.market().Rates(q), w.err
}

func (w *fakeService) Ranking(q engine.RankingQuery) (*engine.Page[*engine.Rate], error) {
	return w.market().Ranking(q), w.err
}

func (w *fakeService) History(q engine.HistoryQuery) (*engine.Page[engine.HistoryEntry], error) {
	if q.Limit > engine.LimitMax {
		panic("a page of history is asked for that is longer than any answer")
	}
	return w.market().History(q), w.err
}

func (w *fakeService) config() pages.Config {
	return pages.Config{
		Service: w, Catalogue: w.catalogue, Clock: func() time.Time { return w.now }, PublicURL: "https://tasas.example.do",
		PerMinute: 1_000_000,
	}
}

func serve(c pages.Config) http.Handler {
	mux := http.NewServeMux()
	pages.New(c).Register(mux)
	return mux
}

// publicPaths are Spanish pages with some queries.
func publicPaths() []string {
	return []string{
		"/", "/?operation=sell", "/?amount=1,250.50&currency=EUR&days=7", "/?channel=digital", "/?currency=HTG", "/?currency=usd&amount=1,5&channel=x&days=8&operation=z",
		"/institutions", "/institutions/colon", "/institutions/colon?currency=EUR&days=365", "/institutions/duarte", "/institutions/bcrd", "/terms",
	}
}

func inBothLanguages(paths []string) []string {
	all := slices.Clone(paths)
	for _, path := range paths {
		all = append(all, strings.TrimSuffix(strings.Replace("/en"+path, "/en/?", "/en?", 1), "/"))
	}
	return all
}
