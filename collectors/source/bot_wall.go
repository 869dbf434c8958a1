package source

import (
	"slices"
	"strings"

	"github.com/PuerkitoBio/goquery"
)

// challengeTextMax is the maximum number of bytes of visible text on a challenge page. possibleMarkers, which valid
// pages can have too, count only on pages with at most this much text.
const challengeTextMax = 800

// certainMarkers occur only on challenge pages. A page must have all strings of a list. They are in lower case.
func certainMarkers() [][]string {
	return [][]string{
		{"request unsuccessful. incapsula incident id"}, {"incapsula incident id", "_incapsula_resource"},
		{"<title>just a moment...</title>"}, {"attention required! | cloudflare"}, {"cf-error-details", "cloudflare ray id"},
		{"<title>access denied</title>", "reference #"}, {"errors.edgesuite.net"}, {"<title>request rejected</title>"},
		{"the requested url was rejected", "support id"}, {"captcha-delivery.com"}, {"px-captcha"}, {"sucuri website firewall"},
		{"please enable js and disable any ad blocker"},
	}
}

// possibleMarkers prove a challenge only on a page with little other text.
func possibleMarkers() []string {
	return []string{
		"_incapsula_resource", "incap_ses", "challenge-platform", "cf-chl", "cf_chl_", "cf-turnstile", "captcha", "akamai-bm",
		"sec-if-cpt-container", "bm-verify", "ak_bmsc", "checking your browser", "verify you are human", "verifique que es humano",
		"are you a robot", "unusual traffic", "ddos-guard", "enable javascript and cookies to continue", "acceso denegado",
	}
}

// Challenge returns the marker that shows that a document is the challenge page of a bot wall, or "" if it is not. Use
// it for error responses and for documents without rates.
func (d *Document) Challenge() string {
	if len(d.Body) > textBytesMax || sniffContent(d.Body) != "text" {
		return ""
	}
	return challengeMarker(decodeText(d))
}

// blockedFailure returns the failure Blocked if nothing was read because the document is a challenge page, otherwise
// nil. Other kinds of failure mean that the page has some of its content, so it is not a challenge page.
func blockedFailure(doc *Document, failure *Failure) *Failure {
	marker := doc.Challenge()
	if marker == "" || !slices.Contains([]FailureKind{Layout, WrongContent, Empty}, failure.Kind) {
		return nil
	}
	return &Failure{Kind: Blocked, Detail: "the page is the challenge of a bot wall (" + marker + ")", Cause: failure}
}

func challengeMarker(text string) string {
	lower := strings.ToLower(collapseSpaces(text))
	for _, markers := range certainMarkers() {
		all := true
		for _, marker := range markers {
			all = all && strings.Contains(lower, marker)
		}
		if all {
			return markers[0]
		}
	}
	for _, marker := range possibleMarkers() {
		if strings.Contains(lower, marker) && hasLittleText(text) {
			return marker
		}
	}
	return ""
}

// hasLittleText reports whether a page has almost no visible text.
func hasLittleText(text string) bool {
	length := 0
	failure := catchFailure(func() {
		parseHTML(text).Find("body").Each(func(_ int, body *goquery.Selection) { length += len(visibleText(body.Get(0))) })
	})
	return failure == nil && length <= challengeTextMax
}
