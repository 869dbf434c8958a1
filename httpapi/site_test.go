package httpapi

import (
	"bufio"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// fakeSite has a page that notes the questions, and others.
type fakeSite struct {
	seen    []string
	overTLS bool // the newest request
}

func (f *fakeSite) Has(path, accept string) bool {
	return accept == "text/html" || path == "/" || path == "/long" || path == "/panic" || path == "/odd" || path == "/shared" || path == "/v1/page"
}

func (f *fakeSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.overTLS = r.TLS != nil
	body := string(must(io.ReadAll(r.Body)))
	f.seen = append(f.seen, strings.Join([]string{r.Method, r.URL.String(), r.Host, r.RemoteAddr, r.Header.Get("Cookie"), body}, " "))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Add("Set-Cookie", "a=1")
	w.Header().Add("Set-Cookie", "b=2")
	w.Header().Set("X-Seen-Id", r.Header.Get(headerRequestID))
	text := "<p>hola</p>"
	switch r.URL.Path {
	case "/panic":
		panic("planted")
	case "/long":
		text = strings.Repeat("largo ", 300)
	case "/shared":
		w.(interface{ SetBody(body []byte) }).SetBody([]byte("shared"))
		return
	case "/odd":
		w.WriteHeader(http.StatusTeapot) // a status of no other answer
	case "/":
		w.WriteHeader(http.StatusAccepted)
	}
	must(io.WriteString(w, text))
}

// TestSite_HTTPS: X-Forwarded-Proto counts only from a trusted proxy.
func TestSite_HTTPS(t *testing.T) {
	for _, trusted := range []bool{true, false} {
		site := &fakeSite{}
		s := serve(t, func(c *Config) {
			if c.Site = site; trusted {
				c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			}
		})
		conn, wire := s.dial(t)
		for _, line := range []string{"X-Forwarded-Proto: https\r\n", "X-Forwarded-Proto: http\r\n", ""} {
			write(t, conn, "GET / HTTP/1.1\r\nHost: a\r\n"+line+"\r\n")
			parseAnswer(t, wire, "GET")
			if want := trusted && strings.Contains(line, "https"); site.overTLS != want {
				t.Errorf("trusted %t, %q: over TLS %t", trusted, line, site.overTLS)
			}
		}
	}
}

// TestSite: what no operation has the site answers, in memory of its own, under the server's request id; unknown
// paths stay 404 (decision Q7).
func TestSite(t *testing.T) {
	site := &fakeSite{}
	g := newFixtureWithLimits(t, func(c *Config) { c.Site = site })
	const html, from = "text/html; charset=utf-8", " api.example.do 192.0.2.7:0 "
	for _, c := range []struct {
		exchange
		status int
		kind   string
		seen   string
	}{
		{exchange{method: "GET", target: "/?a=b%20c", lines: []string{"Cookie: x=y"}}, 202, html, "GET /?a=b%20c" + from + "x=y "},
		{exchange{method: "HEAD", target: "/"}, 202, html, "HEAD /" + from + " "},
		{exchange{method: "POST", target: "/", body: "email=a"}, 202, html, "POST /" + from + " email=a"},
		{exchange{method: "GET", target: "/long", lines: []string{"Accept-Encoding: gzip"}}, 200, html, "GET /long" + from + " "},
		{exchange{method: "GET", target: "/shared"}, 200, html, "GET /shared" + from + " "},
		{exchange{method: "GET", target: "/nothing"}, 404, contentTypeJSON, ""},
		{exchange{method: "GET", target: "/v1/page"}, 404, contentTypeJSON, ""},
		{exchange{method: "GET", target: "//"}, 404, contentTypeJSON, ""},
		{exchange{method: "GET", target: "/panic"}, 500, contentTypeJSON, "GET /panic" + from + " "},
		{exchange{method: "GET", target: "/v1/currencies"}, 200, contentTypeJSON, ""},
	} {
		site.seen = nil
		a := g.send(t, c.exchange)
		if a.status != c.status || a.header.Get("Content-Type") != c.kind || strings.Join(site.seen, "|") != c.seen {
			t.Errorf("%s %s: %d %v, the site saw %q; want %+v", c.method, c.target, a.status, a.header, site.seen, c)
		}
		if a.header.Get("Content-Encoding") != "" {
			t.Errorf("%s is compressed", c.target)
		}
		if c.target == "/shared" && string(a.body) != "shared" {
			t.Errorf("the shared body is %q", a.body)
		}
		if c.status == 202 && (a.header.Get("X-Seen-Id") != a.header.Get(headerRequestID) || len(a.header.Values("Set-Cookie")) != 2) {
			t.Errorf("%s: headers %v", c.target, a.header)
		}
		if a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get(headerRequestID) == "" {
			t.Errorf("%s: headers %v", c.target, a.header)
		}
	}
	pending := keysRequiredIn(5 * 24 * time.Hour) // pages say the end of anonymous access too (decision K7)
	g.admitter.transition = pending
	for _, problem := range deprecationProblems(g.get(t, "/"), &pending) {
		t.Error(problem)
	}
}

// TestSite_HeaderOrder: the headers of a page come in the same order each time.
func TestSite_HeaderOrder(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Site, c.RequestID = &fakeSite{}, func() RequestID { return RequestID{'1'} } })
	first := ""
	for range 50 {
		var ctx fasthttp.RequestCtx
		ok(t, ctx.Request.Header.Read(bufio.NewReader(strings.NewReader(request("/")))))
		f.server.serve(&ctx)
		if got := ctx.Response.Header.String(); first == "" {
			first = got
		} else if got != first {
			t.Fatalf("%s\nthen\n%s", first, got)
		}
	}
}
