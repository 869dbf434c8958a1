package core

import (
	"net/http"
	"testing"
)

// TestSite_Q8: paths match exactly, and nothing is sent on to another path.
func TestSite_Q8(t *testing.T) {
	mux := http.NewServeMux()
	s := &site{func() (*http.ServeMux, http.Handler) { return mux, http.NotFoundHandler() }}
	page := func(http.ResponseWriter, *http.Request) {}
	for _, pattern := range []string{"GET /{$}", "GET /institutions/{id}", "POST /account/codes", "GET /openapi.json"} {
		mux.HandleFunc(pattern, page)
	}
	for path, want := range map[string]bool{
		"/": true, "/institutions/bhd": true, "/account/codes": true, "/openapi.json": true, "/institutions/b%20d": true,
		"//": false, "/institutions": false, "/institutions/": false, "/institutions/bhd/": false, "/institutions/a/../b": false,
		"/OpenAPI.json": false, "/openapi.json/": false, "/%zz": false, "/openapi.jso%6E": false, "/account/%63odes": false, "*": false, "": false, "/nothing": false,
	} {
		if got := s.Has(path, "*/*"); got != want {
			t.Errorf("%q: %v, want %v", path, got, want)
		}
		if !s.Has(path, "text/html,application/xhtml+xml") {
			t.Errorf("%q: a browser gets no page", path)
		}
	}
}
