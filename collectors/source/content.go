package source

import (
	"bytes"
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
)

// textBytesMax is more than any page has. Documents from files have no other limit.
const textBytesMax = 8 << 20

// checkedText returns the text of a document of the kind that the method reads, "" for a workbook. Another kind is a
// failure.
func checkedText(doc *Document, page *Page) string {
	sheet := page.Extract.Method == XLSXRows
	found := sniffContent(doc.Body)
	switch {
	case found == "blank":
		failf(Empty, "the document has %d bytes and no content", len(doc.Body))
	case sheet && found == "workbook":
		return ""
	case sheet:
		failf(WrongContent, "want a workbook, got %s%s", found, contentTypeNote(doc))
	case found != "text":
		failf(WrongContent, "want text, got %s%s", found, contentTypeNote(doc))
	case len(doc.Body) > textBytesMax:
		failf(WrongContent, "the document has %d bytes, at most %d are accepted", len(doc.Body), textBytesMax)
	}
	if kind := binaryMediaType(doc.ContentType); kind != "" {
		failf(WrongContent, "want text, but the server says %s", quoted(kind))
	}
	text := decodeText(doc)
	checkText(text, page)
	return text
}

// signatures are the first bytes of documents that are not text.
func signatures() [][2]string {
	return [][2]string{
		{"PK\x03\x04", "workbook"}, {"\xd0\xcf\x11\xe0", "workbook"}, {"%PDF", "a PDF document"}, {"\x1f\x8b", "packed bytes (gzip)"},
		{"\x89PNG", "a picture"}, {"\xff\xd8\xff", "a picture"}, {"GIF8", "a picture"}, {"RIFF", "a picture"}, {"PK", "an archive"},
	}
}

// sniffContent names the kind of a document by its first bytes: "blank", "workbook", "text", or another kind in
// words.
func sniffContent(body []byte) string {
	if isBlankDocument(body) {
		return "blank"
	}
	for _, known := range signatures() {
		if bytes.HasPrefix(body, []byte(known[0])) {
			return known[1]
		}
	}
	wide := bytes.HasPrefix(body, []byte("\xff\xfe")) || bytes.HasPrefix(body, []byte("\xfe\xff"))
	if !wide && bytes.IndexByte(body[:min(len(body), 1024)], 0) >= 0 {
		return "binary bytes"
	}
	return "text"
}

// isBlankDocument reports whether a document has only white space, NUL bytes and byte order marks.
func isBlankDocument(body []byte) bool {
	return bytes.IndexFunc(body, func(r rune) bool { return !unicode.IsSpace(r) && r != 0 && r != '\ufeff' }) < 0
}

func contentTypeNote(doc *Document) string {
	if doc.ContentType == "" {
		return ""
	}
	return ", which the server calls " + quoted(doc.ContentType)
}

// binaryMediaType returns a media type that is never text, otherwise "". Among texts the content decides, because
// servers send JSON as text/html and vice versa.
func binaryMediaType(contentType string) string {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	major, minor, _ := strings.Cut(kind, "/")
	switch {
	case major == "image" || major == "audio" || major == "video" || major == "font":
		return kind
	case minor == "pdf" || minor == "zip" || minor == "gzip" || strings.Contains(minor, "spreadsheet") || strings.Contains(minor, "excel"):
		return kind
	}
	return ""
}

// decodeText returns the text in UTF-8. Valid UTF-8 is taken as such, whatever the header says; otherwise byte order
// mark, header and meta element decide. Invalid bytes become U+FFFD, which is not a digit.
func decodeText(doc *Document) string {
	body := bytes.TrimPrefix(doc.Body, []byte("\xef\xbb\xbf"))
	if utf8.Valid(body) && bytes.IndexByte(body, 0) < 0 && bytes.IndexByte(body, 0x1b) < 0 {
		return string(body)
	}
	known, name, _ := charset.DetermineEncoding(doc.Body, doc.ContentType)
	if known == encoding.Nop || known == encoding.Replacement || name == "replacement" {
		return strings.ToValidUTF8(string(body), string(utf8.RuneError))
	}
	text, err := known.NewDecoder().Bytes(body)
	if err != nil {
		text = body
	}
	return strings.TrimLeft(strings.ToValidUTF8(string(text), string(utf8.RuneError)), "\ufeff")
}

// checkText distinguishes HTML from JSON by its beginning, and detects truncated pages.
func checkText(text string, page *Page) {
	extract := &page.Extract
	start := strings.TrimLeftFunc(text, isSpace)
	lower := strings.ToLower(start)
	isJSON := extract.Method == JSONFields || extract.Method == JSONRows
	isPage := strings.HasPrefix(lower, "<!doctype html") || strings.HasPrefix(lower, "<html")
	switch {
	case isJSON && isPage:
		failf(WrongContent, "want JSON, got a page in HTML beginning with %s", quoted(start))
	case isJSON && strings.HasPrefix(start, "<"):
		failf(WrongContent, "want JSON, got markup beginning with %s", quoted(start))
	case isJSON || extract.Method == TextRegex && extract.Text.At == "" && !isPage:
	case !strings.Contains(start, "<"):
		failf(WrongContent, "want HTML, got text beginning with %s", quoted(start))
	case strings.HasPrefix(start, "{") || strings.HasPrefix(start, "["):
		failf(WrongContent, "want HTML, got data beginning with %s", quoted(start))
	case strings.HasPrefix(lower, "<?xml") && !strings.Contains(lower, "<html"):
		failf(WrongContent, "want HTML, got XML beginning with %s", quoted(start))
	case strings.Contains(lower, "<html") && !strings.Contains(lower, "</html") && !page.Fragment:
		failf(WrongContent, "the page was cut off: after %d bytes there is no </html>", len(text))
	}
}
