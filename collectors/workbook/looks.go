package workbook

import (
	"bytes"
	"unicode/utf8"
)

// looksBytes is how much of a document is looked at to guess its kind.
const looksBytes = 512

// kinds are what comes instead of a workbook, by first bytes; the first that fits counts. HTML pages are by far the most
// frequent: servers put them, with status 200, where a file has been.
func kinds() []struct{ prefix, name string } {
	return []struct{ prefix, name string }{
		{"<!doctype html", "an HTML page"},
		{"<html", "an HTML page"},
		{"<?xml", "an XML document"},
		{"<", "markup, perhaps an HTML page"},
		{"{\\rtf", "an RTF document"},
		{"{", "JSON"},
		{"[", "JSON"},
		{"%pdf", "a PDF document"},
		{"\x1f\x8b", "gzip, which should have been unpacked"},
		{"\x89PNG", "a picture"},
		{"\xff\xd8\xff", "a picture"},
		{"gif8", "a picture"},
		{"\x09\x00\x04\x00", "a workbook of Excel 2, which is not read"},
		{"\x09\x02\x06\x00", "a workbook of Excel 3, which is not read"},
		{"\x09\x04\x06\x00", "a workbook of Excel 4, which is not read"},
		{"\x09\x08", "a bare stream of a workbook, without its container"},
	}
}

// looksLike says what a document is that is no workbook, for the person who reads the failure.
func looksLike(body []byte) string {
	head := body[:min(len(body), looksBytes)]
	start := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xEF\xBB\xBF")), " \t\r\n"))
	if len(start) == 0 && len(body) <= looksBytes {
		return "an empty document"
	}
	for _, kind := range kinds() {
		if !bytes.HasPrefix(start, []byte(kind.prefix)) && !bytes.HasPrefix(head, []byte(kind.prefix)) {
			continue
		}
		if bytes.Contains(start, []byte("<html")) {
			return "an HTML page"
		}
		return kind.name
	}
	if isText(head) {
		return "plain text"
	}
	return "nothing that is known"
}

// isText says whether the beginning of a document is UTF-8 without control characters; its last letter may be cut.
func isText(head []byte) bool {
	for len(head) > 0 {
		letter, size := utf8.DecodeRune(head)
		if letter == utf8.RuneError && size == 1 {
			return len(head) < utf8.UTFMax && !utf8.FullRune(head)
		}
		if letter < ' ' && letter != '\t' && letter != '\r' && letter != '\n' {
			return false
		}
		head = head[size:]
	}
	return true
}
