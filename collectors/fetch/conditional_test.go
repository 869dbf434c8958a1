package fetch

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// edition is a page with validators.
type edition struct {
	body         string
	etag, since  string
	cache        string
	whole, saved int // answers with 200 and 304
}

func (e *edition) serve(out http.ResponseWriter, r *http.Request) {
	out.Header().Set("Content-Type", "text/html; charset=utf-8")
	for name, value := range map[string]string{"ETag": e.etag, "Last-Modified": e.since, "Cache-Control": e.cache} {
		if value != "" {
			out.Header().Set(name, value)
		}
	}
	same := e.etag != "" && r.Header.Get("If-None-Match") == e.etag || e.since != "" && r.Header.Get("If-Modified-Since") == e.since
	if same && r.Method == http.MethodGet {
		e.saved++
		out.WriteHeader(http.StatusNotModified)
		return
	}
	e.whole++
	_, _ = io.WriteString(out, e.body)
}

// TestConditional_Get: an unchanged page is not sent again; the document is the one from before with a new time.
func TestConditional_Get(t *testing.T) {
	const modified = "Fri, 31 Dec 1999 10:00:00 GMT"
	tests := []struct {
		name         string
		site         edition
		change       func(*source.Definition)
		whole, saved int // of three fetches
	}{
		{"an ETag", edition{body: "58.90", etag: `W/"a"`}, nil, 1, 2},
		{"a date", edition{body: "58.90", since: modified}, nil, 1, 2},
		{"both", edition{body: "58.90", etag: `"a"`, since: modified}, nil, 1, 2},
		{"neither", edition{body: "58.90"}, nil, 3, 0},
		{"not to be stored", edition{body: "58.90", etag: `"a"`, cache: "private, No-Store"}, nil, 3, 0},
		{"an ETag too large", edition{body: "58.90", etag: `"` + strings.Repeat("a", validatorBytesMax) + `"`}, nil, 3, 0},
		{"as large as may be", edition{body: strings.Repeat("a", rememberedBytesMax), etag: `"a"`}, nil, 1, 2},
		{"too large", edition{body: strings.Repeat("a", rememberedBytesMax+1), etag: `"a"`}, nil, 3, 0},
		{"POST", edition{body: "58.90", etag: `"a"`}, func(d *source.Definition) {
			d.Pages[0].Requests[0].Method, d.Pages[0].Requests[0].Form = "POST", map[string]string{}
		}, 3, 0},
	}
	for _, tt := range tests {
		caseInBubble(t, tt.name, func(t *testing.T, w *web) {
			w.site("example.do", tt.site.serve)
			d := freeGet("https://example.do/")
			if tt.change != nil {
				tt.change(d)
			}
			c := w.client()
			for range 3 {
				_ = pass(t.Context(), time.Hour)
				document := wantDocument(t, c, d, tt.site.body)
				if !document.FetchedAt.Equal(clock()) || document.URL != "https://example.do/" || document.ContentType != "text/html; charset=utf-8" {
					t.Errorf("got %s of %v, %s", document.URL, document.FetchedAt, document.ContentType)
				}
				clear(document.Body) // it belongs to the caller
			}
			if tt.site.whole != tt.whole || tt.site.saved != tt.saved {
				t.Errorf("%d times whole and %d times not modified, want %d and %d", tt.site.whole, tt.site.saved, tt.whole, tt.saved)
			}
		})
	}
}

// TestConditional_Changes: a new edition, another definition and the next day are asked for without conditions.
func TestConditional_Changes(t *testing.T) {
	inBubble(t, func(t *testing.T, w *web) {
		site := &edition{body: "58.90", etag: `"a"`}
		w.site("example.do", site.serve)
		c, d := w.client(), freeGet("https://example.do/")
		count := func(what string, whole, saved int) {
			t.Helper()
			if site.whole != whole || site.saved != saved {
				t.Errorf("%s: %d times whole and %d times not modified, want %d and %d", what, site.whole, site.saved, whole, saved)
			}
		}
		wantDocument(t, c, d, "58.90")
		wantDocument(t, c, d, "58.90")
		count("unchanged", 1, 1)
		site.body, site.etag = "59.10", `"b"`
		wantDocument(t, c, d, "59.10")
		count("a new edition", 2, 1)
		wantDocument(t, c, d, "59.10")
		count("the new edition again", 2, 2)
		other := *d
		wantDocument(t, c, &other, "59.10")
		count("another definition", 3, 2)
		_ = pass(t.Context(), rememberedMax)
		wantDocument(t, c, &other, "59.10")
		count("the next day", 4, 2)
	})
}

// TestConditional_Bounded: what was used longest ago is forgotten first, and the sum of bytes is right.
func TestConditional_Bounded(t *testing.T) {
	var m memory
	d := get("https://example.do/")
	keep := func(page int) {
		m.keep(pageKey{d.ID, page}, d, &answer{
			method: "GET", url: address(t, "https://example.do/"), header: http.Header{"Etag": {`"a"`}}, body: make([]byte, rememberedBytesMax),
		})
	}
	for page := range rememberedBytesAllMax/rememberedBytesMax + 8 {
		keep(page)
		if m.find(pageKey{d.ID, 0}, d, time.Time{}) == nil {
			t.Fatal("the page that is always used is forgotten")
		}
		keep(page) // again, in place of itself
	}
	sum := 0
	for _, k := range m.pages {
		sum += len(k.body)
	}
	if sum != m.bytes || sum != rememberedBytesAllMax {
		t.Errorf("%d bytes are kept, %d are counted, want %d", sum, m.bytes, rememberedBytesAllMax)
	}
}

// TestTLS_CAFile: a server that forgets its intermediate is believed with the file, and only by its own source.
func TestTLS_CAFile(t *testing.T) {
	inBubble(t, func(t *testing.T, w *web) {
		intermediate := newAuthority(t, "intermediate", w.authority)
		chain := intermediate.issue(t, "example.do")
		chain.Certificate = chain.Certificate[:1]
		w.siteWith("example.do", text("58.90"), chain)
		files := map[string][]byte{"good.pem": intermediate.pem(), "other.pem": newAuthority(t, "other", nil).pem(), "bad.pem": []byte("no PEM")}
		c := w.client(func(c *Config) {
			c.CA = func(name string) ([]byte, error) {
				text, ok := files[name]
				if !ok {
					return nil, errors.New("no such file")
				}
				return text, nil
			}
		})
		with := func(file string) *source.Definition {
			d := get("https://example.do/")
			d.CAFile = file
			return d
		}
		wantFailure(t, c, with(""), source.TLS, "unknown authority", "caFile")
		wantDocument(t, c, with("good.pem"), "58.90")
		wantFailure(t, c, with(""), source.TLS, "unknown authority")
		wantFailure(t, c, with("other.pem"), source.TLS, "unknown authority")
		wantFailure(t, c, with("bad.pem"), source.TLS, "bad.pem", "no certificate")
		wantFailure(t, c, with("missing.pem"), source.TLS, "missing.pem", "no such file")
		wantFailure(t, w.client(), with("good.pem"), source.TLS, "can't be read here")
		// The authorities of the others stay good beside the file.
		w.site("www.example.do", text("59.10"))
		d := with("good.pem")
		d.Pages[0].Requests[0].URL = "https://www.example.do/"
		wantDocument(t, c, d, "59.10")
	})
}

// TestTLS_Clock: certificates are judged by the client's clock.
func TestTLS_Clock(t *testing.T) {
	inBubble(t, func(t *testing.T, w *web) {
		w.siteWith("example.do", text("58.90"), w.authority.issue(t, "example.do", func(c *x509.Certificate) {
			c.NotAfter = clock().AddDate(0, 1, 0)
		}))
		wantDocument(t, w.client(), get("https://example.do/"), "58.90")
		later := w.client(func(c *Config) { c.Clock = func() time.Time { return clock().AddDate(0, 2, 0) } })
		wantFailure(t, later, get("https://example.do/"), source.TLS, "expired")
	})
}

// TestProxy_Chosen: a proxy is used when the Config says so; the certificate is the site's even so.
func TestProxy_Chosen(t *testing.T) {
	inBubble(t, func(t *testing.T, w *web) {
		w.site("example.do", text("58.90"))
		w.raw("proxy.example.com:3128", func(conn net.Conn) {
			if readHeader(conn) != nil {
				return
			}
			to, err := w.dial(t.Context(), "tcp", "example.do:443")
			if err != nil {
				return
			}
			defer to.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
			w.done.Go(func() { _, _ = io.Copy(to, conn); _ = to.Close() })
			_, _ = io.Copy(conn, to)
		})
		c := w.client(func(c *Config) {
			c.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse("http://proxy.example.com:3128") }
		})
		wantDocument(t, c, get("https://example.do/"), "58.90")
		if got := fmt.Sprint(w.dialed); got != "[proxy.example.com:3128 example.do:443]" {
			t.Errorf("dialed %s", got)
		}
	})
}

// TestFetch_Connections: none is left when a fetch has returned, whatever became of it.
func TestFetch_Connections(t *testing.T) {
	inBubble(t, func(t *testing.T, w *web) {
		w.site("example.do", text("58.90"))
		w.raw("bad.example.do:443", hangs)
		c := w.client()
		wantDocument(t, c, get("https://example.do/"), "58.90")
		wantFailure(t, c, get("https://bad.example.do/"), source.Timeout)
		if left := w.open.Load(); left != 0 {
			t.Errorf("%d connections are open", left)
		}
	})
}
