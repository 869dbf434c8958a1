package fields

// EqualFold compares with a name that is written in small letters and hyphens.
// b must hold no control bytes: CR would pass for a hyphen.
func EqualFold(b []byte, small string) bool {
	if len(b) != len(small) {
		return false
	}
	for i, c := range b {
		if c|0x20 != small[i] {
			return false
		}
	}
	return true
}

// TrimBlanks cuts the optional blanks and tabs around a header value.
func TrimBlanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// portDigitsMax bounds a port as text; 65535 has five digits.
const portDigitsMax = 5

// ValidPort checks the end of an authority: it is empty, or a colon and a port of at most 65535. A colon without a port
// stands for the default port.
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
