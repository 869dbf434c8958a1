package account

import (
	"net/http"
	"net/url"
	"strings"
)

// isCrossSite reports whether a page of another site sent the request. It adds to SameSite cookies and form tokens.
// Programs send neither header.
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
		return true // "null": the origin is hidden
	}
	return !strings.EqualFold(at.Host, r.Host) && (p.publicHost == "" || !strings.EqualFold(at.Host, p.publicHost))
}
