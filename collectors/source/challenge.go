package source

import (
	"slices"
	"strings"

	"github.com/tasard/tasard/collectors/markup"
	"github.com/tasard/tasard/collectors/values"
)

// challengeTextMax is the maximum number of bytes of visible text on a challenge page. A bot protection sends such a
// page instead of the real one to a client that may be a program.
const challengeTextMax = 1500

// challengeMarkers returns strings in lower case that challenge pages have. Valid pages may have them too, but with
// more text than challengeTextMax.
func challengeMarkers() []string {
	return []string{
		"incapsula incident id", "_incapsula_resource", "incap_ses", "just a moment...", "attention required! | cloudflare", "cf-error-details",
		"challenge-platform", "cf-chl", "cf_chl_", "cf-turnstile", "errors.edgesuite.net", "<title>access denied</title>", "<title>request rejected</title>",
		"the requested url was rejected", "captcha", "sucuri website firewall", "please enable js and disable any ad blocker", "akamai-bm",
		"sec-if-cpt-container", "bm-verify", "ak_bmsc", "checking your browser", "verify you are human", "verifique que es humano",
		"are you a robot", "unusual traffic", "ddos-guard", "enable javascript and cookies to continue", "acceso denegado",
	}
}

// Challenge returns the string that identifies the challenge page of a bot protection, or "" for any other document.
// Call it only for error responses and for documents without rates.
func (d *Document) Challenge() string {
	if len(d.Body) > textBytesMax || !isText(d.Body) {
		return ""
	}
	return challengeMarker(decodeText(d))
}

// blockedFailure returns a failure of kind Blocked if the document is a challenge page, otherwise nil. failure is the
// result of parsing the document. After a failure of kind Value, the document is not a challenge page, because it
// contains texts where prices should be.
func blockedFailure(doc *Document, failure *Failure) *Failure {
	marker := doc.Challenge()
	if marker == "" || !slices.Contains([]FailureKind{Layout, WrongContent, Empty}, failure.Kind) {
		return nil
	}
	return &Failure{Kind: Blocked, Detail: "the page is the challenge of a bot protection (" + marker + ")", Cause: failure}
}

func challengeMarker(text string) string {
	lower := strings.ToLower(values.CollapseSpaces(text))
	for _, marker := range challengeMarkers() {
		if strings.Contains(lower, marker) && hasLittleText(text) {
			return marker
		}
	}
	return ""
}

// hasLittleText reports whether a page has at most challengeTextMax bytes of visible text.
func hasLittleText(text string) bool {
	length := 0
	document, failure := parseHTML(text)
	if failure != nil {
		return false
	}
	for _, body := range markup.Find(document, "body") {
		length += len(markup.VisibleText(body))
	}
	return length <= challengeTextMax
}
