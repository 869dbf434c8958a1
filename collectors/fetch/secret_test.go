package fetch

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

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
