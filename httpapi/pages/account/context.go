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
	"time"
	"unicode"

	. "maragu.dev/gomponents"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/pages"
)

const formBytesMax = 4 << 10

// pageContext is a request with its cookies and its form.
type pageContext struct {
	p *Pages
	w http.ResponseWriter
	r *pages.Request
	l *pages.Localizer

	login      loginState     // content of the login cookie
	hasLogin   bool           // the request has a valid login cookie
	session    account.Secret // session token from the session cookie
	hasSession bool           // the request has a session cookie, perhaps of an expired session
	formValues url.Values     // values from the request's body, without the URL query
}

// withContext returns a handler that calls handle with the cookies of the request.
func (p *Pages) withContext(handle func(*pageContext)) pages.Handler {
	return func(w http.ResponseWriter, r *pages.Request) {
		v := &pageContext{p: p, w: w, r: r, l: p.texts.In(r)}
		v.login, v.hasLogin = parseLoginState(p.cookie(r.Request, loginCookie))
		v.session, v.hasSession = p.session(r.Request)
		w.Header().Set("Cache-Control", "no-store")
		handle(v)
	}
}

// withForm is withContext for forms. It rejects cross-origin requests and all content types except that of HTML forms,
// before it reads the body.
func (p *Pages) withForm(handle func(*pageContext)) pages.Handler {
	return p.withContext(func(v *pageContext) {
		mediaType, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
		if err != nil || mediaType != "application/x-www-form-urlencoded" || p.origins.Check(v.r.Request) != nil {
			p.config.Frame.BadRequest(v.w, v.r)
			return
		}
		v.r.Body = http.MaxBytesReader(v.w, v.r.Body, formBytesMax)
		if err := v.r.ParseForm(); err != nil {
			p.config.Frame.BadRequest(v.w, v.r)
			return
		}
		v.formValues = v.r.PostForm //nolint:forbidigo // the field of Request, not http.PostForm, which sends a request
		handle(v)
	})
}

// value returns a field of the form without spaces at both ends. Query parameters are ignored.
func (v *pageContext) value(name string) string { return strings.TrimSpace(v.formValues.Get(name)) }

// digits returns a field of the form without spaces and hyphens.
func (v *pageContext) digits(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || c == '-' {
			return -1
		}
		return c
	}, v.value(name))
}

// requester returns the client for a code request or a login attempt.
func (v *pageContext) requester() account.Requester {
	from := account.Requester{Address: v.r.Address}
	if v.hasLogin {
		from.Browser = sha256.Sum256([]byte(v.login.browserID))
	}
	return from
}

// identifyBrowser gives a browser without a login cookie a random id; setLogin stores it in the cookie.
func (v *pageContext) identifyBrowser() error {
	if v.hasLogin {
		return nil
	}
	var id [browserIDBytes]byte
	if _, err := io.ReadFull(v.p.config.Random, id[:]); err != nil {
		return fmt.Errorf("generate an id for a browser: %w", err)
	}
	v.login, v.hasLogin = loginState{browserID: hex.EncodeToString(id[:])}, true
	return nil
}

// setLogin sets the login cookie. email is the address for which a code was requested, or zero.
func (v *pageContext) setLogin(email account.Email, lifetime time.Duration) {
	v.setCookie(loginCookie, loginState{v.login.browserID, email}.encode(), lifetime)
}

// redirect redirects to another page in the language of the request. page is the path of the page in Spanish.
func (v *pageContext) redirect(page string) {
	v.w.Header().Set("Location", v.r.Language.Path(page))
	v.w.WriteHeader(http.StatusSeeOther)
}

func (v *pageContext) write(status int, title string, body Group) {
	v.p.config.Frame.Write(v.w, v.r, &pages.Document{
		Body: body, Title: v.l.Str(title), Status: status, Section: rootPage, NoIndex: true,
		Styles: []string{styleAsset}, Scripts: []string{copyAsset, scriptAsset},
	})
}

// log logs an operation without e-mail address, login code or key. It does not log errors caused by load or limits.
func (v *pageContext) log(status int, code engine.Code) {
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		return
	}
	v.p.config.Logger.LogAttrs(context.Background(), slog.LevelInfo, "account page",
		slog.String("requestId", v.r.ID), slog.String("operation", v.r.Pattern), slog.Int("status", status),
		slog.String("code", string(code)), slog.String("network", fields.LoggedNetwork(v.r.Address)))
}
