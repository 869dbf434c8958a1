package fields

import (
	"bytes"
	"encoding/base64"
)

// ETagDigestBytes is the number of digest bytes in an ETag. 128 bits make a collision practically impossible.
const ETagDigestBytes = 16

// AppendETag appends a weak ETag, W/"…", with the beginning of a digest in base64.
func AppendETag(dst, digest []byte) []byte {
	dst = append(dst, `W/"`...)
	dst = base64.RawURLEncoding.AppendEncode(dst, digest[:ETagDigestBytes])
	return append(dst, '"')
}

// IfNoneMatchHits reports whether If-None-Match is "*" or contains etag (weak comparison), so that the response must be
// a 304. lines are the values of all If-None-Match headers. Tags after a malformed tag in a line are ignored.
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

// listsETag reports whether a comma-separated list of ETags contains a tag. opaque is the tag without W/.
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

// etagEnd returns the length of the quoted tag at the beginning of text, or 0 if there is none. A tag may contain any
// visible character except the quote.
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

// Lines converts a header's values to the argument type of this package's functions.
func Lines(values []string) [][]byte {
	lines := make([][]byte, len(values))
	for i, value := range values {
		lines[i] = []byte(value)
	}
	return lines
}
