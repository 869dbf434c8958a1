package cmd

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestSite_Documents: a node answers the documents of the contract, pages and documents lead to them, each link once, and every address
// that a document names is answered.
func TestSite_Documents(t *testing.T) {
	t.Parallel()
	const public = "https://tasas.example"
	file := observationsFile(t, observation(1, "59", "60"))
	p := start(t, realNow, serveArgs(t.TempDir(), "--import", file, "--public-url", public)...).listening()
	p.await("imported")
	named := regexp.MustCompile(`https://tasas\.example(/[^\s"'<>)]*)`)
	for _, path := range []string{"/openapi.json", "/openapi.yaml", "/.well-known/api-catalog", "/postman.json", "/llms.txt", "/", "/docs"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			status, headers := p.ask(method, path)
			links := strings.Join(headers.Values("Link"), "\n")
			for _, relation := range []string{`</openapi.json>; rel="service-desc"`, `</docs>; rel="service-doc"`} {
				if status != http.StatusOK || strings.Count(links, relation) != 1 {
					t.Errorf("%s %s: %d, and %s is not once in %q", method, path, status, relation, links)
				}
			}
		}
		body := html.UnescapeString(p.mustGet(path))
		if !strings.Contains(body, public) {
			t.Errorf("%s does not name the public address", path)
		}
		for _, found := range named.FindAllStringSubmatch(body, -1) {
			if found[1] == "/v1" { // the name of the API in the catalog, no operation
				continue
			}
			if status, _ := p.ask(http.MethodGet, found[1]); status != http.StatusOK {
				t.Errorf("%s names %s, which answers %d", path, found[1], status)
			}
		}
	}
	if status, headers := p.ask(http.MethodPost, "/openapi.json"); status != http.StatusMethodNotAllowed || headers.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("POST /openapi.json: %d, Allow %q", status, headers.Get("Allow"))
	}
}
