package fetch

import (
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

func TestFetch_Document(t *testing.T) {
	inBubble(t, func(t *testing.T, w *testNetwork) {
		var sent *http.Request
		w.site("www.example.do", func(out http.ResponseWriter, r *http.Request) {
			sent = r
			out.Header().Set("Content-Type", "text/html; charset=windows-1252")
			out.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(out)
			_, _ = io.WriteString(packed, "<html>D\xf3lar</html>")
			_ = packed.Close()
		})
		d := getWithoutRobots("https://www.example.do/tasas?a=1")
		document := wantDocument(t, w.client(), d, "<html>D\xf3lar</html>")
		if document.URL != "https://www.example.do/tasas?a=1" || document.ContentType != "text/html; charset=windows-1252" ||
			!document.FetchedAt.Equal(clock()) {
			t.Errorf("got %s, %s, %v", document.URL, document.ContentType, document.FetchedAt)
		}
		want := map[string]string{
			"User-Agent": "tasard/1.0 (+https://github.com/tasard/tasard; ops@example.do)", "Accept-Encoding": "gzip",
			"Accept": "text/html,application/xhtml+xml,*/*;q=0.5", "Accept-Language": "es-DO,es;q=0.9",
		}
		if got := slices.Sorted(maps.Keys(sent.Header)); len(got) != len(want) {
			t.Errorf("sent the headers %q", got)
		}
		for name, value := range want {
			if got := sent.Header.Get(name); got != value {
				t.Errorf("sent %s: %q, want %q", name, got, value)
			}
		}
	})
}

func TestFetch_Statuses(t *testing.T) {
	const challenge = `<html><script src="/_Incapsula_Resource?SWJIYLWA=1"></script></html>`
	tests := []struct {
		statuses []int
		body     string
		kind     source.FailureKind
		tries    int
	}{
		{[]int{200, 204, 205}, "", source.Empty, 1},
		{[]int{304, 401}, "", source.HTTPStatus, 1}, // 304 was not asked for
		{[]int{403}, "", source.Blocked, 1},
		{[]int{429}, "", source.HTTPStatus, 3},
		{[]int{201, 206, 300, 400, 404, 408, 410, 501, 999}, "no", source.HTTPStatus, 1},
		{[]int{401, 403}, "log in", source.Blocked, 1},
		{[]int{500, 502, 503, 504}, "oh", source.HTTPStatus, 3},
		{[]int{400, 429}, challenge, source.Blocked, 1},
		{[]int{404}, strings.ToUpper(challenge), source.Blocked, 1},
		{[]int{503}, `<title>Just a moment...</title>`, source.Blocked, 1},
	}
	for _, tt := range tests {
		for _, status := range tt.statuses {
			caseInBubble(t, fmt.Sprintf("%d %.10s", status, tt.body), func(t *testing.T, w *testNetwork) {
				tries := 0
				w.site("example.do", func(out http.ResponseWriter, _ *http.Request) {
					tries++
					out.WriteHeader(status)
					_, _ = io.WriteString(out, tt.body)
				})
				detail := wantFailure(t, w.client(), getWithoutRobots("https://example.do/"), tt.kind, fmt.Sprint(status))
				if tries != tt.tries || tries > 1 && !strings.Contains(detail, "3 tries") {
					t.Errorf("%d tries, want %d: %q", tries, tt.tries, detail)
				}
			})
		}
	}
}

// TestFetch_Detail: what a server says can't make a failure long, or steer a terminal.
func TestFetch_Detail(t *testing.T) {
	inBubble(t, func(t *testing.T, w *testNetwork) {
		w.rawTLS("example.do", pours("HTTP/1.1 302 Found\r\nLocation: https://other.do/"+strings.Repeat("a", 50_000)+"\r\n\r\n", nil, 0))
		w.rawTLS("www.example.do", pours(strings.Repeat("\x07a", 20_000)+"\r\n\r\n", nil, 0))
		for host, kind := range map[string]source.FailureKind{"example.do": source.HTTPStatus, "www.example.do": source.Network} {
			detail := wantFailure(t, w.client(), getWithoutRobots("https://"+host+"/"), kind)
			if len(detail) > detailBytesMax+10 || strings.ContainsAny(detail, "\x1b\x07") {
				t.Errorf("%d bytes: %q", len(detail), detail)
			}
		}
	})
}

// TestFetch_Bodies: forms, JSON and the definition's own headers go out as written.
func TestFetch_Bodies(t *testing.T) {
	tests := []struct {
		name       string
		request    source.Request
		body, kind string
	}{
		{"a form", source.Request{Form: map[string]string{"json": `{"operacion":2}`, "a": "ñ"}},
			"a=%C3%B1&json=%7B%22operacion%22%3A2%7D", "application/x-www-form-urlencoded"},
		{"an empty form", source.Request{Form: map[string]string{}}, "", "application/x-www-form-urlencoded"},
		{"JSON", source.Request{JSON: `{"query":"{a}"}`}, `{"query":"{a}"}`, "application/json"},
		{"headers", source.Request{JSON: "{}", Headers: map[string]string{"X-Requested-With": "XMLHttpRequest"}}, "{}", "application/json"},
	}
	for _, tt := range tests {
		caseInBubble(t, tt.name, func(t *testing.T, w *testNetwork) {
			w.site("example.do", func(out http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				_, _ = fmt.Fprintf(out, "%s|%s|%s|%s|%s|%s", r.Method, body, r.Header.Get("Content-Type"),
					r.Header.Get("X-Requested-With"), r.Header.Get("Accept-Encoding"), r.UserAgent())
			})
			tt.request.Method, tt.request.URL = "POST", "https://example.do/"
			want := fmt.Sprintf("POST|%s|%s|%s|gzip|%s", tt.body, tt.kind, tt.request.Headers["X-Requested-With"], w.config().UserAgent)
			wantDocument(t, w.client(), definitionWithoutRobots(tt.request), want)
		})
	}
}

// TestFetch_Cookies: without all cookies of the first page the second answers with nothing; of a name that comes
// twice the last counts.
func TestFetch_Cookies(t *testing.T) {
	inBubble(t, func(t *testing.T, w *testNetwork) {
		w.site("www.example.gov.do", func(out http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/page":
				out.Header().Add("Set-Cookie", "wptem=; path=/")
				out.Header().Add("Set-Cookie", "wptem=real; path=/; secure")
				out.Header().Add("Set-Cookie", "session=1; path=/")
				out.Header().Add("Set-Cookie", "stray=1; domain=gov.do")
				_, _ = io.WriteString(out, "<html></html>")
			case "/rates":
				if got := r.Header.Get("Cookie"); got == "wptem=real; session=1" {
					_, _ = io.WriteString(out, "58.9582")
				}
			default:
				http.NotFound(out, r)
			}
		})
		primed := definitionOf(source.Request{Method: "GET", URL: "https://www.example.gov.do/page"},
			source.Request{Method: "POST", URL: "https://www.example.gov.do/rates", Form: map[string]string{}})
		c := w.client()
		wantDocument(t, c, primed, "58.9582")
		// No cookie outlives its fetch.
		wantFailure(t, c, definitionOf(primed.Pages[0].Requests[1]), source.Empty)
	})
}

func TestFetch_AddressFrom(t *testing.T) {
	tests := []struct {
		name, page string
		kind       source.FailureKind
		says       string
	}{
		{"relative", `<div id="t" data-url="/api/rates?x=1"></div>`, "", ""},
		{"absolute", `<div id="t" data-url="https://www.example.do/api/rates?x=1"></div>`, "", ""},
		{"another site", `<div id="t" data-url="https://evil.example.com/api/rates?x=1"></div>`, source.Layout, "another site"},
		{"without TLS", `<div id="t" data-url="http://www.example.do/api/rates?x=1"></div>`, source.Layout, "https to http"},
		{"not an address", `<div id="t" data-url="https://[::1"></div>`, source.Layout, "not an address"},
		{"missing", `<div id="other"></div>`, source.Layout, "#t"},
		{"an empty page", ``, source.Layout, "#t"},
	}
	for _, tt := range tests {
		caseInBubble(t, tt.name, func(t *testing.T, w *testNetwork) {
			w.site("www.example.do", func(out http.ResponseWriter, r *http.Request) {
				switch r.URL.RequestURI() {
				case "/":
					_, _ = io.WriteString(out, tt.page)
				case "/api/rates?x=1":
					_, _ = io.WriteString(out, r.Method)
				default:
					http.NotFound(out, r)
				}
			})
			d := definitionOf(source.Request{Method: "GET", URL: "https://www.example.do/"}, source.Request{
				Method: "POST", Form: map[string]string{"a": "b"}, AddressFrom: &source.AddressFrom{Selector: "#t", Attribute: "data-url"},
			})
			if tt.kind == "" {
				wantDocument(t, w.client(), d, "POST")
			} else {
				wantFailure(t, w.client(), d, tt.kind, tt.says)
			}
		})
	}
}

func TestFetch_Ended(t *testing.T) {
	inBubble(t, func(t *testing.T, w *testNetwork) {
		w.site("example.do", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := w.client().Fetch(ctx, get("https://example.do/"), 0)
			failed <- err
		}()
		synctest.Wait()
		began := clock()
		cancel()
		err := <-failed
		if failureKind(err) != source.Network || !errors.Is(err, context.Canceled) || clock().Sub(began) > 0 {
			t.Errorf("got %v after %v, want network at once, because of the context", err, clock().Sub(began))
		}
	})
}

// TestTLS_CAFile: a server that forgets its intermediate is believed with the file, and only by its own source.
func TestTLS_CAFile(t *testing.T) {
	inBubble(t, func(t *testing.T, w *testNetwork) {
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

func TestTLS_Clock(t *testing.T) {
	inBubble(t, func(t *testing.T, w *testNetwork) {
		w.siteWith("example.do", text("58.90"), w.authority.issue(t, "example.do", func(c *x509.Certificate) {
			c.NotAfter = clock().AddDate(0, 1, 0)
		}))
		wantDocument(t, w.client(), get("https://example.do/"), "58.90")
		later := w.client(func(c *Config) { c.Clock = func() time.Time { return clock().AddDate(0, 2, 0) } })
		wantFailure(t, later, get("https://example.do/"), source.TLS, "expired")
	})
}

// reachClient is a client whose connections all go to one server. dialed has the addresses that it asked for.
func reachClient(t *testing.T, trusted *httptest.Server, at string) (c *Client, dialed func() []string) {
	t.Helper()
	var mu sync.Mutex
	var addresses []string
	c = New(Config{
		Clock: clock, Pause: -1, Roots: trusted.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			mu.Lock()
			addresses = append(addresses, address)
			mu.Unlock()
			return new(net.Dialer).DialContext(ctx, network, at)
		},
	})
	return c, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(addresses)
	}
}

func echoUserAgent(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	_, _ = io.WriteString(w, r.UserAgent()+"|"+r.Header.Get("Accept-Language"))
}

// The requests of a source with a proxy go through it, and only they; the certificate of the site counts.
func TestProxy(t *testing.T) {
	site := httptest.NewTLSServer(http.HandlerFunc(echoUserAgent))
	defer site.Close()
	var copying sync.WaitGroup
	defer copying.Wait()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != "example.com:443" {
			http.Error(w, "only example.com", http.StatusForbidden)
			return
		}
		far, err := net.Dial("tcp", site.Listener.Addr().String())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		near, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n")
		copying.Go(func() { _, _ = io.Copy(far, near); _ = far.Close() })
		copying.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
	}))
	defer proxy.Close()
	c, dialed := reachClient(t, site, proxy.Listener.Addr().String())
	d := get("https://example.com/")
	d.Proxy = "http://proxy.example.do:3128"
	wantDocument(t, c, d, userAgentDefault+"|es-DO,es;q=0.9")
	if got := dialed(); len(got) == 0 || slices.ContainsFunc(got, func(a string) bool { return a != "proxy.example.do:3128" }) {
		t.Errorf("dialed %v, want only the proxy", got)
	}
	direct, dialedDirectly := reachClient(t, site, site.Listener.Addr().String())
	wantDocument(t, direct, get("https://example.com/"), userAgentDefault+"|es-DO,es;q=0.9")
	if got := dialedDirectly(); slices.ContainsFunc(got, func(a string) bool { return a != "example.com:443" }) {
		t.Errorf("dialed %v, want only the site", got)
	}
}

// TestD4_PublicAddresses: without a Dial of its own a client connects to no address of the operator's network, unless a
// URL of the definition has it.
func TestD4_PublicAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"200.88.1.1": true, "2800:1::1": true, "::ffff:200.88.1.1": true, "127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "0.0.0.0": false, "224.0.0.1": false, "::1": false, "fe80::1": false, "fd00::1": false, "::ffff:127.0.0.1": false,
	} {
		if got := isPublic(netip.MustParseAddr(text).Unmap()); got != want {
			t.Errorf("%s: public %t", text, got)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, test := range []struct {
		address, proxy string
		want           bool
	}{
		{"http://127.0.0.1:1/rates", "", true}, {"https://bank.example.do/rates", "", false},
		{"https://bank.example.do/rates", "http://127.0.0.1:3128", true}, {"http://10.0.0.1:1/rates", "", false},
	} {
		d := definitionOf(source.Request{Method: "GET", URL: test.address})
		d.Proxy = test.proxy
		conn, err := dialPublic(d)(t.Context(), "tcp", ln.Addr().String())
		if (err == nil) != test.want || err != nil && !strings.Contains(err.Error(), "is not a public address") {
			t.Errorf("a definition with %s, proxy %q: %v", test.address, test.proxy, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}

const (
	testClientID     = "4f0c1d-client-id"
	testClientSecret = "s3cret+of/the=client"
	testKey          = "tcrd_0123456789abcdef"
)

// gateway is a site with OAuth2 on loopback. Each test sets what it does.
type gateway struct {
	*httptest.Server
	token func(w http.ResponseWriter, r *http.Request, n int) // n counts from 1
	rates func(w http.ResponseWriter, r *http.Request, n int)

	mu       sync.Mutex
	requests []string // METHOD /path authorization
	counts   map[string]int
}

func newGateway(t *testing.T) *gateway {
	g := &gateway{counts: map[string]int{}, token: giveToken, rates: giveRates}
	g.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.counts[r.URL.Path]++
		n := g.counts[r.URL.Path]
		g.requests = append(g.requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")))
		g.mu.Unlock()
		switch r.URL.Path {
		case "/oauth2/token":
			g.token(w, r, n)
		case "/rates":
			g.rates(w, r, n)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *gateway) seen() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.requests, "; ")
}

// giveToken gives the token token-number-N to the right client.
func giveToken(w http.ResponseWriter, r *http.Request, n int) {
	form := r.PostFormValue
	if form("grant_type") != "client_credentials" || form("client_id") != testClientID || form("client_secret") != testClientSecret ||
		form("scope") != "scope_1" || r.Header.Get("X-Ibm-Client-Id") != testClientID {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":"invalid_client","error_description":"`+form("client_secret")+`"}`)
		return
	}
	_, _ = fmt.Fprintf(w, `{"token_type":"Bearer","access_token":"token-number-%d","expires_in":3600}`, n)
}

func giveRates(w http.ResponseWriter, r *http.Request, _ int) {
	_, _ = io.WriteString(w, r.Header.Get("Authorization")+" "+r.Header.Get("X-Ibm-Client-Id"))
}

func oauthSource() *source.Definition {
	d := get("https://example.com/rates")
	d.OAuth2 = &source.OAuth2{
		URL: "https://example.com/oauth2/token", ClientID: "id", ClientSecret: "key", Scope: "scope_1", ClientIDHeader: "X-Ibm-Client-Id",
	}
	return d
}

// secretClient is a client with these secrets whose connections all go to g. Its clock stands at *now.
func secretClient(t *testing.T, g *gateway, secrets map[string]string, now *time.Time) *Client {
	c, _ := reachClient(t, g.Server, g.Listener.Addr().String())
	c.config.Secret = func(name string) string { return secrets[name] }
	c.config.Clock = func() time.Time { return *now }
	c.config.RequestTimeout, c.config.FetchTimeout = 5*time.Second, 5*time.Second // shorter than the wait before another try
	return c
}

func goodSecrets() map[string]string {
	return map[string]string{"id": testClientID, "key": testClientSecret, "api": testKey}
}

// wantNoSecret wants a failure to quote no secret, and no beginning of one.
func wantNoSecret(t *testing.T, detail string) {
	t.Helper()
	for _, text := range []string{testClientID[:6], testClientSecret[:6], testKey[:6], "token-number"} {
		if strings.Contains(detail, text) {
			t.Errorf("%q quotes a secret", detail)
		}
	}
}

// A token is asked for once, used until shortly before its end, and never gets into a document.
func TestOAuth2_TokenIsKeptUntilItExpires(t *testing.T) {
	g, now := newGateway(t), clock()
	c := secretClient(t, g, goodSecrets(), &now)
	d := oauthSource()
	const token, rates1, rates2 = "POST /oauth2/token", "GET /rates Bearer token-number-1", "GET /rates Bearer token-number-2"
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, token + "; " + rates1}, {59 * time.Minute, rates1}, {time.Minute, token + "; " + rates2}, {-2 * time.Hour, token + "; GET /rates Bearer token-number-3"},
	} {
		now = now.Add(step.after)
		g.requests = nil
		wantDocument(t, c, d, "Bearer [redacted] [redacted]")
		if got := g.seen(); got != step.want {
			t.Errorf("after %v: %s, want %s", step.after, got, step.want)
		}
	}
}

// A refused token is replaced once. A second refusal is a failure that names the secrets and quotes none.
func TestOAuth2_RefusedTokens(t *testing.T) {
	refuse := func(from, to int) func(http.ResponseWriter, *http.Request, int) {
		return func(w http.ResponseWriter, r *http.Request, n int) {
			if n < from || n > to {
				giveRates(w, r, n)
				return
			}
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, "no: "+r.Header.Get("Authorization"))
		}
	}
	g, now := newGateway(t), clock()
	c := secretClient(t, g, goodSecrets(), &now)
	g.rates = refuse(2, 2)
	for range 2 {
		wantDocument(t, c, oauthSource(), "Bearer [redacted] [redacted]")
	}
	if got, want := g.seen(), "POST /oauth2/token; GET /rates Bearer token-number-1; GET /rates Bearer token-number-1; "+
		"POST /oauth2/token; GET /rates Bearer token-number-2"; got != want {
		t.Errorf("once refused: %s, want %s", got, want)
	}
	g.requests, g.rates = nil, refuse(1, 99)
	wantNoSecret(t, wantFailure(t, c, oauthSource(), source.Blocked, "found 401", "check the secret id and the secret key"))
	if got := strings.Count(g.seen(), "POST"); got != 1 {
		t.Errorf("twice refused: %d tokens were asked for: %s", got, g.seen())
	}
	g.rates, g.token = giveRates, func(w http.ResponseWriter, r *http.Request, _ int) { giveToken(w, r, 3) }
	wantDocument(t, c, oauthSource(), "Bearer [redacted] [redacted]")
	g.rates = refuse(1, 99) // the endpoint gives the same token again
	wantFailure(t, c, oauthSource(), source.Blocked, "found 401")
}

// A token endpoint that misbehaves fails the source, with the reason and without a secret.
func TestOAuth2_TokenEndpoint(t *testing.T) {
	answer := func(status int, body string) func(http.ResponseWriter, *http.Request, int) {
		return func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, test := range map[string]struct {
		token   func(http.ResponseWriter, *http.Request, int)
		secrets map[string]string
		kind    source.FailureKind
		says    []string
	}{
		"wrong secret":   {giveToken, map[string]string{"id": testClientID, "key": "wrong-secret-of-us"}, source.Blocked, []string{"found 401", "check the secret id and the secret key"}},
		"bad request":    {answer(400, `{"error":"invalid_scope"}`), goodSecrets(), source.Blocked, []string{"found 400", "the secret key"}},
		"other error":    {answer(400, `{"error":"`+testClientSecret+`"}`), goodSecrets(), source.Blocked, []string{"found 400"}},
		"forbidden":      {answer(403, "token-number-1"), goodSecrets(), source.Blocked, []string{"found 403"}},
		"down":           {answer(503, ""), goodSecrets(), source.HTTPStatus, []string{"found 503"}},
		"no token":       {answer(200, `{"token_type":"Bearer"}`), goodSecrets(), source.WrongContent, []string{"no access_token"}},
		"page":           {answer(200, "<html>"+testClientSecret), goodSecrets(), source.WrongContent, []string{"no access_token"}},
		"empty":          {answer(200, ""), goodSecrets(), source.WrongContent, []string{"no access_token"}},
		"header in it":   {answer(200, `{"access_token":"a\r\nHost: b"}`), goodSecrets(), source.WrongContent, []string{"no access_token"}},
		"other type":     {answer(200, `{"access_token":"abc","token_type":"mac"}`), goodSecrets(), source.WrongContent, []string{"mac, want Bearer"}},
		"huge":           {answer(200, strings.Repeat(" ", tokenPageBytesMax+1)), goodSecrets(), source.WrongContent, []string{"larger than"}},
		"missing secret": {giveToken, map[string]string{"id": testClientID}, source.Blocked, []string{"needs the secret key"}},
		"bad secret":     {giveToken, map[string]string{"id": testClientID, "key": "two words of us"}, source.Blocked, []string{"the secret key is not a word"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, now := newGateway(t), clock()
			g.token = test.token
			c := secretClient(t, g, test.secrets, &now)
			if test.kind == source.HTTPStatus {
				c.config.FetchTimeout = backOffFirst - time.Millisecond // no other try
			}
			detail := wantFailure(t, c, oauthSource(), test.kind, test.says...)
			wantNoSecret(t, detail)
			if strings.Contains(detail, "wrong-secret-of-us") || strings.Contains(g.seen(), "/rates") {
				t.Errorf("%q; requests: %s", detail, g.seen())
			}
		})
	}
}

// Tokens without a lifetime, with one as a text, and with one of centuries.
func TestOAuth2_Lifetimes(t *testing.T) {
	for expires, want := range map[string]time.Duration{
		"": tokenLifeDefault, `,"expires_in":"600"`: 10 * time.Minute, `,"expires_in":99999999999999`: tokenLifeMax, `,"expires_in":-5`: tokenLifeDefault,
	} {
		token, fetchErr := readToken(&rawResponse{body: []byte(`{"access_token":"abc"` + expires + `}`)})
		if fetchErr != nil || token.life != want {
			t.Errorf("%s: %v, %v; want %v", expires, token.life, fetchErr, want)
		}
	}
}

// Neither a secret nor a token follows a redirect, to whatever host.
func TestSecrets_NoRedirects(t *testing.T) {
	var mu sync.Mutex
	var reached []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		reached = append(reached, r.URL.Path)
	}))
	defer other.Close()
	keyed := get("https://example.com/rates")
	keyed.Secret = &source.Secret{Name: "api", Header: "X-Access-Token"}
	long := "https://example.com/" + strings.Repeat("x", 165) // an error would have it with the first bytes of the secret
	for _, target := range []string{other.URL + "/", long, "https://example.com/elsewhere", "https://www.example.com/rates", "//evil.example/"} {
		for _, status := range []int{http.StatusMovedPermanently, http.StatusSeeOther, http.StatusTemporaryRedirect} {
			redirect := func(w http.ResponseWriter, r *http.Request, _ int) {
				repeated := r.Header.Get("Authorization") + r.Header.Get("X-Access-Token") + r.PostFormValue("client_secret")
				http.Redirect(w, r, target+"?t="+url.QueryEscape(repeated), status)
			}
			g, now := newGateway(t), clock()
			c := secretClient(t, g, goodSecrets(), &now)
			g.rates = redirect
			wantNoSecret(t, wantFailure(t, c, oauthSource(), source.HTTPStatus, "not followed: the request has a secret"))
			wantNoSecret(t, wantFailure(t, c, keyed, source.HTTPStatus, "not followed: the request has a secret"))
			g.token, now = redirect, now.Add(time.Hour)
			wantNoSecret(t, wantFailure(t, c, oauthSource(), source.HTTPStatus, "not followed: the request has a secret"))
			if requests := g.seen(); strings.Contains(requests, "elsewhere") || strings.Count(requests, ";") != 3 {
				t.Errorf("%s: %s", target, requests)
			}
		}
	}
	if len(reached) > 0 {
		t.Errorf("another host was asked: %v", reached)
	}
}

// An API key is in its header, with its scheme, and nowhere else. robots.txt is not asked for.
func TestSecrets_Key(t *testing.T) {
	g, now := newGateway(t), clock()
	g.rates = func(w http.ResponseWriter, r *http.Request, _ int) {
		_, _ = fmt.Fprintf(w, "%q %q", r.Header.Get("X-Access-Token"), r.Header.Get("Authorization"))
	}
	d := get("https://example.com/rates")
	for scheme, want := range map[string]string{"": `"[redacted]" ""`, "Bearer": `"" "Bearer [redacted]"`} {
		d.Secret = &source.Secret{Name: "api", Header: map[string]string{"": "X-Access-Token", "Bearer": "Authorization"}[scheme], Scheme: scheme}
		wantDocument(t, secretClient(t, g, goodSecrets(), &now), d, want)
	}
	if got := g.seen(); !strings.Contains(got, "GET /rates Bearer "+testKey) || strings.Contains(got, "robots") {
		t.Errorf("requests: %s", got)
	}
	g.rates = func(w http.ResponseWriter, r *http.Request, _ int) {
		w.Header().Set("Content-Type", r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusForbidden)
	}
	d.Secret = &source.Secret{Name: "api", Header: "Authorization"}
	wantNoSecret(t, wantFailure(t, secretClient(t, g, goodSecrets(), &now), d, source.Blocked, "found 403", "check the secret api"))
	wantFailure(t, secretClient(t, g, nil, &now), d, source.Blocked, "needs the secret api, which is missing")
}

// A server may repeat secrets that begin with one another, in the forms of several encodings.
func TestSecretTexts(t *testing.T) {
	var texts secretTexts
	for _, secret := range []string{"popular-id", "popular-id-s3cret/of+it", "short", "popular-id-s3cret"} {
		texts.add(secret)
	}
	const sent = `popular-id popular-id-s3cret {"key": "popular-id-s3cret\/of+it"} ?key=popular-id-s3cret%2Fof%2Bit popular-id-s3cret/of+it 58.10 short`
	if got := texts.redact(sent); got != `[redacted] [redacted] {"key": "[redacted]"} ?key=[redacted] [redacted] 58.10 short` {
		t.Errorf("redacted: %s", got)
	}
}

// A secret is sent without TLS only to this machine, and then not through a proxy.
func TestSecrets_OnlyProtected(t *testing.T) {
	now := clock()
	var asked int
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++; _, _ = io.WriteString(w, "rates") }))
	defer plain.Close()
	secured := newGateway(t)
	for address, want := range map[string]source.FailureKind{plain.URL + "/rates": "", "http://example.com/rates": source.Internal} {
		for _, proxy := range []string{"", "http://proxy.example:3128"} {
			d := get(address)
			d.Secret, d.Proxy = &source.Secret{Name: "api", Header: "Authorization"}, proxy
			c := secretClient(t, secured, goodSecrets(), &now)
			c.config.Dial = nil // only to public addresses, and to those of the definition
			before := asked
			_, err := c.Fetch(t.Context(), d, 0)
			if proxy != "" {
				want = source.Internal
			}
			var failure *source.Failure
			if errors.As(err, &failure); failureKind(err) != want || (want == "") != (asked == before+1) {
				t.Errorf("%s, proxy %q: %v after %d requests, want %q", address, proxy, err, asked-before, want)
			}
		}
	}
}
