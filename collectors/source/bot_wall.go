package source

import (
	"slices"
	"strings"

	"github.com/PuerkitoBio/goquery"
)

// challengeTextMax is the maximum text of a page that only challenges. Markers that valid pages have too, such as
// scripts of a bot wall, count only below it.
const challengeTextMax = 800

// certainMarkers, in lower case, occur only on challenge pages. All strings of a list must occur.
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

// Challenge returns the marker by which a document is the challenge page of a bot wall, otherwise "". It is meant
// for error responses and for documents without rates.
func (d *Document) Challenge() string {
	if len(d.Body) > textBytesMax || sniffContent(d.Body) != "text" {
		return ""
	}
	return challengeMarker(decodeText(d))
}

// blockedFailure returns the failure of a challenge page in place of a failure to find anything, or nil. A page with
// some of its content is not a challenge, whatever scripts it has.
func blockedFailure(doc *Document, failure *Failure) *Failure {
	mark := doc.Challenge()
	if mark == "" || !slices.Contains([]FailureKind{Layout, WrongContent, Empty}, failure.Kind) {
		return nil
	}
	return &Failure{Kind: Blocked, Detail: "the page is the challenge of a bot wall (" + mark + ")", Cause: failure}
}

func challengeMarker(text string) string {
	lower := strings.ToLower(collapseSpaces(text))
	for _, marks := range certainMarkers() {
		all := true
		for _, mark := range marks {
			all = all && strings.Contains(lower, mark)
		}
		if all {
			return marks[0]
		}
	}
	for _, mark := range possibleMarkers() {
		if strings.Contains(lower, mark) && hasLittleText(text) {
			return mark
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
