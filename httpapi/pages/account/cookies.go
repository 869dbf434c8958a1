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
	// securePrefix makes browsers refuse a cookie of this name that came without TLS.
	securePrefix = "__Secure-"

	loginNumberBytes = 16
	// loginLifetime is how long a browser remembers on the way to a session, the e-mail address included: as long as a code lasts and
	// one can be asked for again.
	loginLifetime = account.CodeLifetime + account.CodeResendAfter
)

// loginState is what a browser holds on its way to a session: a number, to which its forms are bound, and the address that it has asked a
// code for.
type loginState struct {
	number string // in hexadecimal digits
	email  account.Email
}

// encode is the value of the cookie: the number, a dot, the address as base64 for URLs.
func (l loginState) encode() string {
	return l.number + "." + base64.RawURLEncoding.EncodeToString([]byte(l.email.String()))
}

// parseLoginState takes only what text gives.
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

// cookieName is the name under which a cookie travels.
func (p *Pages) cookieName(name string) string {
	if p.config.Secure {
		return securePrefix + name
	}
	return name
}

// setCookie gives a browser a cookie for the pages of each language, and for nothing else: not a page of rates, not the API. A
// lifetime of zero takes it away.
func (p *Pages) setCookie(w http.ResponseWriter, name, value string, lifetime time.Duration) {
	age := int(lifetime / time.Second)
	if age <= 0 {
		value, age = "", -1
	}
	for _, path := range p.paths {
		//nolint:gosec // G124: Secure is off only where nothing but plain HTTP is spoken, and a browser would drop the cookie
		http.SetCookie(w, &http.Cookie{
			Name: p.cookieName(name), Value: value, Path: path, MaxAge: age,
			HttpOnly: true, Secure: p.config.Secure, SameSite: http.SameSiteStrictMode,
		})
	}
}

// cookie is what a browser sent. Two of one name count as none: one of them is not ours.
func (p *Pages) cookie(r *http.Request, name string) string {
	found := r.CookiesNamed(p.cookieName(name))
	if len(found) != 1 {
		return ""
	}
	return found[0].Value
}

// session is the token that a browser holds; whether it opens anything the accounts tell.
func (p *Pages) session(r *http.Request) (account.Secret, bool) {
	value := p.cookie(r, sessionCookie)
	return account.SecretOf(value), strings.HasPrefix(value, account.SessionPrefix)
}
