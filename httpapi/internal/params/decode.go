package params

import (
	"bytes"
	"net/url"
	"unicode/utf8"
)

// IDCharactersMax is the maximum length of an id in a path.
const IDCharactersMax = 80

// percentDecoded decodes each %XX in text. If a '%' lacks two hexadecimal digits, it returns text and false. A '+'
// is not decoded, because no parameter allows spaces. Danger: the result may share memory with text.
func percentDecoded(text []byte) ([]byte, bool) {
	if bytes.IndexByte(text, '%') < 0 {
		return text, true
	}
	decoded, err := url.PathUnescape(string(text))
	if err != nil {
		return text, false
	}
	return []byte(decoded), true
}

// PathID decodes the id at the end of a path. It returns false if the percent-encoding is invalid or the id has more
// than IDCharactersMax characters. Each byte of invalid UTF-8 counts as a character.
func PathID(encoded []byte) ([]byte, bool) {
	id, ok := percentDecoded(encoded)
	if !ok || utf8.RuneCount(id) > IDCharactersMax {
		return nil, false
	}
	return id, true
}
