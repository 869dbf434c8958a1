package pages_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
