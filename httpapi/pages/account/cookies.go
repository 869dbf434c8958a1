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
	// Browsers accept this prefix only from https.
	securePrefix = "__Secure-"

	loginNumberBytes = 16
	// loginLifetime is how long the login cookie lasts: a code may be used, and requested again, meanwhile.
	loginLifetime = account.CodeLifetime + account.CodeResendAfter
)

// loginState is the content of the login cookie: a number to which forms are bound, and the e-mail address of the
// requested code.
type loginState struct {
	number string // hexadecimal
	email  account.Email
}

// encode returns the number, a dot, and the e-mail address in base64url.
func (l loginState) encode() string {
	return l.number + "." + base64.RawURLEncoding.EncodeToString([]byte(l.email.String()))
}

// parseLoginState is the inverse of encode.
func parseLoginState(value string) (loginState, bool) {
	number, encoded, found := strings.Cut(value, ".")
	raw, err := hex.DecodeString(number)
	if !found || err != nil || len(raw) != loginNumberBytes {
		return loginState{}, false
	}
	address, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return loginState{}, false
	}
	if len(address) == 0 {
		return loginState{number: number}, true
	}
	email, err := account.ParseEmail(string(address))
	return loginState{number, email}, err == nil
}

// cookieName returns the name of a cookie, with the prefix if Secure is set.
func (p *Pages) cookieName(name string) string {
	if p.config.Frame.Secure() {
		return securePrefix + name
	}
	return name
}

// setCookie sets a cookie for the account pages of each language only. A lifetime of zero deletes it.
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

// cookie returns the value of a cookie. Two cookies of one name are ignored: one may be set by another subdomain.
func (p *Pages) cookie(r *http.Request, name string) string {
	found := r.CookiesNamed(p.cookieName(name))
	if len(found) != 1 {
		return ""
	}
	return found[0].Value
}

// session returns the token in the session cookie, which may have expired.
func (p *Pages) session(r *http.Request) (account.Secret, bool) {
	value := p.cookie(r, sessionCookie)
	return account.SecretOf(value), strings.HasPrefix(value, account.SessionPrefix)
}
