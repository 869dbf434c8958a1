package command

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
	"github.com/tasard/tasard/node"
)

const (
	boolKind        = "bool" // the kind of a switch that is also set if its flag has no value
	urlBytesMax     = 2000
	contactBytesMax = 200
	dnsNameBytesMax = 253
)

// value is the value of a setting. Flags, variables and the configuration file all use Set, so they accept the same
// texts and give the same errors. Most functions here return a value and are named after the texts that it accepts.
type value[T any] struct {
	target *T
	kind   string // placeholder in the help, such as FILE, unless the usage text of the flag names another
	parse  func(string) (T, error)
	format func(T) string
}

// Set parses a text. The error quotes the text and describes the accepted ones.
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

// list is a comma-separated list whose parts are parsed by parse. In the configuration file it may be a list.
func list[T any](target *[]T, kind string, parse func(part string) (T, error), format func(T) string) pflag.Value {
	return &value[[]T]{target, kind, func(text string) (all []T, err error) {
		for part := range strings.SplitSeq(text, ",") {
			item, err := parse(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			all = append(all, item)
		}
		return all, nil
	}, func(all []T) string {
		var texts []string
		for _, item := range all {
			texts = append(texts, format(item))
		}
		return strings.Join(texts, ",")
	}}
}

// textValue is a text accepted by check.
func textValue[T ~string](target *T, kind string, check func(string) error) pflag.Value {
	parse := func(text string) (T, error) { return T(text), check(text) }
	return &value[T]{target, kind, parse, func(text T) string { return string(text) }}
}

// Path is the name of a file or directory. It may not be empty.
func Path(target *string, kind string) pflag.Value {
	return textValue(target, kind, func(text string) error {
		if text == "" {
			return errors.New("want a name, found nothing")
		}
		if strings.ContainsRune(text, 0) {
			return fmt.Errorf("%q: a name can't hold a zero byte", text)
		}
		return nil
	})
}

// Enum is one of several words.
func Enum[T ~string](target *T, words ...T) pflag.Value {
	var texts []string
	for _, word := range words {
		texts = append(texts, string(word))
	}
	return textValue(target, strings.Join(texts, "|"), func(text string) error {
		if slices.Contains(texts, text) {
			return nil
		}
		return fmt.Errorf("%q: want one of %s", text, strings.Join(texts, ", "))
	})
}

// OnOff is a switch. "on" and "true" set it; "off" and "false" clear it.
func OnOff(target *bool) pflag.Value { return onOff(target, "on|off") }

func onOff(target *bool, kind string) pflag.Value {
	parse := func(text string) (bool, error) {
		on := text == "on" || text == "true"
		if !on && text != "off" && text != "false" {
			return false, fmt.Errorf("%q: want on or off", text)
		}
		return on, nil
	}
	format := strconv.FormatBool // the help shows no default of false
	if kind != boolKind {
		format = func(on bool) string { return map[bool]string{true: "on", false: "off"}[on] }
	}
	return &value[bool]{target, kind, parse, format}
}

// BoolFlag declares a flag that is true if it is present.
func BoolFlag(flags *pflag.FlagSet, target *bool, name, usage string) {
	declare(flags, onOff(target, boolKind), name, usage)
}

// declare declares a flag. One of boolKind may stand without a value.
func declare(flags *pflag.FlagSet, value pflag.Value, name, usage string) *pflag.Flag {
	flag := flags.VarPF(value, name, "", usage)
	if value.Type() == boolKind {
		flag.NoOptDefVal = "true"
	}
	return flag
}

// Address is an address to listen on. Its host may be empty, and its port 0.
func Address(target *string) pflag.Value {
	return textValue(target, "HOST:PORT", func(text string) error {
		_, err := hostOfAddress(text)
		return err
	})
}

// explicitAddress is a listen address with a non-empty host. An empty host would make the server public by accident.
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
			return errors.New("want a line of text, found nothing")
		case len([]rune(text)) > charactersMax:
			return fmt.Errorf("%d characters, at most %d", len([]rune(text)), charactersMax)
		case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7F || r == '\uFFFD' }):
			return fmt.Errorf("%q: want one line of UTF-8 without control characters", text)
		}
		return nil
	})
}

// Duration is a duration between low and high. A target below low counts as unset.
func Duration(target *time.Duration, low, high time.Duration) pflag.Value {
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
	return &value[time.Duration]{target, "DURATION", parse, unless(time.Duration.String, func(d time.Duration) bool { return d < low })}
}

// Count is an integer between low and high. A target below low counts as unset.
func Count(target *int, low, high int) pflag.Value {
	parse := func(text string) (int, error) {
		number, err := strconv.Atoi(text)
		if err != nil || strconv.Itoa(number) != text || number < low || number > high {
			return 0, fmt.Errorf("%q: want a whole number from %d to %d", text, low, high)
		}
		return number, nil
	}
	return &value[int]{target, "N", parse, unless(strconv.Itoa, func(n int) bool { return n < low })}
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
	return &value[time.Time]{target, "INSTANT", parse, unless(func(t time.Time) string { return t.Format(time.RFC3339) }, time.Time.IsZero)}
}

// unless returns a function that formats a value, or returns "" for an unset one.
func unless[T any](format func(T) string, isUnset func(T) bool) func(T) string {
	return func(v T) string {
		if isUnset(v) {
			return ""
		}
		return format(v)
	}
}

// Currency is a currency code.
func Currency(target *string) pflag.Value {
	pattern := regexp.MustCompile(`^[A-Z]{3}$`)
	return textValue(target, "CODE", func(text string) error {
		if !pattern.MatchString(text) {
			return fmt.Errorf("%q: want a currency code, such as USD", text)
		}
		return nil
	})
}

// URL is the address of a page.
func URL(target *string) pflag.Value {
	return webAddress(target, "the address of a page, such as https://example.com/keys", func(*url.URL, string) bool { return true })
}

// SiteURL is the address of a site without a path.
func SiteURL(target *string) pflag.Value {
	return webAddress(target, "the address of a site without a path, such as https://tasas.example.com", func(site *url.URL, text string) bool {
		return text == site.Scheme+"://"+site.Host && !strings.Contains(text, "'")
	})
}

func webAddress(target *string, wanted string, isGood func(*url.URL, string) bool) pflag.Value {
	return textValue(target, "URL", func(text string) error {
		page, err := url.Parse(text)
		switch {
		case err == nil && page.User != nil, err != nil && strings.Contains(text, "@"): // do not quote it: it has a password
			return errors.New("want an address without user and password")
		case err != nil, page.Scheme != "https" && page.Scheme != "http", page.Host == "", len(text) > urlBytesMax, !isGood(page, text),
			strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`<>"`, r) }):
			return fmt.Errorf("%q: want %s", text, wanted)
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

// contactValue is an e-mail address or the address of a page. The text can be part of a comment in the header field
// User-Agent.
func contactValue(target *string) pflag.Value {
	return textValue(target, "TEXT", func(text string) error {
		if text == "" || len(text) > contactBytesMax || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`()\;`, r) }) {
			return fmt.Errorf("%q: want an e-mail address or the address of a page", text)
		}
		return nil
	})
}

// mailServer is the address of a mail server, or log.
func mailServer(target *string) pflag.Value {
	return textValue(target, "HOST:PORT", func(text string) error {
		if text == admin.MailLog {
			return nil
		}
		_, err := hostOfAddress(text)
		return err
	})
}

// membersValue is a list of numbers and addresses of nodes, such as 1=10.0.0.1:6222,2=10.0.0.2:6222,3=10.0.0.3:6222.
func membersValue(target *[]node.Member) pflag.Value {
	return list(target, "members", func(part string) (node.Member, error) {
		number, address, ok := strings.Cut(part, "=")
		n, err := strconv.Atoi(number)
		if !ok || err != nil || n < 1 || n > clusterNodesMax {
			return node.Member{}, fmt.Errorf("%q: want a number from 1 to %d, '=' and HOST:PORT, like 1=10.0.0.1:6222", part, clusterNodesMax)
		}
		_, err = hostOfAddress(address)
		return node.Member{Node: engine.NodeID(n), Address: address}, err
	}, func(m node.Member) string { return fmt.Sprintf("%d=%s", m.Node, m.Address) })
}

// prefixesValue is a list of networks. Each use of the flag adds networks.
func prefixesValue(target *[]netip.Prefix) pflag.Value {
	v := list(target, "CIDR", parsePrefix, netip.Prefix.String).(*value[[]netip.Prefix])
	parse := v.parse
	v.parse = func(text string) ([]netip.Prefix, error) {
		more, err := parse(text)
		return append(slices.Clone(*target), more...), err
	}
	return v
}

// parsePrefix parses a network or an address of trusted proxies. It refuses a prefix of length 0, because every client
// would be a trusted proxy and could claim any address.
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
