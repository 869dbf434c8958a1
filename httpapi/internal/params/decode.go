package params

import (
	"bytes"
	"net/url"
	"unicode/utf8"
)

// IDCharactersMax is the maximum length of an id in a path.
const IDCharactersMax = 80

// percentDecoded decodes each %XX. Without a '%' it returns text itself, else a copy. It returns text and false if a
// '%' is not followed by two hexadecimal digits. A '+' stays, because no parameter allows spaces.
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

// PathID decodes the id at the end of a path. It returns false for invalid percent-encoding and for more than
// IDCharactersMax characters. Each byte of invalid UTF-8 counts as a character.
func PathID(encoded []byte) ([]byte, bool) {
	id, ok := percentDecoded(encoded)
	if !ok || utf8.RuneCount(id) > IDCharactersMax {
		return nil, false
	}
	return id, true
}
