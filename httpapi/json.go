package httpapi

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tasard/tasard/engine"
)

// The appenders write JSON without reflection and without HTML escaping (Q10). Each gives the longer slice back.

// appendText appends a JSON string. Bytes that are no UTF-8 become U+FFFD; U+2028 and the like stay as they are.
func appendText(dst []byte, text string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, text[start:i]...)
			dst = appendEscape(dst, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, text[start:i]...)
			dst = append(dst, "\ufffd"...)
			start = i + size
		}
		i += size
	}
	dst = append(dst, text[start:]...)
	return append(dst, '"')
}

// appendEscape appends a quote, a backslash or a control character in its shortest escaped form.
func appendEscape(dst []byte, c byte) []byte {
	const digits = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}

// appendField appends a comma unless the object is new, the name and a text.
func appendField(dst []byte, name, text string) []byte {
	return appendText(appendName(dst, name), text)
}

// appendName appends a comma unless the object is new, and the name with its colon. Names are ours: nothing to escape.
func appendName(dst []byte, name string) []byte {
	dst = appendComma(dst)
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

// appendComma appends a comma unless an object or an array has just begun.
func appendComma(dst []byte) []byte {
	if last := dst[len(dst)-1]; last == '{' || last == '[' {
		return dst
	}
	return append(dst, ',')
}

// appendNullable appends a field that is null when its text is empty.
func appendNullable(dst []byte, name, text string) []byte {
	if text == "" {
		return append(appendName(dst, name), "null"...)
	}
	return appendField(dst, name, text)
}

// appendDecimal appends a decimal as text, verbatim, or null.
func appendDecimal(dst []byte, name string, d engine.Decimal) []byte {
	return appendNullable(dst, name, d.String())
}

func appendDate(dst []byte, name string, date engine.Date) []byte {
	dst = appendName(dst, name)
	if date.IsZero() {
		return append(dst, "null"...)
	}
	return append(date.Append(append(dst, '"')), '"')
}

// appendTime appends an instant in UTC with Z, with a fraction of a second only where it has one; null when it is zero.
func appendTime(dst []byte, name string, t time.Time) []byte {
	dst = appendName(dst, name)
	if t.IsZero() {
		return append(dst, "null"...)
	}
	dst = t.UTC().AppendFormat(append(dst, '"'), time.RFC3339Nano)
	return append(dst, '"')
}

func appendWhole(dst []byte, name string, number int64) []byte {
	return strconv.AppendInt(appendName(dst, name), number, 10)
}

func appendBool(dst []byte, name string, value bool) []byte {
	return strconv.AppendBool(appendName(dst, name), value)
}
