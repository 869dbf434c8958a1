package setting

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/admin"
)

// value is the target of a flag, a variable or a line of the configuration file. All three use Set, so that they
// accept the same texts and report the same errors.
type value[T any] struct {
	target *T
	kind   string // for the help, unless the usage names one
	parse  func(string) (T, error)
	format func(T) string
}

// NewValue returns a value with its own parser and formatter.
func NewValue[T any](into *T, kind string, parse func(string) (T, error), show func(T) string) pflag.Value {
	return &value[T]{into, kind, parse, show}
}

// Set parses a text; the error quotes it and says what is wanted.
func (v *value[T]) Set(text string) error {
	parsed, err := v.parse(text)
	if err == nil {
		*v.target = parsed
	}
	return err
}

// String returns the current value as text.
func (v *value[T]) String() string {
	if v.target == nil { // pflag calls String on a zero value
		return ""
	}
	return v.format(*v.target)
}

// Type returns the kind for the help.
func (v *value[T]) Type() string { return v.kind }

// textValue is a text for which check returns nil.
func textValue[T ~string](into *T, kind string, check func(string) error) pflag.Value {
	parse := func(text string) (T, error) { return T(text), check(text) }
	return &value[T]{into, kind, parse, func(text T) string { return string(text) }}
}

// Path is the name of a file or directory.
func Path(into *string, kind string) pflag.Value {
	return textValue(into, kind, func(text string) error {
		if text == "" {
			return fmt.Errorf("want a name, found nothing")
		}
		if strings.ContainsRune(text, 0) {
			return fmt.Errorf("%q: a name can't hold a zero byte", text)
		}
		return nil
	})
}

// Enum is one of several words.
func Enum[T ~string](into *T, words ...string) pflag.Value {
	return textValue(into, strings.Join(words, "|"), func(text string) error {
		if slices.Contains(words, text) {
			return nil
		}
		return fmt.Errorf("%q: want one of %s", text, strings.Join(words, ", "))
	})
}

// OnOff is on or off, or true or false.
func OnOff(into *bool) pflag.Value {
	parse := func(text string) (bool, error) {
		switch text {
		case "on", "true":
			return true, nil
		case "off", "false":
			return false, nil
		}
		return false, fmt.Errorf("%q: want on or off", text)
	}
	return &value[bool]{into, "on|off", parse, func(on bool) string {
		if on {
			return "on"
		}
		return "off"
	}}
}

// BoolFlag declares a flag that is true when present.
func BoolFlag(flags *pflag.FlagSet, into *bool, name, usage string) {
	parse := func(text string) (bool, error) {
		if text != "true" && text != "false" {
			return false, fmt.Errorf("%q: want true or false", text)
		}
		return text == "true", nil
	}
	flags.Var(&value[bool]{into, "bool", parse, strconv.FormatBool}, name, usage)
	flags.Lookup(name).NoOptDefVal = "true"
}

// Address is a listen address; host and port may be left to the system (":8080", "127.0.0.1:0").
func Address(into *string) pflag.Value {
	return textValue(into, "HOST:PORT", func(text string) error {
		_, err := hostOfAddress(text)
		return err
	})
}

// explicitAddress is an address with a host: without one it would be reachable from every network by accident.
func explicitAddress(into *string) pflag.Value {
	return textValue(into, "HOST:PORT", func(text string) error {
		host, err := hostOfAddress(text)
		if err == nil && host == "" {
			return fmt.Errorf("%q has no host: write 127.0.0.1%s for only this machine, or 0.0.0.0%s for all networks", text, text, text)
		}
		return err
	})
}

// hostOfAddress returns the host of HOST:PORT, "" for all addresses.
func hostOfAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("%q: want HOST:PORT, such as 127.0.0.1:8080", text)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(number, 10) != port {
		return "", fmt.Errorf("%q: want a port from 0 to 65535, found %q", text, port)
	}
	return host, nil
}

// Line is one line of text.
func Line(into *string, kind string, charactersMax int) pflag.Value {
	return textValue(into, kind, func(text string) error {
		switch {
		case strings.TrimSpace(text) == "":
			return fmt.Errorf("want a line of text, found nothing")
		case len([]rune(text)) > charactersMax:
			return fmt.Errorf("%d characters, at most %d", len([]rune(text)), charactersMax)
		case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7F || r == '\uFFFD' }):
			return fmt.Errorf("%q: want one line of UTF-8 without control characters", text)
		}
		return nil
	})
}

// Duration is a duration from low to high.
func Duration(into *time.Duration, low, high time.Duration) *value[time.Duration] {
	parse := func(text string) (time.Duration, error) {
		span, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("%q: want a duration, such as 5s or 1m30s", text)
		}
		if span < low || span > high {
			return 0, fmt.Errorf("%q: want a duration from %s to %s", text, low, high)
		}
		return span, nil
	}
	return &value[time.Duration]{into, "DURATION", parse, time.Duration.String}
}

// OptionalDuration is a duration with the default zero, which means unset.
func OptionalDuration(into *time.Duration, low, high time.Duration) pflag.Value {
	span := Duration(into, low, high)
	return &value[time.Duration]{into, "DURATION", span.parse, func(span time.Duration) string {
		if span == 0 {
			return ""
		}
		return span.String()
	}}
}

// Number is an unsigned integer.
func Number(into *uint64) pflag.Value {
	parse := func(text string) (uint64, error) {
		number, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q: want a whole number from 0 to 18446744073709551615", text)
		}
		return number, nil
	}
	return &value[uint64]{into, "N", parse, func(n uint64) string { return strconv.FormatUint(n, 10) }}
}

// Count is an integer from low to high.
func Count(into *int, low, high int) *value[int] {
	parse := func(text string) (int, error) {
		number, err := strconv.Atoi(text)
		if err != nil || strconv.Itoa(number) != text || number < low || number > high {
			return 0, fmt.Errorf("%q: want a whole number from %d to %d", text, low, high)
		}
		return number, nil
	}
	return &value[int]{into, "N", parse, strconv.Itoa}
}

// emailValue is an e-mail address.
func emailValue(into *account.Email) pflag.Value {
	parse := func(text string) (account.Email, error) {
		email, err := account.ParseEmail(text)
		if err != nil {
			return email, fmt.Errorf("%q: %w", text, err)
		}
		return email, nil
	}
	return &value[account.Email]{into, "ADDRESS", parse, account.Email.String}
}

// Instant is an instant of RFC 3339.
func Instant(into *time.Time) pflag.Value {
	parse := func(text string) (time.Time, error) {
		instant, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return instant, fmt.Errorf("%q: want an instant, such as 2027-01-31T00:00:00-04:00", text)
		}
		return instant, nil
	}
	return &value[time.Time]{into, "INSTANT", parse, func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(time.RFC3339)
	}}
}

// Side is a side of a rate: an exact positive decimal, kept as written.
func Side(into *string) pflag.Value {
	return textValue(into, "RATE", func(text string) error {
		_, err := admin.ParseSide(text)
		return err
	})
}

// Date is a calendar date.
func Date(into *string) pflag.Value {
	return textValue(into, "DATE", func(text string) error {
		if _, err := engine.ParseDate(text); err != nil {
			return fmt.Errorf("%q: want a date, such as 2027-01-31", text)
		}
		return nil
	})
}

// CurrencyPattern matches a currency code.
func CurrencyPattern() *regexp.Regexp { return regexp.MustCompile(`^[A-Z]{3}$`) }

// Currency is a currency code.
func Currency(into *string) pflag.Value {
	return textValue(into, "CODE", func(text string) error {
		if !CurrencyPattern().MatchString(text) {
			return fmt.Errorf("%q: want a currency code, such as USD", text)
		}
		return nil
	})
}

// URL is the address of a page.
func URL(into *string) pflag.Value {
	return textValue(into, "URL", func(text string) error {
		page, err := url.Parse(text)
		if err != nil || page.Scheme != "https" && page.Scheme != "http" || page.Host == "" || len(text) > urlBytesMax ||
			strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`<>"`, r) }) {
			return fmt.Errorf("%q: want the address of a page, such as https://example.com/keys", text)
		}
		return nil
	})
}

// SiteURL is the address of a site without a path.
func SiteURL(into *string) pflag.Value {
	return textValue(into, "URL", func(text string) error {
		site, err := url.Parse(text)
		if err != nil || site.Scheme != "https" && site.Scheme != "http" || site.Host == "" || len(text) > urlBytesMax ||
			text != site.Scheme+"://"+site.Host || strings.ContainsAny(text, `<>" '`) {
			return fmt.Errorf("%q: want the address of a site without a path, such as https://tasas.example.com", text)
		}
		return nil
	})
}

// prefixesValue is a list of networks. Each use adds to it; one text may name several.
func prefixesValue(into *[]netip.Prefix) pflag.Value {
	parse := func(text string) ([]netip.Prefix, error) {
		all := slices.Clone(*into)
		for part := range strings.SplitSeq(text, ",") {
			prefix, err := parsePrefix(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			all = append(all, prefix)
		}
		return all, nil
	}
	return &value[[]netip.Prefix]{into, "CIDR", parse, func(prefixes []netip.Prefix) string {
		var texts []string
		for _, prefix := range prefixes {
			texts = append(texts, prefix.String())
		}
		return strings.Join(texts, ",")
	}}
}

// parsePrefix parses a network or an address. A prefix of length 0 is refused, because every client could then
// choose its address.
func parsePrefix(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" && !address.Is4In6() {
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil || prefix.Addr().Is4In6():
		return prefix, fmt.Errorf("%q: want a network, such as 10.0.0.0/8 or fd00::/8", text)
	case prefix.Bits() == 0:
		return prefix, fmt.Errorf("%q contains every client: name only the proxies", text)
	case prefix != prefix.Masked():
		return prefix, fmt.Errorf("%q has bits after its length (did you mean %s?)", text, prefix.Masked())
	}
	return prefix, nil
}

// OptionalCount is an integer with a negative default, which means unset.
func OptionalCount(into *int, high int) pflag.Value {
	counted := Count(into, 0, high)
	return &value[int]{into, "N", counted.parse, func(n int) string {
		if n < 0 {
			return ""
		}
		return fmt.Sprint(n)
	}}
}
