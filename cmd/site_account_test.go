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

	"github.com/tasard/tasard/cmd/internal/command"
)

// browser is a browser without JavaScript.
type browser struct {
	t      *testing.T
	client http.Client
	at     *url.URL // of the newest page
	status int
	text   string
}

func newBrowser(t *testing.T, node *program) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(node.URL)
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
	r.at, r.status, r.text = answer.Request.URL, answer.StatusCode, string(text)
	return r
}

// Send fills in and sends the page's form for a path.
func (r *browser) send(path, field, value string) *browser {
	r.t.Helper()
	form := regexp.MustCompile(`(?s)<form[^>]* action="` + regexp.QuoteMeta(path) + `".*?</form>`).FindString(r.text)
	values := url.Values{}
	for _, hidden := range regexp.MustCompile(`<input[^>]* name="([^"]*)"[^>]* value="([^"]*)"`).FindAllStringSubmatch(form, -1) {
		values.Set(hidden[1], html.UnescapeString(hidden[2]))
	}
	values.Set(field, value)
	return r.do(http.MethodPost, path, values)
}

// must wants the page at a path, with a status and a text on it.
func (r *browser) must(path string, status int, text string) *browser {
	r.t.Helper()
	if r.at.Path != path || r.status != status || !strings.Contains(r.text, text) {
		r.t.Fatalf("at %s, %d, want %s, %d, with %q:\n%s", r.at, r.status, path, status, text, r.text)
	}
	return r
}

// TestSite_K1_AccountWithoutJavaScript: from an e-mail address to a key that works, and to the end of the session,
// using only pages and an e-mail. Package httpapi/pages/account tests every page and mistake.
func TestSite_K1_AccountWithoutJavaScript(t *testing.T) {
	t.Parallel()
	const email = "ana@example.com"
	box := newMailServer(t)
	anyone := startLimited(t, limitedArgs(t.TempDir(), box))
	r := newBrowser(t, anyone.node)
	r.open("/account").send("/account/codes", "email", email).must("/account/code", http.StatusOK, "Escriba el código")
	r.send("/account/sessions", "code", box.code(email)).must("/account", http.StatusOK, "Todavía no tiene claves")
	session := r.client.Jar.Cookies(r.at)[0].Value
	r.send("/account/keys", "name", "servidor").must("/account/keys", http.StatusCreated, "la única vez")
	key := anyone.with(regexp.MustCompile(`tasard_live_[0-9A-Za-z]{36}`).FindString(r.text))
	if left := key.must("GET", countedPath, "", http.StatusOK, "").left(t, "minute"); left != 59 {
		t.Errorf("%d left", left)
	}
	r.open("/account").must("/account", http.StatusOK, "1 de 1,000 solicitudes")
	r.send("/account/signout", "", "").must("/account", http.StatusOK, "Cerró la sesión")
	anyone.with(session).must("GET", keysPath, "", http.StatusUnauthorized, "invalid_session")
}

// TestServe_WithoutMail wants a node that names no mail server to say so to the operator and to callers, and to offer
// no form that would fail.
func TestServe_WithoutMail(t *testing.T) {
	t.Parallel()
	node := startNode(t, t.TempDir())
	node.Await(command.NoMailNotice)
	caller{t: t, node: node}.must("POST", codesPath, `{"email":"ana@example.com"}`, http.StatusServiceUnavailable, "mail_unavailable")
	r := newBrowser(t, node).open("/account").must("/account", http.StatusOK, "no envía correos")
	if strings.Contains(r.text, "<form") {
		t.Errorf("there is a form:\n%s", r.text)
	}
}
