package account

import (
	"flag"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/pages"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// compareGolden compares the content of a page with a golden file.
func compareGolden(t *testing.T, name string, page *response) {
	t.Helper()
	text := strconv.Itoa(page.status) + " " + page.header.Get("Retry-After") + "\n" +
		strings.ReplaceAll(page.main(), "><", ">\n<") + "\n"
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
		b.submit("/sessions", "code", " 0071-2345 ")
		if b.page.status == http.StatusSeeOther {
			t.Fatal("the form needs its e-mail address")
		}
		b.submit("/sessions", "code", " 0071-2345 ", "email", "ana@example.do")
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
			"suspended":    {func(w *fakeAccounts) { w.suspended = true }, true},
			"required":     {func(w *fakeAccounts) { w.keyPolicy.RequiredAt = w.now.Add(-time.Hour) }, true},
		} {
			w := newFakeAccounts(t)
			state.world(w)
			b := w.browser(language)
			if state.inside {
				b.signIn("ana@example.do").submit("/keys", "name", "servidor")
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
		check("too-soon", func(b *browser) {
			b.askCode("ana@example.do").accounts.advance(2500 * time.Millisecond)
			b.submit("/codes")
		})
		check("digits", func(b *browser) { b.askCode("ana@example.do").submit("/sessions", "code", "1234567", "email", "ana") })
		check("invalid-code", func(b *browser) {
			b.askCode("ana@example.do").submit("/sessions", "code", "99999999", "email", "ana@example.do")
		})
		check("name", func(b *browser) { b.signIn("ana@example.do").submit("/keys", "name", strings.Repeat("ñ", 81)) })
		check("session-over", func(b *browser) {
			b.signIn("ana@example.do").accounts.advance(account.SessionLifetime)
			b.submit("/keys", "name", "x")
		})
		check("key-limit", func(b *browser) {
			third := b.signIn("ana@example.do").form("/keys")
			b.accounts.advance(time.Minute)
			other := b.accounts.browser(language).signIn("ana@example.do")
			other.submit("/keys")
			other.get(b.root)
			other.submit("/keys")
			b.send(http.MethodPost, b.root+"/keys", third)
		})
		check("unknown-key", func(b *browser) {
			b.signIn("ana@example.do").submit("/keys")
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
		"sessions": func(b *browser) { b.askCode("ana@example.do") },
		"keys":     func(b *browser) { b.signIn("ana@example.do") },
		"keys/key_1/revoke": func(b *browser) {
			b.signIn("ana@example.do").submit("/keys")
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
				b.submit("/"+form, "email", "ana@example.do", "code", goodCode, "name", "servidor")
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
		w.browser(pages.Spanish).signIn("ana@example.do").submit("/keys")
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
	if known, unknown := see("ana@example.do"), see("eva@example.do"); known != unknown {
		t.Errorf("known:\n%s\nunknown:\n%s", known, unknown)
	}
}
