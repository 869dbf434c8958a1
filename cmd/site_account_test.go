package cmd

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/tasard/tasard/cmd/internal/setting"
)

// browser is a browser without JavaScript.
type browser struct {
	t      *testing.T
	client http.Client
	at     *url.URL // where the newest page was found
	status int
	text   string
	seen   []string // every page and address
}

func newBrowser(t *testing.T, node *program) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(node.url)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, client: http.Client{Jar: jar, Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}, at: at}
}

// open goes to a path.
func (r *browser) open(path string) *browser {
	r.t.Helper()
	return r.do(http.MethodGet, path, nil)
}

func (r *browser) do(method, path string, form url.Values) *browser {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.at.ResolveReference(&url.URL{Path: path}).String(), strings.NewReader(form.Encode()))
	if err != nil {
		r.t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Origin", r.at.Scheme+"://"+r.at.Host)
		request.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	answer, err := r.client.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if got := answer.Header.Get("Cache-Control"); got != "no-store" {
		r.t.Errorf("%s %s: Cache-Control %q", method, path, got)
	}
	r.at, r.status, r.text = answer.Request.URL, answer.StatusCode, string(text)
	r.seen = append(r.seen, r.at.String()+"\n"+r.text)
	return r
}

// form is what the page's form for a path would send.
func (r *browser) form(path string, typed map[string]string) url.Values {
	r.t.Helper()
	pattern := regexp.MustCompile(`(?s)<form[^>]* action="` + regexp.QuoteMeta(path) + `".*?</form>`)
	values := url.Values{}
	for _, field := range regexp.MustCompile(`<input[^>]* name="([^"]*)"[^>]*>`).FindAllStringSubmatch(pattern.FindString(r.text), -1) {
		value := regexp.MustCompile(` value="([^"]*)"`).FindStringSubmatch(field[0])
		if values.Set(field[1], ""); value != nil {
			values.Set(field[1], html.UnescapeString(value[1]))
		}
	}
	if len(values) == 0 {
		r.t.Fatalf("no form for %s at %s:\n%s", path, r.at, r.text)
	}
	for name, text := range typed {
		values.Set(name, text)
	}
	return values
}

// send fills in and sends the page's form for a path.
func (r *browser) send(path string, typed map[string]string) *browser {
	r.t.Helper()
	return r.do(http.MethodPost, path, r.form(path, typed))
}

// must wants the page at a path, with a status and a text on it.
func (r *browser) must(path string, status int, text string) *browser {
	r.t.Helper()
	if r.at.Path != path || r.status != status || !strings.Contains(r.text, text) {
		r.t.Fatalf("at %s, %d, want %s, %d, with %q:\n%s", r.at, r.status, path, status, text, r.text)
	}
	return r
}

// keyPattern is a key as people get it.
var keyPattern = regexp.MustCompile(`tasard_live_[0-9A-Za-z]{36}`)

// TestSite_K1_AccountWithoutJavaScript: from an e-mail address to a key that works, is counted, is shown once and is
// revoked, using only pages and an e-mail; no secret is in an address, a later page or the log.
func TestSite_K1_AccountWithoutJavaScript(t *testing.T) {
	t.Parallel()
	const email = "ana@example.com"
	box := newMailServer(t)
	anyone := startLimited(t, limitedArgs(t.TempDir(), box))
	r := newBrowser(t, anyone.node)

	r.open("/account").send("/account/codes", map[string]string{"email": email}).must("/account/code", http.StatusOK, "Escriba el código")
	code := box.code(email)
	again := r.form("/account/codes", nil)
	r.send("/account/sessions", map[string]string{"code": wrong(code)}).must("/account/sessions", http.StatusUnprocessableEntity, "no es válido o ya venció")
	r.do(http.MethodPost, "/account/codes", again).must("/account/codes", http.StatusTooManyRequests, "Hace menos de un minuto")
	r.send("/account/sessions", map[string]string{"code": code}).must("/account", http.StatusOK, "Todavía no tiene claves")
	token := ""
	for _, cookie := range r.client.Jar.Cookies(r.at) {
		if token = cookie.Value; cookie.Name != "tasard_session" {
			t.Errorf("the cookie %s is left", cookie.Name)
		}
	}

	form := r.form("/account/keys", map[string]string{"name": "servidor"})
	r.do(http.MethodPost, "/account/keys", form).must("/account/keys", http.StatusCreated, "la única vez")
	made := len(r.seen) - 1
	secret := keyPattern.FindString(r.text)
	key := anyone.with(secret)
	if left := key.must("GET", countedPath, "", http.StatusOK, "").left(t, "day"); left != 999 {
		t.Errorf("%d left", left)
	}
	r.do(http.MethodPost, "/account/keys", form).must("/account/keys", http.StatusConflict, "no se creó otra clave")
	r.open("/account").must("/account", http.StatusOK, "1 de 1,000 solicitudes").must("/account", http.StatusOK, "1 de 60 solicitudes")
	// The other language is the same session.
	r.open("/en/account").send("/en/account/keys", nil).must("/en/account/keys", http.StatusCreated, "the only time")
	second := keyPattern.FindString(r.text)
	r.seen = append(r.seen[:len(r.seen)-1], strings.ReplaceAll(r.text, second, ""))
	r.open("/account").must("/account", http.StatusOK, "que es el máximo")

	revoke := regexp.MustCompile(`/account/keys/key_[0-9a-f]+/revoke`).FindAllString(r.text, -1)
	if len(revoke) != 2 {
		t.Fatalf("forms to revoke: %q", revoke)
	}
	r.send(revoke[1], nil).must("/account", http.StatusOK, "La clave quedó revocada") // the older one comes second
	key.must("GET", usagePath, "", http.StatusUnauthorized, "revoked_key")
	anyone.with(second).must("GET", usagePath, "", http.StatusOK, "")
	r.send("/account/signout", nil).must("/account", http.StatusOK, "Cerró la sesión")
	anyone.with(token).must("GET", keysPath, "", http.StatusUnauthorized, "invalid_session")

	for at, page := range r.seen {
		for _, hidden := range []string{secret, second, token, code} {
			if strings.Contains(page, hidden) && (at != made || hidden != secret) {
				t.Errorf("page %d shows %s:\n%s", at, hidden, page)
			}
		}
	}
	for _, hidden := range []string{secret, second, token, code, email} {
		if strings.Contains(anyone.node.output(), hidden) {
			t.Errorf("the log has %s:\n%s", hidden, anyone.node.output())
		}
	}
}

// TestServe_WithoutMail wants a node that names no mail server to say so to the operator and to callers, and to offer
// no form that would fail.
func TestServe_WithoutMail(t *testing.T) {
	t.Parallel()
	node := startNode(t, t.TempDir())
	node.await(setting.NoMailNotice)
	caller{t: t, node: node}.must("POST", codesPath, `{"email":"ana@example.com"}`, http.StatusServiceUnavailable, "data_unavailable")
	r := newBrowser(t, node).open("/account").must("/account", http.StatusOK, "no envía correos")
	if strings.Contains(r.text, "<form") {
		t.Errorf("there is a form:\n%s", r.text)
	}
}
