package source

import (
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
	"golang.org/x/net/publicsuffix"

	"github.com/tasard/tasard/engine"
)

// Spans that can be right: instants are published in whole seconds, and what lasts longer than a year is no expiry.
const (
	spanMin = time.Second
	spanMax = 366 * 24 * time.Hour
)

// text takes a text of at most so many characters; "" when the key is not there.
func (o *object) text(key string, charactersMax int) string {
	text, _ := value[string](o, key, "text; write it in quotes")
	o.checkText(key, text, charactersMax)
	return text
}

func (o *object) checkText(key, text string, charactersMax int) {
	if characters := utf8.RuneCountInString(text); characters > charactersMax {
		o.wrong("%s has %d characters; shorten it to %d", key, characters, charactersMax)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }) {
		o.wrong("%s has a control character or a broken one; take it out", key)
	}
}

// name takes a name, a heading or the like.
func (o *object) name(key string) string { return o.text(key, nameMax) }

// needed reads a key that must be there and say something; hint is the way out.
func (o *object) needed(key, hint string, read func(key string) string) string {
	before := len(o.report.found)
	text := read(key)
	if text == "" && len(o.report.found) == before {
		o.wrong("%s is missing or empty%s", key, hint)
	}
	return text
}

func (o *object) flag(key string) bool {
	flag, _ := value[bool](o, key, "flag; write true or false without quotes")
	return flag
}

// number takes a whole number between two limits; otherwise when the key is not there.
func (o *object) number(key string, otherwise, lowest, highest int64) int64 {
	number, given := value[int64](o, key, fmt.Sprintf("whole number from %d to %d", lowest, highest))
	switch {
	case !given:
		return otherwise
	case number < lowest || number > highest:
		o.wrong("%s is no whole number from %d to %d", key, lowest, highest)
		return otherwise
	}
	return number
}

// word takes one word of a closed list.
func word[T ~string](o *object, key string, otherwise T, words []T) T {
	text, given := value[T](o, key, fmt.Sprintf("text; use one of %q", words))
	if !given || text == "" {
		return otherwise
	}
	if !slices.Contains(words, text) {
		o.wrong("%s %.40q is none of %q; use one of them", key, string(text), words)
		return otherwise
	}
	return text
}

// neededWord is word without a default.
func neededWord[T ~string](o *object, key string, words []T) T {
	return T(o.needed(key, fmt.Sprintf("; use one of %q", words), func(key string) string { return string(word(o, key, "", words)) }))
}

func (o *object) id(key string) string {
	id := o.text(key, engine.InstitutionIDMax)
	if id != "" && !isID(id) {
		o.wrong("%s is not of the form ^[a-z0-9-]{1,%d}$; use small letters, digits and hyphens", key, engine.InstitutionIDMax)
	}
	return id
}

// currency takes the code of a currency; "" when the key is not there.
func (o *object) currency(key string) string {
	code := o.text(key, nameMax)
	switch {
	case code == "":
	case len(code) != 3 || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		o.wrong("%s is not of the form ^[A-Z]{3}$; use the ISO 4217 code, as USD", key)
	case code == engine.QuoteCurrency:
		o.wrong("%s %s is the currency that every rate is quoted in; no value is of it", key, code)
	}
	return code
}

func (o *object) decimal(key string) engine.Decimal {
	text := o.text(key, nameMax)
	if text == "" {
		return engine.Decimal{}
	}
	decimal, err := engine.ParseDecimal(text)
	if err != nil {
		o.wrong("%s: %w; write it as \"40\" or leave it out", key, err)
	}
	return decimal
}

func (o *object) day(key string) engine.Date {
	text := o.text(key, nameMax)
	if text == "" {
		return 0
	}
	date, err := engine.ParseDate(text)
	if err != nil {
		o.wrong("%s: %w; write it as \"2026-09-17\" or leave it out", key, err)
	}
	return date
}

func (o *object) span(key string, otherwise time.Duration) time.Duration {
	text := o.text(key, nameMax)
	if text == "" {
		return otherwise
	}
	span, err := time.ParseDuration(text)
	if err != nil || span < spanMin || span > spanMax {
		o.wrong("%s is no span from %v to %v; write it as \"26h\"", key, spanMin, spanMax)
	}
	return span
}

// file takes the name of a file of the operator's directory or below it.
func (o *object) file(key string) string {
	name := o.text(key, nameMax)
	if name != "" && (!fs.ValidPath(name) || name == "." || strings.Contains(name, `\`)) {
		o.wrong("%s names no file below this directory; write it with / and without a / at the start or ..", key)
	}
	return name
}

// uri takes a web address; "" when the key is not there.
func (o *object) uri(key string) string {
	text := o.text(key, textMax)
	if text == "" {
		return ""
	}
	if _, ok := webAddress(text); !ok {
		o.wrong("%s is no web address; write it with https:// and only ASCII characters, others as %%XX, or leave it out", key)
	}
	return text
}

// webAddress accepts absolute http and https addresses in RFC 3986 characters, without a user's name and password.
func webAddress(text string) (*url.URL, bool) {
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

// Site is the registrable domain of a host: example.com.do of www.example.com.do. Requests of one page and redirects stay
// within it. An address in digits, or a name that has no such domain, is its own site.
func Site(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	site, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	return site
}

// isSelector reports that a CSS selector can be compiled. goquery makes a selector that cannot be compiled match nothing,
// even one that begins with "any element".
func isSelector(text string) bool {
	return goquery.Single("*, " + text).Match(&html.Node{Type: html.ElementNode, Data: "p"})
}

func (o *object) selector(key string) string {
	text := o.text(key, textMax)
	if text != "" && !isSelector(text) {
		o.wrong("%s %.80q is no CSS selector; check its brackets and quotes", key, text)
	}
	return text
}

func (o *object) pattern(key string) *regexp.Regexp {
	text := o.text(key, textMax)
	if text == "" {
		return nil
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		o.wrong("%s is no pattern: %w; the form is RE2 (Go)", key, err)
		return nil
	}
	return pattern
}

// patternText is the text of a pattern, "" when the key is not there or it is none.
func (o *object) patternText(key string) string {
	if pattern := o.pattern(key); pattern != nil {
		return pattern.String()
	}
	return ""
}

// heading takes the heading of a column as it is compared, normalised; "" when the key is not there.
func (o *object) heading(key string) string {
	text := o.name(key)
	heading := Normalise(text)
	if text != "" && heading == "" {
		o.wrong("%s has no letters and digits", key)
	}
	return heading
}

// path takes a path into JSON: names joined by dots, each with any number of [n] behind it.
func (o *object) path(key string) string {
	path := o.text(key, textMax)
	if path != "" && !isPath(path) {
		o.wrong("%s %.80q is no path; write names joined by dots, [n] for the entry n of a list and [] for its only one, as d.results[0].rate", key, path)
	}
	return path
}

// isPath reports the form of a path. Names are whatever JSON has, but for the marks of the path itself and blanks.
func isPath(path string) bool {
	step := regexp.MustCompile(`^[^\s.\[\]"]*(\[[0-9]{0,6}\])*$`)
	for part := range strings.SplitSeq(path, ".") {
		if part == "" || !step.MatchString(part) {
			return false
		}
	}
	return true
}
