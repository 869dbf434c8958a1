package encode

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tasard/tasard/engine"
)

// Text appends a JSON string. Invalid UTF-8 becomes U+FFFD.
func Text(dst []byte, text string) []byte {
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

// Field appends a field with a string.
func Field(dst []byte, name, text string) []byte {
	return Text(Name(dst, name), text)
}

// Name appends the name of a field and a colon, after a comma if necessary. It does not escape the name.
func Name(dst []byte, name string) []byte {
	dst = Comma(dst)
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

// Comma appends a comma unless dst ends with '{' or '['.
func Comma(dst []byte) []byte {
	if last := dst[len(dst)-1]; last == '{' || last == '[' {
		return dst
	}
	return append(dst, ',')
}

// Nullable appends a field with a string, or null if the text is empty.
func Nullable(dst []byte, name, text string) []byte {
	if text == "" {
		return append(Name(dst, name), "null"...)
	}
	return Field(dst, name, text)
}

// Decimal appends a field with a decimal as a string, or null if the decimal is null.
func Decimal(dst []byte, name string, d engine.Decimal) []byte {
	return Nullable(dst, name, d.String())
}

// Date appends a field with a date, or null if the date is zero.
func Date(dst []byte, name string, date engine.Date) []byte {
	dst = Name(dst, name)
	if date.IsZero() {
		return append(dst, "null"...)
	}
	return append(date.Append(append(dst, '"')), '"')
}

// Time appends a field with a time in UTC (RFC 3339, with a fraction only if it is not zero), or null if t is zero.
func Time(dst []byte, name string, t time.Time) []byte {
	dst = Name(dst, name)
	if t.IsZero() {
		return append(dst, "null"...)
	}
	dst = t.UTC().AppendFormat(append(dst, '"'), time.RFC3339Nano)
	return append(dst, '"')
}

// Int appends a field with an integer.
func Int(dst []byte, name string, number int64) []byte {
	return strconv.AppendInt(Name(dst, name), number, 10)
}

// Bool appends a field with true or false.
func Bool(dst []byte, name string, value bool) []byte {
	return strconv.AppendBool(Name(dst, name), value)
}
