package params

import (
	"bytes"
	"net/url"
	"unicode/utf8"
)

// IDCharactersMax is the maximum length of an id in a path.
const IDCharactersMax = 80

// percentDecoded replaces each %XX by the byte that it stands for. It returns text itself if there is no %, else a
// copy. If a '%' is not followed by two hexadecimal digits, it returns text and false. A '+' is not replaced by a
// space, because no parameter allows spaces.
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
// IDCharactersMax characters. Each byte that is not valid UTF-8 counts as a character.
func PathID(encoded []byte) ([]byte, bool) {
	id, ok := percentDecoded(encoded)
	if !ok || utf8.RuneCount(id) > IDCharactersMax {
		return nil, false
	}
	return id, true
}
