package engine

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of durations. Times are published in whole seconds, and no rate is valid for more than a year.
const (
	durationMin = time.Second
	durationMax = 366 * 24 * time.Hour
)

const wantText = "a text; write it in quotes"

// text takes a key: it removes the key from the object and returns its value, a text of at most charactersMax
// characters. It returns "" if the key is missing.
func (o *jsonObject) text(key string, charactersMax int) string {
	text, _ := decode[string](o, key, wantText)
	o.checkText(key, text, charactersMax)
	return text
}

// checkText reports a problem if the text is too long or has control characters.
func (o *jsonObject) checkText(key, text string, charactersMax int) {
	if characters := utf8.RuneCountInString(text); characters > charactersMax {
		o.errorf("%s has %d characters; shorten it to %d", key, characters, charactersMax)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }) {
		o.errorf("%s has a control character or a broken one; take it out", key)
	}
}

// required calls read. If the result is empty and read has reported no problem, required reports that the key is
// missing, with hint as advice.
func (o *jsonObject) required(key, hint string, read func(key string) string) string {
	before := len(o.file.problems)
	text := read(key)
	if text == "" && len(o.file.problems) == before {
		o.errorf("%s is missing or empty%s", key, hint)
	}
	return text
}

// bool takes a key whose value is true or false. It returns fallback if the key is missing.
func (o *jsonObject) bool(key string, fallback bool) bool {
	if value, ok := decode[bool](o, key, "true or false; write one of them without quotes"); ok {
		return value
	}
	return fallback
}

// number takes a key whose value is a whole number from lowest to highest. It returns fallback if the key is missing.
func (o *jsonObject) number(key string, fallback, lowest, highest int64) int64 {
	want := fmt.Sprintf("a whole number from %d to %d", lowest, highest)
	number, ok := decode[int64](o, key, want)
	switch {
	case !ok:
		return fallback
	case number < lowest || number > highest:
		o.errorf("%s is not %s", key, want)
		return fallback
	}
	return number
}

// enumOf takes a key whose value is one of a list of values. It returns fallback if the key is missing.
func enumOf[T ~string](o *jsonObject, key string, fallback T, values []T) T {
	text, ok := decode[T](o, key, "a text; use one of "+joined(values))
	if !ok || text == "" {
		return fallback
	}
	if !slices.Contains(values, text) {
		o.errorf("%s %.40q is unknown; use one of %s", key, string(text), joined(values))
		return fallback
	}
	return text
}

func joined[T ~string](values []T) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = strconv.Quote(string(value))
	}
	return strings.Join(quoted, ", ")
}

// requiredEnum is enumOf for a key that must be present.
func requiredEnum[T ~string](o *jsonObject, key string, values []T) T {
	return T(o.required(key, "; use one of "+joined(values), func(key string) string { return string(enumOf(o, key, "", values)) }))
}

// id takes a key whose value is an id of small letters, digits and hyphens.
func (o *jsonObject) id(key string, bytesMax int) string {
	id, _ := decode[string](o, key, wantText)
	if len(id) > bytesMax || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		o.errorf("%s is not of the form ^[a-z0-9-]{1,%d}$; use small letters, digits and hyphens", key, bytesMax)
	}
	return id
}

// currencyCode takes a key whose value is a code of three capital letters. It returns "" if the key is missing.
func (o *jsonObject) currencyCode(key string) string {
	code, _ := decode[string](o, key, wantText)
	if code != "" && (len(code) != 3 || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "") {
		o.errorf("%s is not of the form ^[A-Z]{3}$; use the ISO 4217 code, as USD", key)
	}
	return code
}

// parsedAs takes a key whose value is a text, and parses the text. It returns the zero value if the key is missing.
func parsedAs[T any](o *jsonObject, key, example string, parse func(string) (T, error)) (parsed T) {
	text, ok := decode[string](o, key, wantText)
	if !ok {
		return parsed
	}
	parsed, err := parse(text)
	if err != nil {
		o.errorf("%s: %w; write it as %q or leave it out", key, err, example)
	}
	return parsed
}

// duration takes a key whose value is a duration from a second to a year. It returns fallback if the key is missing.
func (o *jsonObject) duration(key string, fallback time.Duration) time.Duration {
	text, ok := decode[string](o, key, wantText)
	if !ok {
		return fallback
	}
	duration, err := time.ParseDuration(text)
	if err != nil || duration < durationMin || duration > durationMax {
		o.errorf("%s is not a duration from %v to %v; write it as \"26h\"", key, durationMin, durationMax)
	}
	return duration
}

// uri takes a key whose value is a web address. It returns "" if the key is missing.
func (o *jsonObject) uri(key string, charactersMax int) string {
	text := o.text(key, charactersMax)
	if text == "" {
		return ""
	}
	if _, ok := WebAddress(text); !ok {
		o.errorf("%s is not a web address; write it with https:// and only ASCII characters, others as %%XX, or leave it out", key)
	}
	return text
}

// WebAddress parses an absolute http or https URL of RFC 3986 characters, without user name and password.
func WebAddress(text string) (*url.URL, bool) {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' || strings.IndexByte("\"<>\\^`{|}", text[i]) >= 0 {
			return nil, false
		}
	}
	address, err := url.Parse(text)
	if err != nil || address.Scheme != "https" && address.Scheme != "http" || address.Hostname() == "" || address.User != nil {
		return nil, false
	}
	return address, true
}
