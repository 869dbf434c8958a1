package setting

import (
	"errors"
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

// value is the value of a setting: a flag that a variable or the configuration file can set too. All three use Set, so
// that they accept the same texts and give the same errors. Most functions of this file return a value. They are named
// after the texts that it accepts.
type value[T any] struct {
	target *T
	kind   string // name of the value in the help, such as FILE; a name in the flag's usage text replaces it
	parse  func(string) (T, error)
	format func(T) string
}

// NewValue returns a value with the given parser and formatter. kind is the name of the value in the help.
func NewValue[T any](target *T, kind string, parse func(string) (T, error), format func(T) string) pflag.Value {
	return &value[T]{target, kind, parse, format}
}

// listValue is a value that accepts several texts with commas between them. In the configuration file it may be a list.
type listValue[T any] struct{ value[T] }

func (*listValue[T]) acceptsList() {}

// Set parses a text. The error quotes the text and says what would be accepted.
func (v *value[T]) Set(text string) error {
	parsed, err := v.parse(text)
	if err == nil {
		*v.target = parsed
	}
	return err
}

// String formats the current value.
func (v *value[T]) String() string {
	if v.target == nil { // pflag calls String on a zero value
		return ""
	}
	return v.format(*v.target)
}

// Type implements pflag.Value. It returns the name of the value in the help.
func (v *value[T]) Type() string { return v.kind }

// textValue is a text that the function check accepts.
func textValue[T ~string](target *T, kind string, check func(string) error) pflag.Value {
	parse := func(text string) (T, error) { return T(text), check(text) }
	return &value[T]{target, kind, parse, func(text T) string { return string(text) }}
}

// Path is the name of a file or directory. It may not be empty.
func Path(target *string, kind string) pflag.Value {
	return textValue(target, kind, func(text string) error {
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
func Enum[T ~string](target *T, words ...string) pflag.Value {
	return textValue(target, strings.Join(words, "|"), func(text string) error {
		if slices.Contains(words, text) {
			return nil
		}
		return fmt.Errorf("%q: want one of %s", text, strings.Join(words, ", "))
	})
}

// OnOff is a switch. "on" and "true" set it; "off" and "false" clear it.
func OnOff(target *bool) pflag.Value {
	parse := func(text string) (bool, error) {
		switch text {
		case "on", "true":
			return true, nil
		case "off", "false":
			return false, nil
		}
		return false, fmt.Errorf("%q: want on or off", text)
	}
	return &value[bool]{target, "on|off", parse, func(on bool) string {
		if on {
			return "on"
		}
		return "off"
	}}
}

// BoolFlag declares a flag that is true if it is present.
func BoolFlag(flags *pflag.FlagSet, target *bool, name, usage string) {
	parse := func(text string) (bool, error) {
		if text != "true" && text != "false" {
			return false, fmt.Errorf("%q: want true or false", text)
		}
		return text == "true", nil
	}
	flags.Var(&value[bool]{target, "bool", parse, strconv.FormatBool}, name, usage)
	flags.Lookup(name).NoOptDefVal = "true"
}

// Address is an address to listen on. Its host may be empty, and its port 0.
func Address(target *string) pflag.Value {
	return textValue(target, "HOST:PORT", func(text string) error {
		_, err := hostOfAddress(text)
		return err
	})
}

// explicitAddress is an address to listen on whose host may not be empty. An empty host would make the server public
// by accident.
func explicitAddress(target *string) pflag.Value {
	return textValue(target, "HOST:PORT", func(text string) error {
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
func Line(target *string, kind string, charactersMax int) pflag.Value {
	return textValue(target, kind, func(text string) error {
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

// Duration is a duration between low and high.
func Duration(target *time.Duration, low, high time.Duration) *value[time.Duration] {
	parse := func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("%q: want a duration, such as 5s or 1m30s", text)
		}
		if d < low || d > high {
			return 0, fmt.Errorf("%q: want a duration from %s to %s", text, low, high)
		}
		return d, nil
	}
	return &value[time.Duration]{target, "DURATION", parse, time.Duration.String}
}

// OptionalDuration is like Duration, but a target of 0 means that the duration is not set.
func OptionalDuration(target *time.Duration, low, high time.Duration) pflag.Value {
	v := Duration(target, low, high)
	return &value[time.Duration]{target, "DURATION", v.parse, func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return d.String()
	}}
}

// Count is an integer between low and high.
func Count(target *int, low, high int) *value[int] {
	parse := func(text string) (int, error) {
		number, err := strconv.Atoi(text)
		if err != nil || strconv.Itoa(number) != text || number < low || number > high {
			return 0, fmt.Errorf("%q: want a whole number from %d to %d", text, low, high)
		}
		return number, nil
	}
	return &value[int]{target, "N", parse, strconv.Itoa}
}

// emailValue is an e-mail address.
func emailValue(target *account.Email) pflag.Value {
	parse := func(text string) (account.Email, error) {
		email, err := account.ParseEmail(text)
		if err != nil {
			return email, fmt.Errorf("%q: %w", text, err)
		}
		return email, nil
	}
	return &value[account.Email]{target, "ADDRESS", parse, account.Email.String}
}

// Instant is a time in the format of RFC 3339.
func Instant(target *time.Time) pflag.Value {
	parse := func(text string) (time.Time, error) {
		instant, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return instant, fmt.Errorf("%q: want an instant, such as 2027-01-31T00:00:00-04:00", text)
		}
		return instant, nil
	}
	return &value[time.Time]{target, "INSTANT", parse, formatInstant}
}

func formatInstant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// Side is one side (the buy or the sell price) of a rate, a positive decimal number. It is kept as text, so that
// nothing is rounded.
func Side(target *string) pflag.Value {
	return textValue(target, "RATE", func(text string) error {
		_, err := admin.ParseSide(text)
		return err
	})
}

// Date is a calendar date.
func Date(target *string) pflag.Value {
	return textValue(target, "DATE", func(text string) error {
		if _, err := engine.ParseDate(text); err != nil {
			return fmt.Errorf("%q: want a date, such as 2027-01-31", text)
		}
		return nil
	})
}

// CurrencyPattern matches a currency code.
func CurrencyPattern() *regexp.Regexp { return regexp.MustCompile(`^[A-Z]{3}$`) }

// Currency is a currency code.
func Currency(target *string) pflag.Value {
	return textValue(target, "CODE", func(text string) error {
		if !CurrencyPattern().MatchString(text) {
			return fmt.Errorf("%q: want a currency code, such as USD", text)
		}
		return nil
	})
}

// errUserInURL does not quote the address, which has a password.
var errUserInURL = errors.New("want an address without user and password")

// URL is the address of a page.
func URL(target *string) pflag.Value {
	return textValue(target, "URL", func(text string) error {
		page, err := url.Parse(text)
		if err == nil && page.User != nil || err != nil && strings.Contains(text, "@") {
			return errUserInURL
		}
		if err != nil || page.Scheme != "https" && page.Scheme != "http" || page.Host == "" || len(text) > urlBytesMax ||
			strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`<>"`, r) }) {
			return fmt.Errorf("%q: want the address of a page, such as https://example.com/keys", text)
		}
		return nil
	})
}

// SiteURL is the address of a site without a path.
func SiteURL(target *string) pflag.Value {
	return textValue(target, "URL", func(text string) error {
		site, err := url.Parse(text)
		if err != nil && strings.Contains(text, "@") || err == nil && site.User != nil {
			return errUserInURL
		}
		if err != nil || site.Scheme != "https" && site.Scheme != "http" || site.Host == "" || len(text) > urlBytesMax ||
			text != site.Scheme+"://"+site.Host || strings.ContainsAny(text, `<>" '`) {
			return fmt.Errorf("%q: want the address of a site without a path, such as https://tasas.example.com", text)
		}
		return nil
	})
}

// dnsName is a DNS name for which an authority issues certificates.
func dnsName(target *string) pflag.Value {
	pattern := regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]$`)
	return textValue(target, "NAME", func(text string) error {
		if len(text) > dnsNameBytesMax || !pattern.MatchString(text) {
			return fmt.Errorf("%q: want a DNS name in lower case, such as tasas.example.com", text)
		}
		return nil
	})
}

// prefixesValue is a list of networks, separated by commas. Each use of the flag adds networks.
func prefixesValue(target *[]netip.Prefix) pflag.Value {
	parse := func(text string) ([]netip.Prefix, error) {
		prefixes := slices.Clone(*target)
		for part := range strings.SplitSeq(text, ",") {
			prefix, err := parsePrefix(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			prefixes = append(prefixes, prefix)
		}
		return prefixes, nil
	}
	return &listValue[[]netip.Prefix]{value[[]netip.Prefix]{target, "CIDR", parse, func(list []netip.Prefix) string {
		var texts []string
		for _, prefix := range list {
			texts = append(texts, prefix.String())
		}
		return strings.Join(texts, ",")
	}}}
}

// parsePrefix parses a network or an address of trusted proxies. It refuses a prefix of length 0: every client would
// then be a trusted proxy and could claim any address.
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

// OptionalCount is an integer from 0 to high. A negative target means that it is not set.
func OptionalCount(target *int, high int) pflag.Value {
	count := Count(target, 0, high)
	return &value[int]{target, "N", count.parse, func(n int) string {
		if n < 0 {
			return ""
		}
		return fmt.Sprint(n)
	}}
}
