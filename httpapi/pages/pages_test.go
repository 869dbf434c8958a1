package pages_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tasard/tasard/engine"
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
	if err = errors.Join(err, writer.Close()); err != nil {
		t.Fatal(err)
	}
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
