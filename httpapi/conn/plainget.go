package conn

import (
	"bytes"
	"encoding/binary"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

// PlainGet is the head of a plain GET: a GET without a body that leaves the connection open and contains nothing that
// fasthttp or Malformed could reject. Nearly all requests are plain GETs. The slices alias the argument of
// ParsePlainGet; a missing header is nil.
type PlainGet struct {
	Target                                                    []byte
	Authorization, AcceptEncoding, IfNoneMatch, XForwardedFor []byte
	Length                                                    int // length of the head in bytes
}

const (
	plainBeginning = "GET /"
	plainVersion   = " HTTP/1.1"
)

// ParsePlainGet parses the head at the beginning of read. It returns false for an incomplete head and for any request
// that is not a plain GET. Danger: it must accept only heads that fasthttp and Malformed accept, and find the same end.
// Each rule here is therefore at least as strict as theirs.
func ParsePlainGet(read []byte) (g PlainGet, ok bool) {
	line, length := plainLine(read)
	target, isHTTP11 := bytes.CutSuffix(line, []byte(plainVersion))
	if !isHTTP11 || !bytes.HasPrefix(target, []byte(plainBeginning)) {
		return g, false
	}
	g.Target = target[len(plainBeginning)-1:]
	if !visibleTarget(g.Target) {
		return g, false
	}
	hasHost := false
	for {
		line, next := plainLine(read[length:])
		if length += next; next == len("\r\n") {
			g.Length = length
			return g, hasHost
		}
		nameLength := tokenLength(line)
		if nameLength == 0 || nameLength == len(line) || line[nameLength] != ':' || !plainText(line[nameLength:]) {
			return g, false
		}
		name, value := line[:nameLength], fields.TrimBlanks(line[nameLength+1:])
		keep := (*[]byte)(nil)
		switch nameLength {
		case len("te"), len("trailer"), len("expect"), len("content-type"), len("content-length"), len("transfer-encoding"):
			if isFramingName(name) {
				return g, false
			}
		case len("host"):
			if fields.EqualFold(name, "host") {
				if hasHost || !validHost(value) || value[0] == '[' { // validHost leaves IPv6 addresses to fasthttp
					return g, false
				}
				hasHost = true
			}
		case len("connection"):
			if fields.EqualFold(name, "connection") && !fields.EqualFold(value, "keep-alive") {
				return g, false
			}
		case len("authorization"): // also len("if-none-match")
			if fields.EqualFold(name, "authorization") {
				keep = &g.Authorization
			} else if fields.EqualFold(name, "if-none-match") {
				keep = &g.IfNoneMatch
			}
		case len("accept-encoding"): // also len("x-forwarded-for")
			if fields.EqualFold(name, "accept-encoding") {
				keep = &g.AcceptEncoding
			} else if fields.EqualFold(name, "x-forwarded-for") {
				keep = &g.XForwardedFor
			}
		}
		if keep != nil {
			if *keep != nil || len(value) == 0 {
				return g, false
			}
			*keep = value
		}
	}
}

// plainLine returns the first line of b without its CR LF, and the line's length with CR LF. If b has no complete line,
// the length is 0.
func plainLine(b []byte) (line []byte, length int) {
	end := bytes.IndexByte(b, '\n')
	if end < 1 || b[end-1] != '\r' {
		return nil, 0
	}
	return b[:end-1], end + 1
}

// isFramingName reports whether a header describes the body, or is checked by fasthttp or the handler.
func isFramingName(name []byte) bool {
	for _, framing := range []string{"te", "trailer", "expect", "content-type", "content-length", "transfer-encoding"} {
		if fields.EqualFold(name, framing) {
			return true
		}
	}
	return false
}

// tokenLength returns the number of letters, digits, '-' and '_' at the beginning of b. Other bytes are rare in names.
func tokenLength(b []byte) int {
	n := 0
	for n < len(b) && plainNameBytes[b[n]] {
		n++
	}
	return n
}

var plainNameBytes = func() (table [256]bool) {
	for c := range table {
		table[c] = 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
	}
	return table
}()

// plainText reports whether text has only visible ASCII characters and spaces.
func plainText(text []byte) bool {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	for len(text) >= 8 {
		word := binary.LittleEndian.Uint64(text)
		del := word ^ 0x7f*ones
		if (word|(word-' '*ones)&^word|(del-ones)&^del)&highs != 0 {
			return false
		}
		text = text[8:]
	}
	for _, c := range text {
		if c < ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}
