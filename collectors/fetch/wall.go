package fetch

import (
	"bytes"
	"net/http"
)

// wallSigns lists what the error pages of bot walls contain, in small letters. A page of the institution itself has none of them.
func wallSigns() []string {
	return []string{
		"_incapsula_resource", "incapsula incident id", "imperva",
		"cf-chl", "cf_chl_", "/cdn-cgi/challenge-platform", "attention required! | cloudflare", "<title>just a moment",
		"errors.edgesuite.net", "ak_bmsc", "sec-if-cpt-container",
		"the requested url was rejected. please consult with your administrator",
		"sucuri website firewall", "ddos-guard", "px-captcha",
	}
}

// isWall reports that an error comes from a bot wall and not from the site behind it. Parse recognises walls that answer 200.
func isWall(header http.Header, body []byte) bool {
	if header.Get("Cf-Mitigated") != "" {
		return true
	}
	small := bytes.ToLower(body)
	for _, sign := range wallSigns() {
		if bytes.Contains(small, []byte(sign)) {
			return true
		}
	}
	return false
}
