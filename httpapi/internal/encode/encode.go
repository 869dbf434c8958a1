package encode

import (
	"maps"
	"slices"
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

// Rate appends a rate with all its fields, in the order of the API specification (contract/openapi.yaml). A field
// without a value is null.
func Rate(dst []byte, r *engine.Rate) []byte {
	dst = append(dst, '{')
	dst = Field(dst, "institutionId", r.InstitutionID)
	dst = Field(dst, "currency", r.Currency)
	dst = Field(dst, "quoteCurrency", engine.QuoteCurrency)
	dst = Decimal(dst, "buy", r.Buy)
	dst = Decimal(dst, "sell", r.Sell)
	dst = Field(dst, "channel", string(r.Channel))
	dst = Field(dst, "kind", string(r.Kind))
	dst = Date(dst, "effectiveDate", r.EffectiveDate)
	dst = Time(dst, "publishedAt", r.PublishedAt)
	dst = Nullable(dst, "upstreamSource", r.UpstreamSource)
	dst = Field(dst, "id", r.ID)
	dst = Field(dst, "institutionName", r.InstitutionName)
	dst = Field(dst, "institutionType", string(r.InstitutionType))
	dst = Field(dst, "website", r.Website)
	dst = Field(dst, "sourceId", r.SourceID)
	dst = Field(dst, "sourceName", r.SourceName)
	dst = Field(dst, "sourceUrl", r.SourceURL)
	dst = Time(dst, "collectedAt", r.CollectedAt)
	dst = Time(dst, "lastCheckedAt", r.LastCheckedAt)
	dst = Time(dst, "expiresAt", r.ExpiresAt)
	dst = Int(dst, "priority", r.Priority)
	dst = Bool(dst, "manual", r.Manual)
	dst = Bool(dst, "stale", r.Stale)
	dst = Field(dst, "datePrecision", string(r.DatePrecision))
	return append(dst, '}')
}

// statuses are the HTTP statuses of the codes of API errors.
var statuses = map[engine.Code]int{
	engine.CodeInvalidParameters:    400,
	engine.CodeMalformedRequest:     400,
	engine.CodeRequestTimeout:       408,
	engine.CodeHeadersTooLarge:      431,
	engine.CodeMissingKey:           401,
	engine.CodeInvalidKey:           401,
	engine.CodeRevokedKey:           401,
	engine.CodeAccountSuspended:     401,
	engine.CodeInvalidCode:          401,
	engine.CodeInvalidSession:       401,
	engine.CodeNotFound:             404,
	engine.CodeInstitutionNotFound:  404,
	engine.CodeMethodNotAllowed:     405,
	engine.CodeKeyLimitReached:      409,
	engine.CodePayloadTooLarge:      413,
	engine.CodeUnsupportedMediaType: 415,
	engine.CodeRateLimited:          429,
	engine.CodeQuotaExceeded:        429,
	engine.CodeRequestedTooSoon:     429,
	engine.CodeInternalError:        500,
	engine.CodeNotImplemented:       501,
	engine.CodeDataUnavailable:      503,
	engine.CodeMailUnavailable:      503,
	engine.CodeOverloaded:           503,
	engine.CodeReadOnly:             503,
	engine.CodeNoMajority:           503,
}

// Status returns the HTTP status of the code of an API error. It is 500 for an unknown code.
func Status(code engine.Code) (status int, known bool) {
	if status, known = statuses[code]; known {
		return status, true
	}
	return 500, false
}

// Codes returns the codes of all API errors.
func Codes() []engine.Code { return slices.Sorted(maps.Keys(statuses)) }
