package account

import (
	"flag"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/pages"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// hold holds a page, without its frame, against a golden file. Tokens differ each time.
func hold(t *testing.T, name string, page *seen) {
	t.Helper()
	text := regexp.MustCompile(`(name="form" value=")[^"]+`).ReplaceAllString(page.main(), "${1}TOKEN")
	text = strconv.Itoa(page.status) + " " + page.header.Get("Retry-After") + "\n" + text + "\n"
	file := filepath.Join("testdata", name+".html")
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs; with -update it is rewritten. It is\n%s", file, text)
	}
}

// TestGolden_K1_TheWholeWay: every page from an address to a key and back, in both languages.
func TestGolden_K1_TheWholeWay(t *testing.T) {
	for _, language := range pages.Languages() {
		b := newWorld(t, nil).browser(language)
		golden := func(name string) { t.Helper(); hold(t, name+"."+string(language), b.page) }
		b.get(b.root)
		golden("welcome")
		b.submit("/codes", "email", "Ana@Example.do ")
		b.follow()
		golden("code")
		b.submit("/sessions", "code", " 0071-2345 ")
		if b.page.status == http.StatusSeeOther {
			t.Fatal("the form needs its e-mail address")
		}
		b.submit("/sessions", "code", " 0071-2345 ", "email", "ana@example.do")
		b.follow()
		golden("home-empty")
		b.submit("/keys", "name", "servidor «A» & <B>")
		golden("made")
		b.w.pass(time.Minute)
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

// TestGolden_States: what the operator has set up, and what has happened to the account.
func TestGolden_States(t *testing.T) {
	for _, language := range pages.Languages() {
		for name, state := range map[string]struct {
			config func(*Config)
			world  func(*world)
			inside bool
		}{
			"mail-off":     {func(c *Config) { c.Mail = MailOff }, nil, false},
			"mail-printed": {func(c *Config) { c.Mail = MailPrinted }, nil, false},
			"announced":    {nil, func(w *world) { w.announced.RequiredAt = w.now.Add(20 * 24 * time.Hour) }, false},
			"limits-off":   {nil, func(w *world) { w.enforced = false }, true},
			"suspended":    {nil, func(w *world) { w.suspended = true }, true},
			"required":     {nil, func(w *world) { w.announced.RequiredAt = w.now.Add(-time.Hour) }, true},
		} {
			w := newWorld(t, state.config)
			if state.world != nil {
				state.world(w)
			}
			b := w.browser(language)
			if state.inside {
				b.signIn("ana@example.do").submit("/keys", "name", "servidor")
			}
			b.get(b.root)
			hold(t, name+"."+string(language), b.page)
		}
	}
}

// planted are the faults that any form may meet.
func planted() map[string]*engine.Error {
	return map[string]*engine.Error{
		"rate_limited":     {Code: engine.CodeRateLimited, RetryAfter: 47 * time.Minute},
		"overloaded":       {Code: engine.CodeOverloaded, RetryAfter: time.Second},
		"read_only":        {Code: engine.CodeReadOnly, RetryAfter: 30 * time.Second},
		"data_unavailable": {Code: engine.CodeDataUnavailable, RetryAfter: 2 * time.Second},
	}
}

// TestGolden_Faults: each refusal stands in words beside the form, with its status and how long to wait.
func TestGolden_Faults(t *testing.T) {
	for _, language := range pages.Languages() {
		check := func(name string, status int, walk func(b *browser)) {
			t.Helper()
			b := newWorld(t, nil).browser(language)
			walk(b)
			if b.page.status != status {
				t.Errorf("%s: %d, want %d", name, b.page.status, status)
			}
			hold(t, "fault-"+name+"."+string(language), b.page)
		}
		check("email", 422, func(b *browser) { b.get(b.root); b.submit("/codes", "email", `a"><b@example`) })
		check("too-soon", 429, func(b *browser) {
			b.get(b.root)
			b.submit("/codes", "email", "ana@example.do")
			b.follow()
			b.w.pass(2500 * time.Millisecond)
			b.submit("/codes")
		})
		check("digits", 422, func(b *browser) {
			b.get(b.root)
			b.submit("/codes", "email", "ana@example.do")
			b.follow()
			b.submit("/sessions", "code", "1234567", "email", "ana")
		})
		check("invalid-code", 422, func(b *browser) {
			b.get(b.root)
			b.submit("/codes", "email", "ana@example.do")
			b.follow()
			b.submit("/sessions", "code", "99999999", "email", "ana@example.do")
		})
		check("name", 422, func(b *browser) {
			b.signIn("ana@example.do").submit("/keys", "name", strings.Repeat("ñ", 81))
		})
		check("session-over", 403, func(b *browser) {
			b.signIn("ana@example.do").w.pass(engine.SessionLifetime)
			b.submit("/keys", "name", "x")
		})
		check("key-limit", 409, func(b *browser) {
			b.signIn("ana@example.do")
			third := b.form("/keys", url.Values{})
			b.w.pass(time.Minute)
			other := b.w.browser(language)
			other.signIn("ana@example.do")
			other.submit("/keys")
			other.get(b.root)
			other.submit("/keys")
			b.send(http.MethodPost, b.root+"/keys", third)
		})
		check("unknown-key", 404, func(b *browser) {
			b.signIn("ana@example.do").submit("/keys")
			b.get(b.root)
			form := b.form("/keys/key_1/revoke", nil)
			b.send(http.MethodPost, b.root+"/keys/key_9/revoke", form)
		})
	}
}

// TestGolden_FaultsOfAnyForm: a brake, load, a full disk and a start stand on each of the forms.
func TestGolden_FaultsOfAnyForm(t *testing.T) {
	for _, language := range pages.Languages() {
		for code, err := range planted() {
			for form, prepare := range map[string]func(b *browser){
				"codes": func(b *browser) { b.get(b.root) },
				"sessions": func(b *browser) {
					b.get(b.root)
					b.submit("/codes", "email", "ana@example.do")
					b.follow()
				},
				"keys": func(b *browser) { b.signIn("ana@example.do") },
			} {
				b := newWorld(t, nil).browser(language)
				prepare(b)
				b.w.fault = err
				b.submit("/"+form, "email", "ana@example.do", "code", goodCode, "name", "servidor")
				if b.page.status != faultOf(err).Status || b.page.header.Get("Retry-After") == "" {
					t.Errorf("%s, %s: %d", form, code, b.page.status)
				}
				hold(t, "fault-"+form+"-"+code+"."+string(language), b.page)
			}
		}
	}
}

// TestK3_TheSamePage: nothing that a visitor sees, cookies and headers included, tells whether an address has an account.
func TestK3_TheSamePage(t *testing.T) {
	see := func(email string) string {
		w := newWorld(t, nil)
		w.browser(pages.Spanish).signIn("ana@example.do").submit("/keys")
		w.pass(time.Hour)
		b := w.browser(pages.Spanish)
		b.get(b.root)
		b.submit("/codes", "email", email)
		b.follow()
		b.submit("/sessions", "code", "99999999", "email", email)
		b.submit("/codes")
		var all strings.Builder
		for _, page := range b.all {
			header := page.header.Clone()
			header.Del("Set-Cookie")
			text := regexp.MustCompile(`value="[^"]{40,}"`).ReplaceAllString(page.body, "")
			all.WriteString(strings.ReplaceAll(text, email, "EMAIL"))
			all.WriteString(strconv.Itoa(page.status))
			if err := header.Write(&all); err != nil {
				t.Fatal(err)
			}
			for _, cookie := range page.header.Values("Set-Cookie") {
				_, attributes, _ := strings.Cut(cookie, ";")
				all.WriteString(attributes)
			}
		}
		return all.String()
	}
	if known, unknown := see("ana@example.do"), see("eva@example.do"); known != unknown {
		t.Errorf("known:\n%s\nunknown:\n%s", known, unknown)
	}
}

// TestK2_ClientAddress: the brakes see the client's address.
func TestK2_ClientAddress(t *testing.T) {
	w := newWorld(t, nil)
	w.browser(pages.English).signIn("ana@example.do")
	if w.from != netip.MustParseAddr("192.0.2.7") {
		t.Errorf("from %s", w.from)
	}
}

// TestK2_OneMinuteLater: another code can be asked for on the page of the code.
func TestK2_OneMinuteLater(t *testing.T) {
	b := newWorld(t, nil).browser(pages.Spanish)
	b.get(b.root)
	b.submit("/codes", "email", "ana@example.do")
	b.follow()
	b.w.pass(engine.CodeResendAfter)
	b.submit("/codes")
	if b.follow(); b.page.status != http.StatusOK || b.page.path != "/account/code" {
		t.Errorf("%d %s", b.page.status, b.page.path)
	}
}

// TestInternalErrors_TellNothing: a fault that no rule names is a 500 without its cause, which is in the log (E5).
func TestInternalErrors_TellNothing(t *testing.T) {
	for path, prepare := range map[string]func(b *browser){
		"/codes": func(b *browser) { b.get(b.root) },
		"/sessions": func(b *browser) {
			b.get(b.root)
			b.submit("/codes", "email", "ana@example.do")
			b.follow()
		},
		"/keys": func(b *browser) { b.signIn("ana@example.do") },
		"/keys/key_1/revoke": func(b *browser) {
			b.signIn("ana@example.do").submit("/keys")
			b.get(b.root)
		},
	} {
		b := newWorld(t, nil).browser(pages.Spanish)
		prepare(b)
		b.w.fault = &engine.Error{Code: engine.CodeInternalError, Message: "planted cause"}
		b.submit(path, "email", "ana@example.do", "code", goodCode)
		if b.page.status != http.StatusInternalServerError || strings.Contains(b.page.body, "planted") || !strings.Contains(b.w.logs.String(), "planted cause") {
			t.Errorf("%s: %d\n%s\n%s", path, b.page.status, b.page.main(), b.w.logs)
		}
	}
}
