package account

import (
	"bytes"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/pages"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// compareGolden compares the content of a page with a golden file.
func compareGolden(t *testing.T, name string, page *response) {
	t.Helper()
	text := fmt.Sprintf("%d %s\n%s\n", page.status, page.header.Get("Retry-After"), strings.ReplaceAll(page.main(), "><", ">\n<"))
	file := filepath.Join("testdata", name+".html")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || text != string(want) {
		t.Errorf("%s differs (%v); with -update it is rewritten. It is\n%s", file, err, text)
	}
}

// TestGolden_K1_TheWholeWay shows every page from an e-mail address to a key and back, in both languages.
func TestGolden_K1_TheWholeWay(t *testing.T) {
	for _, language := range pages.Languages() {
		b := newFakeAccounts(t).browser(language)
		golden := func(name string) { t.Helper(); compareGolden(t, name+"."+string(language), b.page) }
		b.get(b.root)
		golden("welcome")
		b.submit("/codes", "email", "Ana@Example.do ")
		b.follow()
		golden("code")
		b.accounts.advance(account.CodeResendAfter)
		b.submit("/codes") // resend, on the page of the code
		b.follow()
		golden("code")
		if b.submit("/sessions", "code", " 0071-2345 "); b.page.status == http.StatusSeeOther {
			t.Fatal("the form needs its e-mail address")
		}
		b.submit("/sessions", "code", " 0071-2345 ", "email", ana)
		b.follow()
		golden("home-empty")
		if b.accounts.from.Address != netip.MustParseAddr("192.0.2.7") || b.accounts.from.Browser == (account.Digest{}) {
			t.Errorf("the brakes see the requester %v", b.accounts.from)
		}
		b.submit("/keys", "name", "servidor «A» & <B>")
		golden("made")
		b.accounts.advance(time.Minute)
		b.get(b.root)
		golden("home-one")
		b.submit("/keys", "name", "")
		b.get(b.root)
		golden("home-full")
		b.submit("/keys/key_1/revoke")
		b.follow()
		golden("home-revoked")
		b.submit("/signout")
		b.follow()
		golden("out")
	}
}

// TestGolden_States shows the settings of the operator and the states of an account.
func TestGolden_States(t *testing.T) {
	for _, language := range pages.Languages() {
		for name, state := range map[string]struct {
			world  func(*fakeAccounts)
			inside bool
		}{
			"mail-off":     {func(w *fakeAccounts) { w.pages.config.MailOff = true }, false},
			"mail-printed": {func(w *fakeAccounts) { w.pages.config.MailPrinted = true }, false},
			"announced":    {func(w *fakeAccounts) { w.keyPolicy.RequiredAt = w.now.Add(20 * 24 * time.Hour) }, false},
			"limits-off":   {func(w *fakeAccounts) { w.enforced = false }, true},
			"suspended":    {func(w *fakeAccounts) { w.suspended = &engine.Error{Code: engine.CodeAccountSuspended} }, true},
			"required":     {func(w *fakeAccounts) { w.keyPolicy.RequiredAt = w.now.Add(-time.Hour) }, true},
		} {
			w := newFakeAccounts(t)
			state.world(w)
			b := w.browser(language)
			if state.inside {
				b.signIn(ana).submit("/keys", "name", "servidor")
			}
			b.get(b.root)
			compareGolden(t, name+"."+string(language), b.page)
		}
	}
}

// TestGolden_Faults shows each error next to its form, with its status.
func TestGolden_Faults(t *testing.T) {
	for _, language := range pages.Languages() {
		check := func(name string, walk func(b *browser)) {
			t.Helper()
			b := newFakeAccounts(t).browser(language)
			walk(b)
			compareGolden(t, "fault-"+name+"."+string(language), b.page)
		}
		check("email", func(b *browser) { b.get(b.root); b.submit("/codes", "email", `a"><b@example`) })
		check("too-soon", func(b *browser) { b.askCode(ana).accounts.advance(2500 * time.Millisecond); b.submit("/codes") })
		check("digits", func(b *browser) { b.askCode(ana).submit("/sessions", "code", "1234567", "email", "ana") })
		check("invalid-code", func(b *browser) { b.askCode(ana).submit("/sessions", "code", "99999999", "email", ana) })
		check("no-cookies", func(b *browser) {
			b.askCode(ana).submit("/sessions", "code", goodCode, "email", ana)
			b.jar = nil
			b.follow()
		})
		check("name", func(b *browser) { b.signIn(ana).submit("/keys", "name", strings.Repeat("ñ", 81)) })
		check("session-over", func(b *browser) {
			b.signIn(ana).accounts.advance(account.SessionLifetime)
			b.submit("/keys", "name", "x")
		})
		check("key-limit", func(b *browser) {
			third := b.signIn(ana).form("/keys")
			b.accounts.advance(time.Minute)
			other := b.accounts.browser(language).signIn(ana)
			other.submit("/keys")
			other.get(b.root)
			other.submit("/keys")
			b.send(http.MethodPost, b.root+"/keys", third)
		})
		check("unknown-key", func(b *browser) {
			b.signIn(ana).submit("/keys")
			b.get(b.root)
			b.send(http.MethodPost, b.root+"/keys/key_9/revoke", b.form("/keys/key_1/revoke"))
		})
	}
}

// TestGolden_FaultsOfAnyForm shows errors that every form can have, with the time to wait. An unknown error is a 500
// with its cause in the log.
func TestGolden_FaultsOfAnyForm(t *testing.T) {
	forms := map[string]func(b *browser){
		"codes":    func(b *browser) { b.get(b.root) },
		"sessions": func(b *browser) { b.askCode(ana) },
		"keys":     func(b *browser) { b.signIn(ana) },
		"keys/key_1/revoke": func(b *browser) {
			b.signIn(ana).submit("/keys")
			b.get(b.root)
		},
	}
	for _, language := range pages.Languages() {
		for form, prepare := range forms {
			for code, wait := range map[engine.Code]time.Duration{
				engine.CodeRateLimited: 47 * time.Minute, engine.CodeOverloaded: time.Second, engine.CodeReadOnly: 30 * time.Second,
				engine.CodeDataUnavailable: 2 * time.Second, engine.CodeInternalError: 0,
			} {
				b := newFakeAccounts(t).browser(language)
				prepare(b)
				b.accounts.err = &engine.Error{Code: code, RetryAfter: wait, Message: "planted cause"}
				b.submit("/"+form, "email", ana, "code", goodCode, "name", "servidor")
				switch known := formErrorOf(b.accounts.err); {
				case known == nil:
					if b.page.status != http.StatusInternalServerError || strings.Contains(b.page.body, "planted") || !strings.Contains(b.accounts.logs.String(), "planted cause") {
						t.Errorf("%s: %d\n%s\n%s", form, b.page.status, b.page.main(), b.accounts.logs)
					}
				case b.page.status != known.Status || b.page.header.Get("Retry-After") == "":
					t.Errorf("%s, %s: %d", form, code, b.page.status)
				case !strings.Contains(form, "/"):
					compareGolden(t, "fault-"+form+"-"+string(code)+"."+string(language), b.page)
				}
			}
		}
	}
}

// TestK3_TheSamePage checks that pages, cookies and headers don't show whether an e-mail address has an account.
func TestK3_TheSamePage(t *testing.T) {
	see := func(email string) string {
		w := newFakeAccounts(t)
		w.browser(pages.Spanish).signIn(ana).submit("/keys")
		w.advance(time.Hour)
		b := w.browser(pages.Spanish).askCode(email)
		b.submit("/sessions", "code", "99999999", "email", email)
		b.submit("/codes")
		var all strings.Builder
		drawn := regexp.MustCompile(`(value="|tasard_[a-z]+=)[^";]{40,}`)
		for _, page := range b.responses {
			all.WriteString(strings.ReplaceAll(drawn.ReplaceAllString(fmt.Sprint(page.status, page.header, page.body), "$1"), email, "EMAIL"))
		}
		return all.String()
	}
	if known, unknown := see(ana), see("eva@example.do"); known != unknown {
		t.Errorf("known:\n%s\nunknown:\n%s", known, unknown)
	}
}

const ana, goodCode = "ana@example.do", "00712345"

// fakeAccounts is a simple account.Service with the pages in front of it.
type fakeAccounts struct {
	t     *testing.T
	mux   *http.ServeMux
	pages *Pages
	logs  *bytes.Buffer

	now        time.Time // changed between requests
	err        error     // of every call
	calls      []string
	from       account.Requester
	codeSentAt map[account.Email]time.Time
	sessions   map[account.Digest]fakeSession
	keys       map[account.Email][]account.KeyRecord
	suspended  error
	enforced   bool
	keyPolicy  account.KeyPolicy
	random     io.Reader
}

type fakeSession struct {
	email account.Email
	until time.Time
}

func newFakeAccounts(t *testing.T) *fakeAccounts { return newFakeAccountsAt(t, "", false) }

// newFakeAccountsAt is newFakeAccounts for a site with a public URL, or over https.
func newFakeAccountsAt(t *testing.T, publicURL string, secure bool) *fakeAccounts {
	w := &fakeAccounts{
		t: t, mux: http.NewServeMux(), logs: &bytes.Buffer{}, now: time.Date(2026, 11, 21, 18, 5, 0, 0, time.UTC),
		codeSentAt: map[account.Email]time.Time{}, sessions: map[account.Digest]fakeSession{}, keys: map[account.Email][]account.KeyRecord{}, enforced: true,
		random: rand.NewChaCha8([32]byte{1}),
	}
	logger := slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	public := pages.New(pages.Config{Clock: func() time.Time { return w.now }, Logger: logger, PerMinute: 10_000,
		Catalogue: engine.DefaultCatalogue(), Contact: "ayuda@example.do", PublicURL: publicURL, Secure: secure})
	w.pages = New(Config{Frame: public.Frame(), Accounts: w, Access: w, Random: rand.NewChaCha8([32]byte{2}), Logger: logger})
	w.pages.Register(w.mux)
	return w
}

func (w *fakeAccounts) advance(d time.Duration) { w.now = w.now.Add(d) }

// ask records a call and returns the planted error.
func (w *fakeAccounts) ask(what string) error {
	w.calls = append(w.calls, what)
	return w.err
}

func (w *fakeAccounts) LimitsEnforced() bool         { return w.enforced }
func (w *fakeAccounts) KeyPolicy() account.KeyPolicy { return w.keyPolicy }

func (w *fakeAccounts) RequestCode(to account.Email, from account.Requester) error {
	w.from = from
	if err := w.ask("code for " + to.String()); err != nil {
		return err
	}
	if last, ok := w.codeSentAt[to]; ok && w.now.Sub(last) < account.CodeResendAfter {
		return &engine.Error{Code: engine.CodeRequestedTooSoon, RetryAfter: account.CodeResendAfter - w.now.Sub(last)}
	}
	w.codeSentAt[to] = w.now
	return nil
}

func (w *fakeAccounts) OpenSession(of account.Email, code string, from account.Requester) (account.Secret, time.Time, error) {
	w.from = from
	if err := w.ask("session for " + of.String() + " with " + code); err != nil {
		return account.Secret{}, time.Time{}, err
	}
	if at, ok := w.codeSentAt[of]; !ok || code != goodCode || w.now.Sub(at) >= account.CodeLifetime {
		return account.Secret{}, time.Time{}, &engine.Error{Code: engine.CodeInvalidCode}
	}
	delete(w.codeSentAt, of)
	token, err := account.NewSessionToken(w.random)
	until := w.now.Add(account.SessionLifetime)
	w.sessions[token.Digest()] = fakeSession{of, until}
	return token, until, err
}

// owner returns the e-mail address of a session. It records the call what; the call "" does not fail.
func (w *fakeAccounts) owner(what string, token account.Digest) (account.Email, error) {
	if err := w.ask(what); what != "" && err != nil {
		return account.Email{}, err
	}
	s, ok := w.sessions[token]
	if !ok || !w.now.Before(s.until) {
		return account.Email{}, &engine.Error{Code: engine.CodeInvalidSession}
	}
	return s.email, nil
}

func (w *fakeAccounts) CloseSession(token account.Digest) error {
	_, err := w.owner("sign-out", token)
	delete(w.sessions, token)
	return err
}

func (w *fakeAccounts) CreateKey(token account.Digest, name string) (account.KeyRecord, account.Secret, error) {
	of, err := w.owner("key "+name, token)
	if err != nil {
		return account.KeyRecord{}, account.Secret{}, err
	}
	revoked := slices.DeleteFunc(slices.Clone(w.keys[of]), func(key account.KeyRecord) bool { return key.Active() })
	if len(w.keys[of])-len(revoked) >= account.KeysActiveMax {
		return account.KeyRecord{}, account.Secret{}, &engine.Error{Code: engine.CodeKeyLimitReached}
	}
	secret, err := account.NewKey(w.random, account.KeyPrefixTest)
	key := account.KeyRecord{ID: fmt.Sprintf("key_%d", len(w.keys[of])+1), Name: name, Hint: secret.Hint(), Digest: secret.Digest(), CreatedAt: w.now}
	w.keys[of] = append(w.keys[of], key)
	return key, secret, err
}

func (w *fakeAccounts) RevokeKey(token account.Digest, id string) error {
	of, err := w.owner("revoke "+id, token)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(w.keys[of], func(key account.KeyRecord) bool { return key.ID == id })
	if at < 0 {
		return &engine.Error{Code: engine.CodeNotFound}
	}
	w.keys[of][at].RevokedAt = w.now
	return nil
}

func (w *fakeAccounts) Keys(token account.Digest) ([]account.KeyRecord, error) {
	of, err := w.owner("", token)
	return slices.Clone(w.keys[of]), err
}

func (w *fakeAccounts) Usage(token account.Digest) (account.QuotaResult, error) {
	_, err := w.owner("", token)
	return account.QuotaResult{
		Day:    account.Window{Limit: 1000, Remaining: 991, Reset: engine.NextMidnight(w.now)},
		Minute: account.Window{Limit: 60, Remaining: 58, Reset: w.now.Add(31500 * time.Millisecond)},
	}, err
}

func (w *fakeAccounts) KeyUsage(account.Digest) (account.QuotaResult, error) {
	return account.QuotaResult{}, w.suspended
}

// browser keeps cookies like a browser, and all responses.
type browser struct {
	accounts  *fakeAccounts
	root      string // /account or /en/account
	headers   map[string]string
	jar       []*http.Cookie
	https     bool      // a proxy with TLS is in front
	page      *response // newest response
	responses []*response
}

type response struct {
	method, path string
	status       int
	header       http.Header
	body         string
}

func (w *fakeAccounts) browser(language pages.Language) *browser {
	return &browser{accounts: w, root: language.Path("/account"), headers: map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "https://tasas.example.do"}}
}

func (b *browser) get(path string) *response { return b.send(http.MethodGet, path, nil) }

func (b *browser) send(method, path string, form url.Values) *response {
	b.accounts.t.Helper()
	request := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	request.Host, request.RemoteAddr = "tasas.example.do", "192.0.2.7:0"
	request.Header.Set("X-Request-Id", "a1b2c3d4e5f60718")
	if b.https {
		request.TLS = &tls.ConnectionState{}
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for name, value := range b.headers {
			request.Header.Set(name, value)
		}
	}
	for _, c := range b.jar {
		if request.URL.Path == c.Path || strings.HasPrefix(request.URL.Path, c.Path+"/") {
			request.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		}
	}
	answer := httptest.NewRecorder()
	b.accounts.mux.ServeHTTP(answer, request)
	for _, c := range answer.Result().Cookies() {
		b.jar = slices.DeleteFunc(slices.Clone(b.jar), func(old *http.Cookie) bool { return old.Name == c.Name && old.Path == c.Path })
		if c.MaxAge > 0 {
			b.jar = append(b.jar, c)
		}
	}
	b.page = &response{method, path, answer.Code, answer.Header(), answer.Body.String()}
	b.responses = append(b.responses, b.page)
	return b.page
}

func (b *browser) cookie(name string) string {
	if at := slices.IndexFunc(b.jar, func(c *http.Cookie) bool { return c.Name == name }); at >= 0 {
		return b.jar[at].Value
	}
	return ""
}

var (
	formPattern   = regexp.MustCompile(`(?s)<form[^>]* action="([^"]*)".*?</form>`)
	hiddenPattern = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
	mainPattern   = regexp.MustCompile(`(?s)<main[^>]*>(.*)</main>`)
	secretPattern = regexp.MustCompile(`tasard_test_[0-9A-Za-z]+`)
)

// form returns the fields of a form on the page: the hidden ones, and the typed ones in pairs.
func (b *browser) form(path string, typed ...string) url.Values {
	b.accounts.t.Helper()
	for _, found := range formPattern.FindAllStringSubmatch(b.page.body, -1) {
		if found[1] != b.root+path {
			continue
		}
		values := url.Values{}
		for _, hidden := range hiddenPattern.FindAllStringSubmatch(found[0], -1) {
			values.Set(hidden[1], hidden[2])
		}
		for i := 0; i < len(typed); i += 2 {
			values.Set(typed[i], typed[i+1])
		}
		return values
	}
	b.accounts.t.Fatalf("no form for %s in\n%s", b.root+path, b.page.main())
	return nil
}

func (b *browser) submit(path string, typed ...string) *response {
	b.accounts.t.Helper()
	return b.send(http.MethodPost, b.root+path, b.form(path, typed...))
}

func (b *browser) follow() {
	b.accounts.t.Helper()
	if b.page.status != http.StatusSeeOther {
		b.accounts.t.Fatalf("%s %s: %d, want 303\n%s", b.page.method, b.page.path, b.page.status, b.page.main())
	}
	for b.page.status == http.StatusSeeOther {
		b.get(b.page.header.Get("Location"))
	}
}

// askCode goes to the page of the code.
func (b *browser) askCode(email string) *browser {
	b.accounts.t.Helper()
	b.get(b.root)
	b.submit("/codes", "email", email)
	b.follow()
	return b
}

// signIn goes to the page of the keys.
func (b *browser) signIn(email string) *browser {
	b.accounts.t.Helper()
	b.askCode(email).submit("/sessions", "code", goodCode, "email", email)
	if b.follow(); b.page.status != http.StatusOK || !strings.Contains(b.page.body, `action="`+b.root+`/signout"`) {
		b.accounts.t.Fatalf("not signed in: %d\n%s", b.page.status, b.page.main())
	}
	return b
}

func (s *response) main() string {
	if found := mainPattern.FindStringSubmatch(s.body); found != nil {
		return found[1]
	}
	return s.body
}

// TestSecrets_AreSeenOnce: a key is only in the response that creates it, a session only in cookies, a code nowhere.
func TestSecrets_AreSeenOnce(t *testing.T) {
	w := newFakeAccounts(t)
	b := w.browser(pages.Spanish).signIn(ana)
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
		secret: false, token: false, goodCode: false, ana: false, "POST /account/codes": true, "POST /account/sessions": true,
		"POST /account/keys": true, "POST /account/keys/{id}/revoke": true, "POST /account/signout": true, "network=192.0.2.0/24": true,
		"requestId=a1b2c3d4e5f60718": true,
	} {
		if strings.Contains(w.logs.String(), text) != logged {
			t.Errorf("the log has %q: %v, want %v:\n%s", text, !logged, logged, w.logs)
		}
	}
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
		b := w.browser(pages.Spanish).signIn(ana)
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
	b := w.browser(pages.Spanish).signIn(ana)
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
		url := strings.TrimPrefix(strings.TrimPrefix(public, "a proxy with "), "TLS")
		b := newFakeAccountsAt(t, url, public == "TLS").browser(pages.English)
		b.https = strings.HasPrefix(public, "a proxy")
		b.signIn(ana)
		set := map[string]int{} // by attributes
		for _, page := range b.responses {
			for _, line := range page.header.Values("Set-Cookie") {
				c, err := http.ParseSetCookie(line)
				if hsts := page.header.Get("Strict-Transport-Security"); (hsts != "") != (prefix != "") {
					t.Errorf("%q: Strict-Transport-Security %q", public, hsts)
				}
				if err != nil || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure != (prefix != "") || c.Domain != "" {
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
	b := w.browser(pages.Spanish).signIn(ana)
	b.jar = append(eva.jar[:1:1], b.jar...)
	if b.get(b.root); strings.Contains(b.page.body, "signout") {
		t.Errorf("signed in with two sessions:\n%s", b.page.main())
	}
}

// TestSession_Ends checks that an expired session leads to the sign-in page.
func TestSession_Ends(t *testing.T) {
	b := newFakeAccounts(t).browser(pages.Spanish).signIn(ana)
	known := b.accounts.from.Browser
	if login, ok := parseLoginState(b.cookie(loginCookie)); !ok || !login.email.IsZero() {
		t.Errorf("a known browser keeps the address: %q", b.cookie(loginCookie))
	}
	b.accounts.advance(account.SessionLifetime)
	if b.get(b.root); b.page.status != http.StatusOK || b.cookie(sessionCookie) != "" || !strings.Contains(b.page.body, "La sesión terminó") {
		t.Errorf("%d, kept %v\n%s", b.page.status, b.jar, b.page.main())
	}
	if b.submit("/codes", "email", "eva@example.do"); b.page.status != http.StatusSeeOther || b.accounts.from.Browser != known {
		t.Errorf("the form of that page: %d, from the same browser: %t", b.page.status, b.accounts.from.Browser == known)
	}
}

// TestSignOut_WhenTheLogCannotBeWritten checks that the cookie is deleted all the same, and that a warning is logged.
func TestSignOut_WhenTheLogCannotBeWritten(t *testing.T) {
	b := newFakeAccounts(t).browser(pages.Spanish).signIn(ana)
	b.accounts.err = &engine.Error{Code: engine.CodeReadOnly}
	b.submit("/signout")
	if b.follow(); b.cookie(sessionCookie) != "" || !strings.Contains(b.accounts.logs.String(), "level=WARN") {
		t.Errorf("kept %v\n%s", b.jar, b.accounts.logs)
	}
}

// TestPaths checks that a GET of a form redirects, and that a link puts no text on the page.
func TestPaths(t *testing.T) {
	b := newFakeAccounts(t).browser(pages.English)
	for _, path := range []string{"/codes", "/sessions", "/keys", "/keys/key_1/revoke", "/signout"} {
		if got := b.get(b.root + path); got.status != http.StatusSeeOther || got.header.Get("Location") != b.root {
			t.Errorf("%s: %d to %q", path, got.status, got.header.Get("Location"))
		}
	}
	for query, noted := range map[string]bool{"?done=out&x=planted": true, "?done=planted": false, "?email=planted@example.do": false, "?done=": false} {
		if got := b.get(b.root + query).main(); strings.Contains(got, "planted") || strings.Contains(got, "notice good") != noted {
			t.Errorf("%s:\n%s", query, got)
		}
	}
}

// TestParseLoginState checks that only encoded values are accepted.
func TestParseLoginState(t *testing.T) {
	number := strings.Repeat("0f", browserIDBytes)
	email, _ := account.ParseEmail(ana)
	for _, l := range []loginState{{browserID: number}, {number, email}} {
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
	if got := b.submit("/codes", "email", ana); got.status != http.StatusInternalServerError || len(w.calls) > 0 {
		t.Errorf("%d, asked %q", got.status, w.calls)
	}
}
