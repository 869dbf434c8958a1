package params

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// IDCharactersMax is the length of an institution id in characters (interface §8, Q9).
const IDCharactersMax = 80

// percentDecoded is text with its %XX replaced: text itself when it has none, else a copy. A '+' stays a '+': what it stands
// for in forms, a blank, no grammar takes either. False, with the text as it came, when a '%' is not followed by two
// hexadecimal digits.
func percentDecoded(text []byte) ([]byte, bool) {
	at := bytes.IndexByte(text, '%')
	if at < 0 {
		return text, true
	}
	decoded := append(make([]byte, 0, len(text)), text[:at]...)
	for at < len(text) {
		if text[at] != '%' {
			decoded = append(decoded, text[at])
			at++
			continue
		}
		if len(text)-at < 3 || !hexadecimal(text[at+1]) || !hexadecimal(text[at+2]) {
			return text, false
		}
		decoded = append(decoded, nibble(text[at+1])<<4|nibble(text[at+2]))
		at += 3
	}
	return decoded, true
}

func hexadecimal(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// nibble is the value of a hexadecimal digit.
func nibble(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// PathID decodes the last segment of an institution's path, once (Q9). False for bad percent-encoding and for more than 80
// characters; bytes that are no UTF-8 count one each.
func PathID(encoded []byte) ([]byte, bool) {
	id, ok := percentDecoded(encoded)
	if !ok || utf8.RuneCount(id) > IDCharactersMax {
		return nil, false
	}
	return id, true
}

// editDistance counts the insertions, removals, replacements and swaps of neighbours that turn one name into the other,
// whatever the case of their letters. Both are short: a part of a name, and one of ours.
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
