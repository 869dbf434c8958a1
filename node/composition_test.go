package node_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/apitest"
	"github.com/tasard/tasard/node"
)

// TestOneComposition holds the harness against a node as serve opens it: each route is answered by both, in the same
// way, with the same headers, before and after keys were announced.
func TestOneComposition(t *testing.T) {
	now := time.Date(2026, 6, 30, 15, 0, 0, 0, time.UTC)
	rate := []engine.Refresh{{SourceID: "manual", ObservedAt: now, Observations: []engine.Observation{{InstitutionID: "popular", Currency: "USD", Buy: "58.10", Sell: "59.30"}}}}
	harness := apitest.Start(t, apitest.At(now))
	real, err := node.Open(t.Context(), node.Config{Dir: t.TempDir(), Clock: func() time.Time { return now }, Accounts: node.Accounts{Unlimited: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := real.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	<-real.Ready()
	harness.Observe(rate...)
	if _, err := real.System().Observe(rate); err != nil {
		t.Fatal(err)
	}
	for _, announced := range []bool{false, true} {
		if announced {
			at := now.Add(30 * 24 * time.Hour)
			harness.Announce(at)
			if _, err := real.System().Announce(at, "test"); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{
			"/", "/docs", "/openapi.json", "/openapi.yaml", "/llms.txt", "/robots.txt", "/account", "/institutions", "/data/latest.json", "/data/latest.csv", "/feeds/usd.atom", "/nothing", "/livez", "/readyz",
			"/v1/currencies", "/v1/institutions", "/v1/institutions/popular", "/v1/rates", "/v1/rates/best?currency=USD&operation=buy", "/v1/usage",
			"/v1/rates/history?currency=USD&institution=popular", "/v1/convert?currency=USD&operation=buy&amount=5", "/v1/nothing", "/v1/account",
		} {
			in, out := look(t, harness.Client, harness.URL+path), look(t, &http.Client{}, real.URL()+path)
			if in != out {
				t.Errorf("%s, announced: %v:\nthe harness says %s\na node says %s", path, announced, in, out)
			}
		}
	}
}

// TestNotFound_Page: a browser gets a page for unknown paths, in the language of the path; programs get JSON, as
// below /v1.
func TestNotFound_Page(t *testing.T) {
	harness := apitest.Start(t)
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, c := range []struct{ method, path, accept, want string }{
		{http.MethodGet, "/nope", browser, "Página no encontrada"}, {http.MethodGet, "/docs/nope", browser, "Página no encontrada"},
		{http.MethodGet, "/en/nope", browser, "Page not found"}, {http.MethodGet, "/a//b?x=1", browser, "Página no encontrada"},
		{http.MethodGet, "/nope", "*/*", `"code":"not_found"`}, {http.MethodGet, "/docs/nope", "", `"code":"not_found"`},
		{http.MethodPost, "/nope", browser, `"code":"not_found"`},
		{http.MethodGet, "/v1/nope", browser, `"code":"not_found"`}, {http.MethodGet, "/v1", browser, `"code":"not_found"`},
	} {
		request, err := http.NewRequestWithContext(t.Context(), c.method, harness.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", c.accept)
		res, err := harness.Client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || res.Body.Close() != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusNotFound || !strings.Contains(string(body), c.want) {
			t.Errorf("%s %s for %q: %d, want 404 and %s in\n%.300s", c.method, c.path, c.accept, res.StatusCode, c.want, body)
		}
	}
}

// look is how a path is answered: status, kind, and the names of the headers.
func look(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	client = &http.Client{Transport: client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Error(err)
	}
	text := res.Status + " " + res.Header.Get("Content-Type")
	for _, name := range []string{"Link", "Deprecation", "Sunset", "Cache-Control", "Vary", "Etag", "X-Ratelimit-Limit", "Retry-After", "Content-Security-Policy"} {
		if values := res.Header.Values(name); len(values) > 0 {
			text += ", " + name
			if name == "Link" || name == "Sunset" || name == "Cache-Control" {
				text += " " + strings.Join(values, " | ")
			}
		}
	}
	return text
}

// TestDocs_Example wants docs/embedding.md to show the example that is run.
func TestDocs_Example(t *testing.T) {
	page, err := os.ReadFile("../docs/embedding.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(example), "func Example() {\n")
	code, _, _ = strings.Cut(code, "\t// Output:")
	code = strings.TrimPrefix(strings.ReplaceAll("\n"+code, "\n\t", "\n"), "\n")
	if !strings.Contains(string(page), "```go\n"+code+"```\n") {
		t.Errorf("docs/embedding.md does not show\n%s", code)
	}
}
