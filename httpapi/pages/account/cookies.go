package account

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/tasard/tasard/engine/account"
)

const (
	sessionCookie = "tasard_session"
	loginCookie   = "tasard_login"
	// Browsers accept a cookie with this prefix only over https.
	securePrefix = "__Secure-"

	browserIDBytes = 16
	// loginLifetime is the lifetime of the login cookie. In that time a code can be used or requested again.
	loginLifetime = account.CodeLifetime + account.CodeResendAfter
)

// loginState is the content of the login cookie: a random id to which form tokens are bound, and the e-mail address for
// which a code was requested.
type loginState struct {
	browserID string // hexadecimal
	email     account.Email
}

// encode returns the id, a dot, and the e-mail address in base64url.
func (l loginState) encode() string {
	return l.browserID + "." + base64.RawURLEncoding.EncodeToString([]byte(l.email.String()))
}

// parseLoginState is the inverse of encode.
func parseLoginState(value string) (loginState, bool) {
	encodedID, encodedEmail, ok := strings.Cut(value, ".")
	id, err := hex.DecodeString(encodedID)
	if !ok || err != nil || len(id) != browserIDBytes {
		return loginState{}, false
	}
	address, err := base64.RawURLEncoding.DecodeString(encodedEmail)
	if err != nil {
		return loginState{}, false
	}
	if len(address) == 0 {
		return loginState{browserID: encodedID}, true
	}
	email, err := account.ParseEmail(string(address))
	return loginState{encodedID, email}, err == nil
}

// cookieName returns the name of a cookie, with securePrefix if the site is secure.
func (p *Pages) cookieName(name string) string {
	if p.config.Frame.Secure() {
		return securePrefix + name
	}
	return name
}

// setCookie sets a cookie for the paths of the account pages in all languages. If lifetime is zero, it deletes the
// cookie.
func (p *Pages) setCookie(w http.ResponseWriter, name, value string, lifetime time.Duration) {
	age := int(lifetime / time.Second)
	if age <= 0 {
		value, age = "", -1
	}
	for _, path := range p.paths {
		//nolint:gosec // G124: Secure is off only where nothing but plain HTTP is spoken, and a browser would drop the cookie
		http.SetCookie(w, &http.Cookie{
			Name: p.cookieName(name), Value: value, Path: path, MaxAge: age,
			HttpOnly: true, Secure: p.config.Frame.Secure(), SameSite: http.SameSiteStrictMode,
		})
	}
}

// cookie returns the value of a cookie. It returns "" if there are two cookies with the name, because one may be set by
// another subdomain.
func (p *Pages) cookie(r *http.Request, name string) string {
	cookies := r.CookiesNamed(p.cookieName(name))
	if len(cookies) != 1 {
		return ""
	}
	return cookies[0].Value
}

// session returns the token in the session cookie, which may have expired.
func (p *Pages) session(r *http.Request) (account.Secret, bool) {
	value := p.cookie(r, sessionCookie)
	return account.SecretOf(value), strings.HasPrefix(value, account.SessionPrefix)
}
