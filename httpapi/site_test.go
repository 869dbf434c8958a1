package httpapi

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// fakeSite has a page that says what it was asked, and others.
type fakeSite struct{ seen []string }

func (f *fakeSite) Has(path string) bool {
	return path == "/" || path == "/long" || path == "/packed" || path == "/panic" || path == "/v1/page"
}

// ServeHTTP is http.Handler.
func (f *fakeSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	f.seen = append(f.seen, strings.Join([]string{r.Method, r.URL.String(), r.Host, r.RemoteAddr, r.Header.Get("Cookie"), string(body)}, " "))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Add("Set-Cookie", "a=1")
	w.Header().Add("Set-Cookie", "b=2")
	w.Header().Set("X-Seen-Id", r.Header.Get(headerRequestID))
	text := "<p>hola</p>"
	switch r.URL.Path {
	case "/panic":
		panic("planted")
	case "/packed":
		w.Header().Set("Content-Encoding", "gzip")
		fallthrough
	case "/long":
		text = strings.Repeat("largo ", 300)
	case "/":
		w.WriteHeader(http.StatusAccepted)
	}
	if _, err := io.WriteString(w, text); err != nil {
		panic(err)
	}
}

// TestSite: what no operation has the site answers, in memory of its own, under the server's request id; unknown paths stay 404 (Q7).
func TestSite(t *testing.T) {
	site := &fakeSite{}
	g := newGated(t, func(c *Config) { c.Site = site })
	for _, c := range []struct {
		exchange
		status int
		kind   string
		seen   string
		packed bool
	}{
		{exchange{method: "GET", target: "/?a=b%20c", lines: []string{"Cookie: x=y"}}, 202, "text/html; charset=utf-8", "GET /?a=b%20c api.example.do 192.0.2.7:0 x=y ", false},
		{exchange{method: "HEAD", target: "/"}, 202, "text/html; charset=utf-8", "HEAD / api.example.do 192.0.2.7:0  ", false},
		{exchange{method: "POST", target: "/", lines: []string{"Content-Type: application/x-www-form-urlencoded"}, body: "email=a"}, 202, "text/html; charset=utf-8", "POST / api.example.do 192.0.2.7:0  email=a", false},
		{exchange{method: "GET", target: "/long", lines: []string{"Accept-Encoding: gzip"}}, 200, "text/html; charset=utf-8", "GET /long api.example.do 192.0.2.7:0  ", true},
		{exchange{method: "GET", target: "/long"}, 200, "text/html; charset=utf-8", "GET /long api.example.do 192.0.2.7:0  ", false},
		{exchange{method: "GET", target: "/nothing"}, 404, contentTypeJSON, "", false},
		{exchange{method: "GET", target: "/v1/page"}, 404, contentTypeJSON, "", false},
		{exchange{method: "GET", target: "//"}, 404, contentTypeJSON, "", false},
		{exchange{method: "GET", target: "/panic"}, 500, contentTypeJSON, "GET /panic api.example.do 192.0.2.7:0  ", false},
		{exchange{method: "GET", target: "/v1/currencies"}, 200, contentTypeJSON, "", false},
	} {
		site.seen = nil
		c.peer = "192.0.2.7"
		a := g.send(t, c.exchange)
		if a.status != c.status || a.header.Get("Content-Type") != c.kind || strings.Join(site.seen, "|") != c.seen {
			t.Errorf("%s %s: %d %s, the site saw %q, want %d %s %q", c.method, c.target, a.status, a.header.Get("Content-Type"), site.seen, c.status, c.kind, c.seen)
		}
		if packed := a.header.Get("Content-Encoding") == "gzip"; packed != c.packed {
			t.Errorf("%s: packed %v", c.target, packed)
		}
		if c.status == 202 && (a.header.Get("X-Seen-Id") != a.header.Get(headerRequestID) || len(a.header.Values("Set-Cookie")) != 2) {
			t.Errorf("%s: headers %v", c.target, a.header)
		}
		if a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get(headerRequestID) == "" {
			t.Errorf("%s: headers %v", c.target, a.header)
		}
	}
}

// TestSite_K7: pages say the end of anonymous access too.
func TestSite_K7(t *testing.T) {
	g := newGated(t, func(c *Config) { c.Site = &fakeSite{} })
	g.gate.transition = announced(5 * 24 * time.Hour)
	a := g.send(t, exchange{method: "GET", target: "/"})
	if a.header.Get("Sunset") == "" || a.header.Get("Deprecation") == "" || a.header.Get("Link") == "" {
		t.Errorf("headers %v", a.header)
	}
}
