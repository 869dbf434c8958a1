package fields

import (
	"strconv"
	"time"
)

// EqualFold reports whether b equals lowercase, ignoring case. lowercase consists of small letters and hyphens. Danger:
// b must not contain control characters, because EqualFold would take CR for a hyphen.
func EqualFold(b []byte, lowercase string) bool {
	if len(b) != len(lowercase) {
		return false
	}
	for i, c := range b {
		if c|0x20 != lowercase[i] {
			return false
		}
	}
	return true
}

// TrimBlanks removes spaces and tabs from both ends of a header value.
func TrimBlanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

const portDigitsMax = 5 // 65535

// ValidPort reports whether b is empty, a colon, or a colon and a port of at most 65535 (RFC 3986, section 3.2.3).
func ValidPort(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if b[0] != ':' || len(b) > 1+portDigitsMax {
		return false
	}
	port := 0
	for _, c := range b[1:] {
		if c < '0' || c > '9' {
			return false
		}
		port = port*10 + int(c-'0')
	}
	return port <= 65535
}

// RetryAfter formats the value of Retry-After: whole seconds, rounded up, at least 1.
func RetryAfter(wait time.Duration) string {
	return strconv.FormatInt(max(1, int64((wait+time.Second-1)/time.Second)), 10)
}
