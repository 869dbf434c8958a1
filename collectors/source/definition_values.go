package source

import (
	"io/fs"
	"net/netip"
	"regexp"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/tasard/tasard/collectors/markup"
	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/jsonfile"
)

// object is a JSON object in a definition file. Each of its methods reads the value of one key. It reports an invalid
// value to jsonfile, which collects the problems of the file.
type object struct{ *jsonfile.Object }

// part calls visit with the child object of a key. It returns false if the key is missing.
func (o *object) part(key string, visit func(*object)) bool {
	return o.Child(key, func(part *jsonfile.Object) { visit(&object{part}) })
}

// requiredPart is like part, but it reports an error if the key is missing.
func (o *object) requiredPart(key string, visit func(*object)) {
	if !o.part(key, visit) {
		o.Errorf("%s is missing; the method needs it", key)
	}
}

// each calls visit with each object in the list of a key. entries is the maximum length of the list.
func (o *object) each(key string, entries int, visit func(*object)) {
	o.Each(key, entries, func(item *jsonfile.Object) { visit(&object{item}) })
}

func (o *object) shortText(key string) string { return o.Text(key, nameMax) }

func (o *object) id(key string) string { return o.ID(key, engine.InstitutionIDMax) }

// currency reads a currency code. It returns "" if the key is missing.
func (o *object) currency(key string) string {
	code := o.CurrencyCode(key)
	if code == engine.QuoteCurrency {
		o.Errorf("%s %s is the quote currency of all rates; name the other currency", key, code)
	}
	return code
}

func (o *object) day(key string) engine.Date {
	return jsonfile.Parsed(o.Object, key, "2026-09-17", engine.ParseDate)
}

// file reads the path of a file below the directory of the definition file.
func (o *object) file(key string) string {
	name := o.Text(key, nameMax)
	if name != "" && (!fs.ValidPath(name) || name == "." || strings.Contains(name, `\`)) {
		o.Errorf("%s is not a file below this directory; write it with /, without .. and without a / at the start", key)
	}
	return name
}

// Site returns the registrable domain of a host, for example example.com.do for www.example.com.do. An IP address, or a
// name without a registrable domain, is returned as it is. The requests of a page and their redirects stay on one site.
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

func (o *object) selector(key string) string {
	text := o.Text(key, textMax)
	if text != "" && !markup.IsSelector(text) {
		o.Errorf("%s %.80q is not a CSS selector; check its brackets and quotes", key, text)
	}
	return text
}

func (o *object) pattern(key string) *regexp.Regexp {
	text := o.Text(key, textMax)
	if text == "" {
		return nil
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		o.Errorf("%s is not a pattern: %w; the syntax is RE2 (Go)", key, err)
		return nil
	}
	return pattern
}

// patternText reads a regular expression. It returns "" if the key is missing or the expression is invalid.
func (o *object) patternText(key string) string {
	if pattern := o.pattern(key); pattern != nil {
		return pattern.String()
	}
	return ""
}

// heading reads the heading of a column and normalises it. It returns "" if the key is missing.
func (o *object) heading(key string) string {
	text := o.shortText(key)
	heading := values.NormaliseLabel(text)
	if text != "" && heading == "" {
		o.Errorf("%s has no letters and digits", key)
	}
	return heading
}

// path reads a path in a JSON document: names joined by dots. Any number of [n] may follow a name.
func (o *object) path(key string) string {
	path := o.Text(key, textMax)
	if path != "" && !isPath(path) {
		o.Errorf("%s %.80q is not a path; write names joined by dots, [n] for the entry n of a list and [] for its only one, as d.results[0].rate", key, path)
	}
	return path
}

// isPath reports whether a path is valid. Names may have any characters except white space and . [ ] ".
func isPath(path string) bool {
	step := regexp.MustCompile(`^[^\s.\[\]"]*(\[[0-9]{0,6}\])*$`)
	for part := range strings.SplitSeq(path, ".") {
		if part == "" || !step.MatchString(part) {
			return false
		}
	}
	return true
}
