package params

import (
	"bytes"
	"net/url"
	"strings"
	"unicode/utf8"
)

// IDCharactersMax is the length of an institution id in characters (interface §8).
const IDCharactersMax = 80

// percentDecoded replaces each %XX: it returns text itself when there is none, else a copy. A '+' stays a '+', because
// no grammar takes the blank for which it stands in forms. It returns the unchanged text and false when a '%' is not
// followed by two hexadecimal digits.
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

// PathID decodes the last segment of an institution's path, once. It returns false for bad percent-encoding and for
// more than 80 characters. A byte that is not UTF-8 counts as a character.
func PathID(encoded []byte) ([]byte, bool) {
	id, ok := percentDecoded(encoded)
	if !ok || utf8.RuneCount(id) > IDCharactersMax {
		return nil, false
	}
	return id, true
}

// editDistance counts the insertions, removals, replacements and swaps of neighbours that turn one name into the other.
// It ignores case. Both names are short: one is truncated, the other is a known name.
func editDistance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	before := make([]int, len(b)+1) // the row before the last
	last, row := make([]int, len(b)+1), make([]int, len(b)+1)
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
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
