package fields

import (
	"bytes"
	"encoding/base64"
)

// ETagDigestBytes is the length of the digest in an ETag: enough that no two states ever have the same tag.
const ETagDigestBytes = 16

// AppendETag appends W/"…" for a digest.
func AppendETag(dst, digest []byte) []byte {
	dst = append(dst, `W/"`...)
	dst = base64.RawURLEncoding.AppendEncode(dst, digest[:ETagDigestBytes])
	return append(dst, '"')
}

// IfNoneMatchHits reports whether If-None-Match allows a 304: it is "*", or one of its tags has the opaque part of etag
// (weak comparison). A malformed tag ends the search in its line.
func IfNoneMatchHits(lines [][]byte, etag []byte) bool {
	if len(lines) == 1 && string(TrimBlanks(lines[0])) == "*" {
		return true
	}
	opaque := bytes.TrimPrefix(etag, []byte("W/"))
	for _, line := range lines {
		if listsETag(line, opaque) {
			return true
		}
	}
	return false
}

// listsETag walks a comma-separated list of entity tags.
func listsETag(list, opaque []byte) bool {
	for {
		list = bytes.TrimLeft(list, " \t,")
		tag := bytes.TrimPrefix(list, []byte("W/"))
		end := etagEnd(tag)
		if end == 0 {
			return false
		}
		rest := TrimBlanks(tag[end:])
		if len(rest) > 0 && rest[0] != ',' {
			return false
		}
		if bytes.Equal(tag[:end], opaque) {
			return true
		}
		list = rest
	}
}

// etagEnd is the length of the quoted tag that text begins with, 0 when it begins with none. The bytes of a tag are
// those of RFC 9110, section 8.8.3: anything visible but the quote.
func etagEnd(text []byte) int {
	if len(text) == 0 || text[0] != '"' {
		return 0
	}
	for i, c := range text[1:] {
		switch {
		case c == '"':
			return i + 2
		case c <= ' ' || c == 0x7f:
			return 0
		}
	}
	return 0
}

// Lines are the lines of a header as this package takes them.
func Lines(values []string) [][]byte {
	lines := make([][]byte, len(values))
	for i, value := range values {
		lines[i] = []byte(value)
	}
	return lines
}
