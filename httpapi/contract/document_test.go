package contract

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func testNow() time.Time { return time.Date(2026, time.January, 15, 12, 0, 0, 0, time.UTC) }

// testConfig is that of a node with the default quotas, which has announced nothing.
func testConfig(publicURL string) Config {
	return Config{
		PublicURL: publicURL, Limits: Limits{On: true, Day: 1000, Minute: 60}, KeysRequired: func() time.Time { return time.Time{} },
		Clock: testNow, Admit: func(*http.Request) (time.Duration, bool) { return 0, true },
	}
}

// TestDocuments_ThisNode: the documents say what holds on this node now: limits, and from when keys are required.
func TestDocuments_ThisNode(t *testing.T) {
	now, required := testNow(), testNow().Add(24*time.Hour)
	config := testConfig("")
	config.Limits, config.KeysRequired, config.Clock = Limits{On: true, Day: 25_000, Minute: 500}, func() time.Time { return required }, func() time.Time { return now }
	mux := http.NewServeMux()
	Register(mux, config)
	has := func(parts ...string) {
		t.Helper()
		for _, path := range []string{"/openapi.json", "/openapi.yaml"} {
			for _, part := range parts {
				if text := ask(mux, "GET", path).Body.String(); !strings.Contains(text, part) {
					t.Errorf("%s does not say %q", path, part)
				}
			}
		}
	}
	has("No key is needed until 2026-01-16T12:00:00Z", "25,000 requests a day", "and 500 in any 60 seconds")
	before := ask(mux, "GET", "/llms.txt")
	if text := before.Body.String(); !strings.Contains(text, "no key needed until 2026-01-16") || !strings.Contains(text, "25,000 requests a day and 500 in") {
		t.Error(text)
	}
	now = required
	has("Every request needs a key")
	if after := ask(mux, "GET", "/llms.txt"); !strings.Contains(after.Body.String(), "every request needs a key") || after.Header().Get("ETag") == before.Header().Get("ETag") {
		t.Error("the page for language models did not change")
	}
	config.Limits.On, mux = false, http.NewServeMux()
	Register(mux, config)
	has("This node has no limits")
}

func served(publicURL string) *http.ServeMux {
	mux := http.NewServeMux()
	Register(mux, testConfig(publicURL))
	return mux
}

func ask(mux *http.ServeMux, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

func paths() map[string]string {
	return map[string]string{
		"/openapi.json": "application/json", "/openapi.yaml": "application/yaml",
		"/llms.txt":                "text/plain; charset=utf-8",
		"/.well-known/api-catalog": `application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"`,
	}
}

// TestDocuments_Limit: a client at its limit gets an API error, and a document is compressed once.
func TestDocuments_Limit(t *testing.T) {
	mux := http.NewServeMux()
	admitted := 2
	config := testConfig("")
	config.Admit = func(*http.Request) (time.Duration, bool) { admitted--; return 1500 * time.Millisecond, admitted >= 0 }
	Register(mux, config)
	first, second := ask(mux, "GET", "/openapi.json", "Accept-Encoding", "gzip"), ask(mux, "GET", "/openapi.json")
	reader, err := gzip.NewReader(first.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(reader); err != nil || string(text) != second.Body.String() || first.Header().Get("Vary") != "Accept-Encoding" {
		t.Errorf("%v, %d bytes, %v", err, len(text), first.Header())
	}
	third := ask(mux, "GET", "/llms.txt")
	if third.Code != http.StatusTooManyRequests || third.Header().Get("Retry-After") != "2" || !strings.Contains(third.Body.String(), `"code":"rate_limited"`) {
		t.Errorf("beyond the limit: %d %v %s", third.Code, third.Header(), third.Body)
	}
}

// TestDocuments checks path, type, caching, CORS and links of each document.
func TestDocuments(t *testing.T) {
	mux := served("")
	links := []string{
		`</openapi.json>; rel="service-desc"; type="application/json"`, `</docs>; rel="service-doc"; type="text/html"`,
		`</.well-known/api-catalog>; rel="api-catalog"`,
	}
	for path, mediaType := range paths() {
		get, head := ask(mux, "GET", path), ask(mux, "HEAD", path+"?x=1")
		for _, w := range []*httptest.ResponseRecorder{get, head} {
			h := w.Header()
			if w.Code != 200 || h.Get("Content-Type") != mediaType || h.Get("Cache-Control") != "public, max-age=3600" ||
				h.Get("Access-Control-Allow-Origin") != "*" || !strings.HasPrefix(h.Get("ETag"), `W/"`) || h.Get("Content-Security-Policy") == "" {
				t.Errorf("%s: %d %v", path, w.Code, h)
			}
			if !slices.Equal(h.Values("Link"), links) {
				t.Errorf("%s: %q", path, h.Values("Link"))
			}
		}
		if get.Body.Len() < 400 {
			t.Errorf("%s has %d bytes", path, get.Body.Len())
		}
	}
}

// TestDocuments_Conditional checks that a document is not sent again to a client that has it.
func TestDocuments_Conditional(t *testing.T) {
	mux := served("")
	tag := ask(mux, "GET", "/openapi.yaml").Header().Get("ETag")
	for value, want := range map[string]int{tag: 304, `W/"a"`: 200, "": 200} {
		w := ask(mux, "GET", "/openapi.yaml", "If-None-Match", value)
		if w.Code != want || (want == 304) != (w.Body.Len() == 0) || w.Header().Get("ETag") != tag || w.Header().Get("Cache-Control") == "" {
			t.Errorf("%q: %d, %d bytes, %v", value, w.Code, w.Body.Len(), w.Header())
		}
	}
	if w := ask(mux, "GET", "/openapi.yaml", "If-None-Match", `"a"`, "If-None-Match", tag); w.Code != 304 {
		t.Errorf("in two lines: %d", w.Code)
	}
}

// TestDocuments_Q5Q6 checks OPTIONS, and the error for other methods.
func TestDocuments_Q5Q6(t *testing.T) {
	mux := served("")
	for path := range paths() {
		w := ask(mux, "OPTIONS", path)
		if h := w.Header(); w.Code != 204 || h.Get("Allow") != "GET, HEAD, OPTIONS" || h.Get("Access-Control-Allow-Methods") != "GET, HEAD, OPTIONS" || w.Body.Len() > 0 {
			t.Errorf("%s: %d %v", path, w.Code, h)
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
			w := ask(mux, method, path, "X-Request-Id", "id7")
			want := `{"error":{"code":"method_not_allowed","message":"This document knows the methods GET, HEAD, OPTIONS.","requestId":"id7"}}`
			if h := w.Header(); w.Code != 405 || h.Get("Allow") != "GET, HEAD, OPTIONS" || h.Get("Cache-Control") != "no-store" || w.Body.String() != want {
				t.Errorf("%s %s: %d %v %s", method, path, w.Code, h, w.Body)
			}
		}
	}
	for _, path := range []string{"/openapi.json/", "/openapi", "/.well-known/api-catalog/x", "/.well-known"} {
		if w := ask(mux, "GET", path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestAddLinks(t *testing.T) {
	header := http.Header{"Link": {`</x>; rel="preload"`}}
	AddLinks(header)
	AddLinks(header)
	if got := header.Values("Link"); len(got) != 3 || got[0] != `</x>; rel="preload"` {
		t.Errorf("%q", got)
	}
}

// TestCatalog_RFC9727 checks the link set, with and without a public URL.
func TestCatalog_RFC9727(t *testing.T) {
	for _, base := range []string{"", "https://tasas.example"} {
		mux := served(base)
		var catalog struct {
			Linkset []map[string]json.RawMessage
		}
		if err := json.Unmarshal(ask(mux, "GET", "/.well-known/api-catalog").Body.Bytes(), &catalog); err != nil || len(catalog.Linkset) != 2 {
			t.Fatalf("%v: %+v", err, catalog)
		}
		var followed []string
		for _, entry := range catalog.Linkset {
			var anchor string
			if err := json.Unmarshal(entry["anchor"], &anchor); err != nil || !strings.HasPrefix(anchor, base+"/") {
				t.Errorf("anchor %q: %v", anchor, err)
			}
			delete(entry, "anchor")
			for relation, value := range entry {
				var targets []struct{ Href, Type string }
				if err := json.Unmarshal(value, &targets); err != nil || len(targets) == 0 {
					t.Errorf("%s: %v", relation, err)
				}
				for _, target := range targets {
					path, found := strings.CutPrefix(target.Href, base)
					if mediaType, ours := paths()[path]; !found || ours && !strings.HasPrefix(mediaType, target.Type) {
						t.Errorf("%s: %q of type %q, which has %q", relation, target.Href, target.Type, mediaType)
					}
					followed = append(followed, relation+" "+path)
				}
			}
		}
		slices.Sort(followed)
		want := []string{
			"item /v1", "service-desc /openapi.json", "service-desc /openapi.yaml", "service-doc /docs", "service-doc /llms.txt",
			"status /readyz",
		}
		if !slices.Equal(followed, want) {
			t.Errorf("%q", followed)
		}
	}
}

// TestModels checks the form of llmstxt.org (a title, a quotation, lists of links), and that all operations and
// documents are in it.
func TestModels(t *testing.T) {
	text := ask(served("https://tasas.example"), "GET", "/llms.txt").Body.String()
	lines := strings.Split(text, "\n")
	if !strings.HasPrefix(lines[0], "# ") || lines[1] != "" || !strings.HasPrefix(lines[2], "> ") || strings.Count(text, "\n# ") > 0 {
		t.Errorf("it begins with %q", lines[:3])
	}
	var document struct{ Paths map[string]any }
	if err := json.Unmarshal([]byte(jsonText), &document); err != nil {
		t.Fatal(err)
	}
	for path := range document.Paths {
		if strings.HasPrefix(path, "/v1/") && !strings.HasPrefix(path, "/v1/account/") && !strings.Contains(text, "GET "+path) {
			t.Errorf("%s is missing", path)
		}
	}
	for path := range paths() {
		if path != "/llms.txt" && !strings.Contains(text, "](https://tasas.example"+path+")") {
			t.Errorf("there is no link to %s", path)
		}
	}
}
