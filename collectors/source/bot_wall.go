package source

import (
	"slices"
	"strings"

	"github.com/PuerkitoBio/goquery"
)

// challengeTextMax is how much a page that only challenges has to say. Marks that stand on good pages too, such as the script
// of a bot wall, count below it only.
const challengeTextMax = 800

// certainMarkers stand on no page but those that a bot wall shows instead of the one that was asked for. All in small letters.
func certainMarkers() [][]string {
	return [][]string{
		{"request unsuccessful. incapsula incident id"}, {"incapsula incident id", "_incapsula_resource"},
		{"<title>just a moment...</title>"}, {"attention required! | cloudflare"}, {"cf-error-details", "cloudflare ray id"},
		{"<title>access denied</title>", "reference #"}, {"errors.edgesuite.net"}, {"<title>request rejected</title>"},
		{"the requested url was rejected", "support id"}, {"captcha-delivery.com"}, {"px-captcha"}, {"sucuri website firewall"},
		{"please enable js and disable any ad blocker"},
	}
}

// possibleMarkers prove a challenge only on a page that says little else.
func possibleMarkers() []string {
	return []string{
		"_incapsula_resource", "incap_ses", "challenge-platform", "cf-chl", "cf_chl_", "cf-turnstile", "captcha", "akamai-bm",
		"sec-if-cpt-container", "bm-verify", "ak_bmsc", "checking your browser", "verify you are human", "verifique que es humano",
		"are you a robot", "unusual traffic", "ddos-guard", "enable javascript and cookies to continue", "acceso denegado",
	}
}

// Challenge says by which mark a document is the challenge of a bot wall and not a page of the institution, "" when it is none.
// Whoever fetches asks it of answers that are errors anyhow; Parse asks it of documents in which nothing was found.
func (d *Document) Challenge() string {
	if len(d.Body) > textBytesMax || sniffContent(d.Body) != "text" {
		return ""
	}
	return challengeMarker(decodeText(d))
}

// blockedFailure turns a failure to find anything into the failure that explains it: the document is the challenge of a bot
// wall. Where something was found that should be there, the page is the institution's own, whatever scripts it carries.
func blockedFailure(doc *Document, failure *Failure) *Failure {
	mark := doc.Challenge()
	if mark == "" || !slices.Contains([]FailureKind{Layout, WrongContent, Empty}, failure.Kind) {
		return nil
	}
	return &Failure{Kind: Blocked, Detail: "the page is the challenge of a bot wall (" + mark + ")", Cause: failure}
}

// challengeMarker is what shows that a text is a challenge, "" when nothing does.
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

// hasLittleText reports that a page has next to no text for people.
func hasLittleText(text string) bool {
	said := 0
	failure := catchFailure(func() {
		parseHTML(text).Find("body").Each(func(_ int, body *goquery.Selection) { said += len(visibleText(body.Get(0))) })
	})
	return failure == nil && said <= challengeTextMax
}
