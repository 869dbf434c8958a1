package encode

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tasard/tasard/engine"
)

// Text appends a JSON string. Bytes that are not UTF-8 become U+FFFD; U+2028 and the like stay as they are.
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

// Field appends a comma unless the object is new, the name and a text.
func Field(dst []byte, name, text string) []byte {
	return Text(Name(dst, name), text)
}

// Name appends a comma unless the object is new, and the name with its colon. Names are ours: nothing to escape.
func Name(dst []byte, name string) []byte {
	dst = Comma(dst)
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

// Comma appends a comma unless an object or an array has just begun.
func Comma(dst []byte) []byte {
	if last := dst[len(dst)-1]; last == '{' || last == '[' {
		return dst
	}
	return append(dst, ',')
}

// Nullable appends a field that is null when its text is empty.
func Nullable(dst []byte, name, text string) []byte {
	if text == "" {
		return append(Name(dst, name), "null"...)
	}
	return Field(dst, name, text)
}

// Decimal appends a decimal as text, verbatim, or null.
func Decimal(dst []byte, name string, d engine.Decimal) []byte {
	return Nullable(dst, name, d.String())
}

// Date appends a field with a day, null when it is zero.
func Date(dst []byte, name string, date engine.Date) []byte {
	dst = Name(dst, name)
	if date.IsZero() {
		return append(dst, "null"...)
	}
	return append(date.Append(append(dst, '"')), '"')
}

// Time appends an instant in UTC with Z, with a fraction of a second only where it has one; null when it is zero.
func Time(dst []byte, name string, t time.Time) []byte {
	dst = Name(dst, name)
	if t.IsZero() {
		return append(dst, "null"...)
	}
	dst = t.UTC().AppendFormat(append(dst, '"'), time.RFC3339Nano)
	return append(dst, '"')
}

// Int appends a field with a whole number.
func Int(dst []byte, name string, number int64) []byte {
	return strconv.AppendInt(Name(dst, name), number, 10)
}

// Bool appends a field with a truth value.
func Bool(dst []byte, name string, value bool) []byte {
	return strconv.AppendBool(Name(dst, name), value)
}
