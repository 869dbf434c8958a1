package account

import (
	"net/http"
	"net/url"
	"strings"
)

// isCrossSite tells what a browser sends for a page of another site (S11). Cookies of another site's request are held back by
// SameSite, and its forms lack a token: this is the third door. Programs send neither header.
func (p *Pages) isCrossSite(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site != "same-origin" && site != "none"
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	at, err := url.Parse(origin)
	if err != nil || at.Host == "" {
		return true // null: a page that hides where it is from
	}
	return !strings.EqualFold(at.Host, r.Host) && (p.publicHost == "" || !strings.EqualFold(at.Host, p.publicHost))
}
