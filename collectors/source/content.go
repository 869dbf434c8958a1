package source

import (
	"bytes"
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	textunicode "golang.org/x/text/encoding/unicode"

	"github.com/tasard/tasard/collectors/values"
)

// textBytesMax bounds a text document. Package fetch has a smaller limit; only documents from files can be this large.
const textBytesMax = 8 << 20

// checkedText returns the text of a document, or "" for a workbook. It is a failure if the document is not of the kind
// that the definition of the page expects: HTML, JSON, text or a workbook.
func checkedText(doc *Document, page *Page) (string, *Failure) {
	wantWorkbook := page.Extract.Method == XLSXRows
	kind := sniffContent(doc.Body)
	switch {
	case kind == "blank":
		return "", Failf(Empty, "the document has %d bytes and no content", len(doc.Body))
	case wantWorkbook && kind == "workbook":
		return "", nil
	case kind == oldWorkbook:
		return "", Failf(WrongContent, "an old workbook (.xls); save it as .xlsx first")
	case wantWorkbook:
		return "", Failf(WrongContent, "want a workbook, got %s%s", kind, contentTypeNote(doc))
	case kind != "text":
		return "", Failf(WrongContent, "want text, got %s%s", kind, contentTypeNote(doc))
	case len(doc.Body) > textBytesMax:
		return "", Failf(WrongContent, "the document has %d bytes, at most %d are accepted", len(doc.Body), textBytesMax)
	}
	if mediaType := binaryMediaType(doc.ContentType); mediaType != "" {
		return "", Failf(WrongContent, "want text, but the server says %s", quoted(mediaType))
	}
	text := decodeText(doc)
	return text, checkText(text, page)
}

// oldWorkbook is the kind of the workbooks of Excel 97 to 2003, which are not read.
const oldWorkbook = "old workbook (.xls)"

// signatures returns pairs: the first bytes of documents that are not text, and the name of their kind.
func signatures() [][2]string {
	return [][2]string{
		{"PK\x03\x04", "workbook"}, {"\xd0\xcf\x11\xe0", oldWorkbook}, {"%PDF", "a PDF document"}, {"\x1f\x8b", "packed bytes (gzip)"},
		{"\x89PNG", "a picture"}, {"\xff\xd8\xff", "a picture"}, {"GIF8", "a picture"}, {"RIFF", "a picture"}, {"PK", "an archive"},
	}
}

// sniffContent returns the kind of a document: "blank", "text", "workbook" or another name of a kind in signatures, or
// "binary bytes".
func sniffContent(body []byte) string {
	if isBlankDocument(body) {
		return "blank"
	}
	for _, signature := range signatures() {
		if bytes.HasPrefix(body, []byte(signature[0])) {
			return signature[1]
		}
	}
	if !hasUTF16Mark(body) && bytes.IndexByte(body[:min(len(body), 1024)], 0) >= 0 {
		return "binary bytes"
	}
	return "text"
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

// binaryMediaType returns the media type in a Content-Type header if it is not text, otherwise "". It accepts every
// media type of text, because some servers send JSON as text/html and vice versa.
func binaryMediaType(contentType string) string {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	topLevel, subtype, _ := strings.Cut(mediaType, "/")
	switch {
	case topLevel == "image" || topLevel == "audio" || topLevel == "video" || topLevel == "font":
		return mediaType
	case subtype == "pdf" || subtype == "zip" || subtype == "gzip" || strings.Contains(subtype, "spreadsheet") || strings.Contains(subtype, "excel"):
		return mediaType
	}
	return ""
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

// checkText returns a failure if a text is HTML instead of JSON or vice versa, or if it is a truncated HTML page.
func checkText(text string, page *Page) *Failure {
	extract := &page.Extract
	start := strings.TrimLeftFunc(text, values.IsSpace)
	lower := strings.ToLower(start)
	isJSON := extract.Method == JSONFields || extract.Method == JSONRows
	isPage := strings.HasPrefix(lower, "<!doctype html") || strings.HasPrefix(lower, "<html")
	switch {
	case isJSON && isPage:
		return Failf(WrongContent, "want JSON, got a page in HTML beginning with %s", quoted(start))
	case isJSON && strings.HasPrefix(start, "<"):
		return Failf(WrongContent, "want JSON, got markup beginning with %s", quoted(start))
	case isJSON || extract.Method == TextRegex && extract.Text.At == "" && !isPage:
	case !strings.Contains(start, "<"):
		return Failf(WrongContent, "want HTML, got text beginning with %s", quoted(start))
	case strings.HasPrefix(start, "{") || strings.HasPrefix(start, "["):
		return Failf(WrongContent, "want HTML, got data beginning with %s", quoted(start))
	case strings.HasPrefix(lower, "<?xml") && !strings.Contains(lower, "<html"):
		return Failf(WrongContent, "want HTML, got XML beginning with %s", quoted(start))
	case strings.Contains(lower, "<html") && !strings.Contains(lower, "</html"):
		return Failf(WrongContent, "the page was cut off: after %d bytes there is no </html>", len(text))
	}
	return nil
}
