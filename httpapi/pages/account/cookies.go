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
	// securePrefix begins the name of a cookie that browsers accept only over https.
	securePrefix = "__Secure-"

	browserIDBytes = 16
	// loginLifetime is the lifetime of the login cookie after a code is requested. When the cookie expires, the code
	// has expired and another code can be requested.
	loginLifetime = account.CodeLifetime + account.CodeResendAfter
	// knownBrowserLifetime is the lifetime of the login cookie after a login. With the cookie, the browser has login
	// limits of its own, which other clients cannot use up; see account.Requester.
	knownBrowserLifetime = 365 * 24 * time.Hour
)

// loginState is the content of the login cookie.
type loginState struct {
	browserID string        // random, hexadecimal; login codes are bound to it
	email     account.Email // address for which a login code was requested, or zero
}

// encode returns the id of the browser, a dot, and the e-mail address in base64url.
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

// cookieName returns the name of a cookie, with securePrefix for an https request.
func (p *Pages) cookieName(r *http.Request, name string) string {
	if p.config.Frame.Secure(r) {
		return securePrefix + name
	}
	return name
}

// setCookie sets a cookie for the account pages' paths in all languages. A zero lifetime deletes the cookie.
func (v *pageContext) setCookie(name, value string, lifetime time.Duration) {
	p := v.p
	age := int(lifetime / time.Second)
	if age <= 0 {
		value, age = "", -1
	}
	for _, path := range p.paths {
		//nolint:gosec // G124: Secure is off only for a site with plain HTTP, where a browser would drop a secure cookie
		http.SetCookie(v.w, &http.Cookie{
			Name: p.cookieName(v.r.Request, name), Value: value, Path: path, MaxAge: age,
			HttpOnly: true, Secure: p.config.Frame.Secure(v.r.Request), SameSite: http.SameSiteStrictMode,
		})
	}
}

// cookie returns the value of a cookie. If two cookies have the name, it returns "", because another subdomain may have
// set one of them.
func (p *Pages) cookie(r *http.Request, name string) string {
	cookies := r.CookiesNamed(p.cookieName(r, name))
	if len(cookies) != 1 {
		return ""
	}
	return cookies[0].Value
}

// session returns the token in the session cookie, and whether there is one. The session may have expired.
func (p *Pages) session(r *http.Request) (account.Secret, bool) {
	value := p.cookie(r, sessionCookie)
	return account.SecretOf(value), strings.HasPrefix(value, account.SessionPrefix)
}
