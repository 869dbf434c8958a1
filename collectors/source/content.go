package source

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	textunicode "golang.org/x/text/encoding/unicode"

	"github.com/tasard/tasard/collectors/markup"
	"github.com/tasard/tasard/collectors/values"
)

// textBytesMax bounds a text document. Package fetch has a smaller limit; only documents from files can be this large.
const textBytesMax = 8 << 20

// checkedText returns the text of a document, or "" for a workbook. It fails if the document is not of the kind that
// the definition of the page expects: HTML, JSON, text or a workbook.
func checkedText(doc *Document, page *Page) (string, *Failure) {
	wantWorkbook := page.Extract.Method == XLSXRows
	isWorkbook := bytes.HasPrefix(doc.Body, []byte("PK\x03\x04"))
	switch {
	case isBlankDocument(doc.Body):
		return "", Failf(Empty, "the document has %d bytes and no content", len(doc.Body))
	case wantWorkbook && isWorkbook:
		return "", nil
	case bytes.HasPrefix(doc.Body, []byte("\xd0\xcf\x11\xe0")): // of Excel 97 to 2003
		return "", Failf(WrongContent, "an old workbook (.xls); save it as .xlsx first")
	case wantWorkbook:
		return "", Failf(WrongContent, "want a workbook, got a document beginning with %.8q%s", doc.Body, contentTypeNote(doc))
	case !isText(doc.Body):
		return "", Failf(WrongContent, "want text, got a document beginning with %.8q%s", doc.Body, contentTypeNote(doc))
	case len(doc.Body) > textBytesMax:
		return "", Failf(WrongContent, "the document has %d bytes, at most %d are accepted", len(doc.Body), textBytesMax)
	}
	text := decodeText(doc)
	return text, checkText(text, page)
}

// isText reports whether a document seems to be text, by its first bytes.
func isText(body []byte) bool {
	for _, signature := range []string{"PK", "%PDF", "\x1f\x8b", "\x89PNG", "\xff\xd8\xff", "GIF8", "RIFF"} {
		if bytes.HasPrefix(body, []byte(signature)) {
			return false
		}
	}
	return hasUTF16Mark(body) || bytes.IndexByte(body[:min(len(body), 1024)], 0) < 0
}

// isBlankDocument reports whether a document consists of white space, NUL bytes and byte order marks.
func isBlankDocument(body []byte) bool {
	return bytes.IndexFunc(body, func(r rune) bool { return !unicode.IsSpace(r) && r != 0 && r != '\ufeff' }) < 0
}

func contentTypeNote(doc *Document) string {
	if doc.ContentType == "" {
		return ""
	}
	return ", which the server calls " + quoted(doc.ContentType)
}

// decodeText returns the document in UTF-8. Valid UTF-8 stays as it is, even if the Content-Type header names another
// encoding. Otherwise the document is in UTF-16 with a byte order mark, or the bytes that are not UTF-8 are in
// Windows-1252, of which Latin-1 is a part: some pages mix both, whatever they say.
func decodeText(doc *Document) string {
	body := bytes.TrimPrefix(doc.Body, []byte("\xef\xbb\xbf"))
	if utf8.Valid(body) {
		return string(body)
	}
	if hasUTF16Mark(body) {
		utf16 := textunicode.UTF16(textunicode.LittleEndian, textunicode.UseBOM)
		text, _ := utf16.NewDecoder().Bytes(body) // the decoder replaces invalid bytes
		return string(text)
	}
	var text strings.Builder
	for len(body) > 0 {
		r, size := utf8.DecodeRune(body)
		if r == utf8.RuneError && size == 1 {
			r = charmap.Windows1252.DecodeByte(body[0])
		}
		text.WriteRune(r)
		body = body[size:]
	}
	return text.String()
}

func hasUTF16Mark(body []byte) bool {
	return bytes.HasPrefix(body, []byte("\xff\xfe")) || bytes.HasPrefix(body, []byte("\xfe\xff"))
}

// checkText returns a failure if a text is something else than HTML, or if it is a truncated HTML page. parseJSON does
// that for JSON.
func checkText(text string, page *Page) *Failure {
	extract := &page.Extract
	start := strings.TrimLeftFunc(text, values.IsSpace)
	lower := strings.ToLower(start)
	isPage := strings.HasPrefix(lower, "<!doctype html") || strings.HasPrefix(lower, "<html")
	switch {
	case extract.Method == JSONFields || extract.Method == JSONRows || extract.Method == TextRegex && extract.Text.At == "" && !isPage:
	case !strings.Contains(start, "<") || strings.HasPrefix(start, "{") || strings.HasPrefix(start, "["):
		return Failf(WrongContent, "want HTML, got text beginning with %s", quoted(start))
	case strings.HasPrefix(lower, "<?xml") && !strings.Contains(lower, "<html"):
		return Failf(WrongContent, "want HTML, got XML beginning with %s", quoted(start))
	case strings.Contains(lower, "<html") && !strings.Contains(lower, "</html"):
		return Failf(WrongContent, "the page was cut off: after %d bytes there is no </html>", len(text))
	}
	return nil
}

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
	text := decodeText(d)
	lower := strings.ToLower(values.CollapseSpaces(text))
	for _, marker := range challengeMarkers() {
		if strings.Contains(lower, marker) && hasLittleText(text) {
			return marker
		}
	}
	return ""
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
