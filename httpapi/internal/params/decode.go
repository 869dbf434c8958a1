package params

import (
	"bytes"
	"net/url"
	"strings"
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

// editDistance returns the Damerau-Levenshtein distance (optimal string alignment) of two names, ignoring case. The
// running time grows with the product of the lengths, so unknown names must be truncated.
func editDistance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	beforeLast, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], beforeLast[j-1]+1)
			}
		}
		beforeLast, last, row = last, row, beforeLast
	}
	return last[len(b)]
}
