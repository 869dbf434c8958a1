package account

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	. "maragu.dev/gomponents"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/pages"
)

const (
	formBytesMax = 4 << 10
	formField    = "form" // the token
)

// pageContext is one request with what its browser holds.
type pageContext struct {
	p *Pages
	w http.ResponseWriter
	r *pages.Request
	l *pages.Localizer

	login      loginState
	hasLogin   bool // login was sent
	session    account.Secret
	hasSession bool       // session was sent; whether it opens anything the accounts tell
	posted     url.Values // what a form sent in its body
}

// withContext hands a handler the request with its cookies.
func (p *Pages) withContext(handle func(*pageContext)) pages.Handler {
	return func(w http.ResponseWriter, r *pages.Request) {
		v := &pageContext{p: p, w: w, r: r, l: p.texts.In(r)}
		v.login, v.hasLogin = parseLoginState(p.cookie(r.Request, loginCookie))
		v.session, v.hasSession = p.session(r.Request)
		w.Header().Set("Cache-Control", "no-store")
		handle(v)
	}
}

// withForm is visited for forms: what no form of ours sends, and what a page of another site sends, is refused unread.
func (p *Pages) withForm(handle func(*pageContext)) pages.Handler {
	return p.withContext(func(v *pageContext) {
		kind, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
		if err != nil || kind != "application/x-www-form-urlencoded" || p.isCrossSite(v.r.Request) {
			p.config.Frame.BadRequest(v.w, v.r)
			return
		}
		v.r.Body = http.MaxBytesReader(v.w, v.r.Body, formBytesMax)
		if err := v.r.ParseForm(); err != nil {
			p.config.Frame.BadRequest(v.w, v.r)
			return
		}
		v.posted = v.r.PostForm //nolint:forbidigo // what was read from this request's body; not http.PostForm, which sends one
		handle(v)
	})
}

// field is what was typed, without blanks around it. Only the body counts: nothing is taken from a URL.
func (v *pageContext) field(name string) string { return strings.TrimSpace(v.posted.Get(name)) }

// digits is field without the blanks and hyphens that people put into numbers.
func (v *pageContext) digits(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || c == '-' {
			return -1
		}
		return c
	}, v.field(name))
}

// tokenOwner is whom the forms of this browser belong to: its session, or else the number that it has on its way to one.
func (v *pageContext) tokenOwner() tokenOwner {
	if v.hasSession {
		return tokenOwner(v.session.Digest())
	}
	return sha256.Sum256([]byte(v.login.number))
}

// token makes the token of a form.
func (v *pageContext) token(purpose string) string { return v.p.forms.issue(purpose, v.tokenOwner()) }

// hasLoginToken tells whether the form came with a good token of this browser.
func (v *pageContext) hasLoginToken(purpose string) bool {
	return (v.hasLogin || v.hasSession) && v.p.forms.isValid(v.posted.Get(formField), purpose, v.tokenOwner())
}

// setLoginCookie gives the browser a number for its forms, if it has none, and the address that it asked a code for, if one is given.
func (v *pageContext) setLoginCookie(email account.Email) error {
	if v.hasLogin && email.IsZero() {
		return nil
	}
	if !v.hasLogin {
		var number [loginNumberBytes]byte
		if _, err := io.ReadFull(v.p.config.Random, number[:]); err != nil {
			return fmt.Errorf("draw a number for a browser: %w", err)
		}
		v.login, v.hasLogin = loginState{number: hex.EncodeToString(number[:])}, true
	}
	lifetime := formLifetime
	if !email.IsZero() {
		v.login.email, lifetime = email, loginLifetime
	}
	v.p.setCookie(v.w, loginCookie, v.login.encode(), lifetime)
	return nil
}

// redirect ends a request with another page, named by its Spanish path, in the language of this one.
func (v *pageContext) redirect(page string) {
	v.w.Header().Set("Location", v.r.Language.Path(page))
	v.w.WriteHeader(http.StatusSeeOther)
}

// write answers a page of the account.
func (v *pageContext) write(status int, title string, body Group) {
	v.p.config.Frame.Write(v.w, v.r, &pages.Document{
		Body: body, Title: v.l.Str(title), Status: status, Section: rootPage, NoIndex: true,
		Styles: []string{styleAsset}, Scripts: []string{copyAsset, scriptAsset},
	})
}

// log writes down what happened on the way to a key, never who or what it was asked with. Refusals for load or for a limit are left
// out, as the API does.
func (v *pageContext) log(operation string, status int, refused engine.Code) {
	switch refused {
	case engine.CodeRateLimited, engine.CodeRequestedTooSoon, engine.CodeOverloaded, engine.CodeReadOnly, engine.CodeDataUnavailable:
		return
	}
	v.p.config.Logger.LogAttrs(context.Background(), slog.LevelInfo, "account page",
		slog.String("requestId", v.r.ID), slog.String("operation", operation), slog.Int("status", status),
		slog.String("code", string(refused)), slog.String("network", account.LoggedNetwork(v.r.Address)))
}
