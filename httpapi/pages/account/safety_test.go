package account

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/pages"
)

// TestSecrets_AreSeenOnce: a key is only in the response that creates it, a session only in cookies, a code nowhere.
func TestSecrets_AreSeenOnce(t *testing.T) {
	w := newFakeAccounts(t)
	b := w.browser(pages.Spanish).signIn("ana@example.do")
	token := b.cookie(sessionCookie)
	made := b.submit("/keys", "name", "servidor")
	secret := secretPattern.FindString(made.body)
	if made.status != http.StatusCreated || secret == "" || strings.Count(made.body, secret) != 2 {
		t.Fatalf("%d, the key is %q in\n%s", made.status, secret, made.main())
	}
	b.get(b.root)
	b.submit("/keys/key_1/revoke")
	b.follow()
	b.submit("/signout")
	b.follow()
	for _, page := range b.responses {
		text := page.path + page.body + strings.ReplaceAll(fmt.Sprint(page.header), sessionCookie+"="+token, "")
		for _, hidden := range []string{secret, token, goodCode} {
			if strings.Contains(text, hidden) && (page != made || hidden != secret) {
				t.Errorf("%s %s shows %s", page.method, page.path, hidden)
			}
		}
		if page.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: Cache-Control %q", page.method, page.path, page.header.Get("Cache-Control"))
		}
	}
	for text, logged := range map[string]bool{
		secret: false, token: false, goodCode: false, "ana@example.do": false, "POST /account/codes": true, "POST /account/sessions": true,
		"POST /account/keys": true, "POST /account/keys/{id}/revoke": true, "POST /account/signout": true, "network=192.0.2.0/24": true,
		"requestId=a1b2c3d4e5f60718": true,
	} {
		if strings.Contains(w.logs.String(), text) != logged {
			t.Errorf("the log has %q: %v, want %v:\n%s", text, !logged, logged, w.logs)
		}
	}
}

func must1[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// TestS11_CrossSite checks that requests of another site do nothing.
func TestS11_CrossSite(t *testing.T) {
	const fetchSite, origin = "Sec-Fetch-Site", "Origin"
	for name, c := range map[string]struct {
		headers map[string]string
		public  string
		taken   bool
	}{
		"a program":                 {map[string]string{}, "", true},
		"own page":                  {map[string]string{fetchSite: "same-origin", origin: "https://tasas.example.do"}, "", true},
		"own page, old browser":     {map[string]string{origin: "https://tasas.example.do"}, "", true},
		"behind a proxy":            {map[string]string{origin: "https://public.example.do"}, "https://public.example.do", true},
		"foreign page":              {map[string]string{fetchSite: "cross-site", origin: "https://evil.example"}, "", false},
		"foreign page, old browser": {map[string]string{origin: "https://evil.example"}, "https://public.example.do", false},
		"sister page":               {map[string]string{fetchSite: "same-site", origin: "https://blog.example.do"}, "", false},
		"another port":              {map[string]string{origin: "https://tasas.example.do:8443"}, "", false},
		"sandboxed page":            {map[string]string{origin: "null"}, "", false},
	} {
		w := newFakeAccountsAt(t, c.public, false)
		b := w.browser(pages.Spanish).signIn("ana@example.do")
		b.headers, w.calls = c.headers, nil
		got := b.submit("/keys")
		if c.taken != (got.status == http.StatusCreated) || c.taken != (len(w.calls) == 1) || !c.taken && got.status != http.StatusBadRequest {
			t.Errorf("%s: %d, asked %q", name, got.status, w.calls)
		}
	}
}

// TestS11_Forms checks that a form is taken only in a body of the right type and size.
func TestS11_Forms(t *testing.T) {
	w := newFakeAccounts(t)
	b := w.browser(pages.Spanish).signIn("ana@example.do")
	w.calls = nil
	good := b.form("/keys", "name", "servidor")
	b.headers["Content-Type"] = "text/plain"
	if got := b.send(http.MethodPost, "/account/keys", good); got.status != http.StatusBadRequest {
		t.Errorf("as text: %d", got.status)
	}
	delete(b.headers, "Content-Type")
	if b.send(http.MethodPost, "/account/keys?"+good.Encode(), url.Values{}); strings.Contains(fmt.Sprint(w.calls), "servidor") {
		t.Errorf("fields in the URL were read: %q", w.calls)
	}
	good.Set("name", strings.Repeat("x", formBytesMax))
	if got := b.send(http.MethodPost, "/account/keys", good); got.status != http.StatusBadRequest {
		t.Errorf("too long: %d", got.status)
	}
}

// TestForms_WithoutSession checks that forms of the account do nothing without a session.
func TestForms_WithoutSession(t *testing.T) {
	w := newFakeAccounts(t)
	for _, path := range []string{"keys", "keys/key_1/revoke"} {
		if got := w.browser(pages.Spanish).send(http.MethodPost, "/account/"+path, url.Values{}); got.status != http.StatusForbidden || len(w.calls) > 0 {
			t.Errorf("%s: %d, asked %q", path, got.status, w.calls)
		}
	}
}

// TestCookies checks the attributes of the cookies, with and without https, and that signing out deletes the session.
func TestCookies(t *testing.T) {
	for public, prefix := range map[string]string{"": "", "http://127.0.0.1:8080": "", "https://tasas.example.do/": "__Secure-", "TLS": "__Secure-", "a proxy with TLS": "__Secure-"} {
		secure := public == "TLS"
		b := newFakeAccountsAt(t, strings.TrimPrefix(strings.TrimPrefix(public, "a proxy with "), "TLS"), secure).browser(pages.English)
		b.https = strings.HasPrefix(public, "a proxy")
		b.signIn("ana@example.do")
		set := map[string]int{} // by attributes
		for _, page := range b.responses {
			for _, line := range page.header.Values("Set-Cookie") {
				c := must1(http.ParseSetCookie(line))
				if hsts := page.header.Get("Strict-Transport-Security"); (hsts != "") != (prefix != "") {
					t.Errorf("%q: Strict-Transport-Security %q", public, hsts)
				}
				if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure != (prefix != "") || c.Domain != "" {
					t.Errorf("%q: %s", public, line)
				}
				set[strings.Join([]string{c.Name, c.Path, (time.Duration(c.MaxAge) * time.Second).String()}, " ")]++
			}
		}
		for _, path := range []string{"/account", "/en/account"} {
			for _, want := range []string{prefix + loginCookie + " " + path + " 11m0s", prefix + loginCookie + " " + path + " 8760h0m0s", prefix + sessionCookie + " " + path + " 15m0s"} {
				if set[want] != 1 {
					t.Errorf("%q: %s was set %d times: %v", public, want, set[want], set)
				}
			}
		}
		if len(set) != 6 || len(b.jar) != 4 {
			t.Errorf("%q: %v, kept %v", public, set, b.jar)
		}
		b.root = "/account" // the session holds in both languages
		if b.get(b.root); !strings.Contains(b.page.body, `action="/account/signout"`) {
			t.Errorf("%q: no session in the other language", public)
		}
		b.submit("/signout")
		if len(b.jar) != 2 || strings.Contains(fmt.Sprint(b.jar), sessionCookie) {
			t.Errorf("%q: kept %v", public, b.jar)
		}
	}
}

// TestCookies_TwoOfOneName checks that two session cookies are ignored: another subdomain may have set one.
func TestCookies_TwoOfOneName(t *testing.T) {
	w := newFakeAccounts(t)
	eva := w.browser(pages.Spanish).signIn("eva@example.do")
	b := w.browser(pages.Spanish).signIn("ana@example.do")
	b.jar = append(eva.jar[:1:1], b.jar...)
	if b.get(b.root); strings.Contains(b.page.body, "signout") {
		t.Errorf("signed in with two sessions:\n%s", b.page.main())
	}
}

// TestSession_Ends checks that an expired session leads to the sign-in page.
func TestSession_Ends(t *testing.T) {
	b := newFakeAccounts(t).browser(pages.Spanish).signIn("ana@example.do")
	b.accounts.advance(account.SessionLifetime)
	if b.get(b.root); b.page.status != http.StatusOK || b.cookie(sessionCookie) != "" || !strings.Contains(b.page.body, "La sesión terminó") {
		t.Errorf("%d, kept %v\n%s", b.page.status, b.jar, b.page.main())
	}
	if b.submit("/codes", "email", "eva@example.do"); b.page.status != http.StatusSeeOther {
		t.Errorf("the form of that page: %d", b.page.status)
	}
}

// TestSignOut_WhenTheLogCannotBeWritten checks that the cookie is deleted all the same, and that a warning is logged.
func TestSignOut_WhenTheLogCannotBeWritten(t *testing.T) {
	b := newFakeAccounts(t).browser(pages.Spanish).signIn("ana@example.do")
	b.accounts.err = &engine.Error{Code: engine.CodeReadOnly}
	b.submit("/signout")
	if b.follow(); b.cookie(sessionCookie) != "" || !strings.Contains(b.accounts.logs.String(), "level=WARN") {
		t.Errorf("kept %v\n%s", b.jar, b.accounts.logs)
	}
}

// TestPaths checks that a GET of a form redirects, and that a link puts no text on the page.
func TestPaths(t *testing.T) {
	b := newFakeAccounts(t).browser(pages.English)
	for _, path := range []string{"/codes", "/sessions", "/keys", "/keys/key_1/revoke", "/signout", "/code"} {
		if got := b.get(b.root + path); got.status != http.StatusSeeOther || got.header.Get("Location") != b.root {
			t.Errorf("%s: %d to %q", path, got.status, got.header.Get("Location"))
		}
	}
	for query, noted := range map[string]bool{"?done=out&x=planted": true, "?done=planted": false, "?email=planted@example.do": false, "?done=": false} {
		if got := b.get(b.root + query).main(); strings.Contains(got, "planted") || strings.Contains(got, "notice good") != noted {
			t.Errorf("%s:\n%s", query, got)
		}
	}
	b.signIn("ana@example.do")
	if got := b.get(b.root + "/code"); got.status != http.StatusSeeOther {
		t.Errorf("the code's page with a session: %d", got.status)
	}
}

// TestParseLoginState checks that only encoded values are accepted.
func TestParseLoginState(t *testing.T) {
	number := strings.Repeat("0f", browserIDBytes)
	for _, l := range []loginState{{browserID: number}, {number, must1(account.ParseEmail("ana@example.do"))}} {
		if got, ok := parseLoginState(l.encode()); !ok || got != l {
			t.Errorf("%q reads as %v, %v", l.encode(), got, ok)
		}
	}
	for _, text := range []string{"", ".", number, number[2:] + ".", "x" + number[1:] + ".", number + ".%", number + ".YQ", number + "." + "YUBiLmRvCg"} {
		if got, ok := parseLoginState(text); ok {
			t.Errorf("%q reads as %v", text, got)
		}
	}
}

// TestRandom_RunsOut checks that a failing random source is an error, and not a guessable number.
func TestRandom_RunsOut(t *testing.T) {
	w := newFakeAccounts(t)
	w.pages.config.Random = iotest.ErrReader(errors.New("planted"))
	b := w.browser(pages.Spanish)
	b.get(b.root)
	if got := b.submit("/codes", "email", "ana@example.do"); got.status != http.StatusInternalServerError || len(w.calls) > 0 {
		t.Errorf("%d, asked %q", got.status, w.calls)
	}
}
