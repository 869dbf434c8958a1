package source

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/net/publicsuffix"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/tasard/tasard/collectors/markup"
	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/jsonfile"
)

const (
	fileBytesMax  = 256 << 10
	decimalsLimit = 8 // number of decimals of a price that the engine keeps

	// afterDateDefault is how long a rate with a date is valid after that day: over a long weekend. Without a limit, a
	// page that its institution has stopped updating would stay current, because each check of it renews its rates.
	afterDateDefault = 5 * 24 * time.Hour
)

// definitionFile is the content of one file: a whole definition, or changes of an existing definition.
type definitionFile struct {
	name       string
	id         string      // of the definition that the file defines or changes
	definition *Definition // nil in a file with changes
	text       []byte
}

// readDefinitionFile reads a file. The schema checks each key; finish checks keys that depend on each other. The error
// joins all problems, each with the place of the key. tested means that the file is built in and a test has checked it.
// Then the schema is skipped, because it takes ten times as long as reading the file.
func readDefinitionFile(name string, text []byte, tested bool) (*definitionFile, error) {
	p := &problems{jsonfile.Problems{File: name}}
	if !tested {
		value, err := jsonfile.Read(name, text, fileBytesMax)
		if err != nil {
			return nil, err
		}
		p.CheckTexts("", value)
		if invalid := (*jsonschema.ValidationError)(nil); errors.As(schema().Validate(value), &invalid) {
			p.addInvalid(invalid)
		}
		if err := p.Err(); err != nil {
			return nil, err
		}
	}
	d := &Definition{
		Priority: engine.PriorityDefault, Kind: engine.Commercial, Channel: engine.Unspecified, DecimalsMax: decimalsLimit,
		Expiry: Expiry{AfterCheck: engine.LifetimeDefault},
	}
	var keys map[string]json.RawMessage
	var more struct { // texts that the schema has checked
		Expiry struct{ AfterCheck, AfterDate string }
		Bounds []struct {
			Currency, Lowest, Highest string
			Until                     Day
			JumpPermille              int64
			SidesDiffer               bool
		}
		Labels Labels
	}
	if err := errors.Join(json.Unmarshal(text, &keys), json.Unmarshal(text, d), json.Unmarshal(text, &more)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	given := func(key string) bool { return keys[key] != nil }
	file := &definitionFile{name: name, id: d.ID, text: text}
	if !given("pages") {
		if delete(keys, "$schema"); len(keys) == 1 {
			p.Addf("", "has no pages and changes nothing; write a whole definition, or one of the keys that docs/definitions.md names")
		}
		return file, p.Err()
	}
	if !given("disabled") {
		d.Disabled = d.Evidence.OldReason()
	}
	if more.Expiry.AfterCheck != "" {
		d.Expiry.AfterCheck, _ = time.ParseDuration(more.Expiry.AfterCheck)
	}
	d.Expiry.AfterDate, _ = time.ParseDuration(more.Expiry.AfterDate)
	if more.Expiry.AfterDate == "" && d.isDated() {
		d.Expiry.AfterDate = afterDateDefault
	}
	for _, b := range more.Bounds {
		lowest, _ := engine.ReadDecimal(b.Lowest) // of "": null
		highest, _ := engine.ReadDecimal(b.Highest)
		d.Bounds = append(d.Bounds, engine.PlausibleRange{
			Currency: b.Currency, Until: engine.Date(b.Until), Lowest: lowest, Highest: highest, JumpPermille: b.JumpPermille, SidesDiffer: b.SidesDiffer,
		})
	}
	p.finish(d, more.Labels)
	file.definition = d
	return file, p.Err()
}

// problems collects the problems of a file.
type problems struct{ jsonfile.Problems }

// addInvalid adds the problems that the schema has found.
func (p *problems) addInvalid(invalid *jsonschema.ValidationError) {
	names, isName := invalid.ErrorKind.(*kind.PropertyNames)
	for _, cause := range invalid.Causes {
		if !isName {
			p.addInvalid(cause)
		}
	}
	if len(invalid.Causes) > 0 && !isName {
		return
	}
	place := ""
	for _, step := range invalid.InstanceLocation {
		if _, err := strconv.Atoi(step); err == nil {
			place += "[" + step + "]"
		} else {
			place += "." + step
		}
	}
	switch problem := invalid.ErrorKind.(type) {
	case *kind.Required:
		for _, key := range problem.Missing {
			p.Addf(place, "%s is missing", key)
		}
	case *kind.AdditionalProperties:
		p.Addf(place, "unknown key %q", strings.Join(problem.Properties, ", "))
	case *kind.PropertyNames:
		// The library does not report the place of a name.
		if _, isKey := invalid.Causes[0].ErrorKind.(*kind.Enum); isKey {
			p.Addf("", "unknown key %q", names.Property)
		} else {
			p.Addf("", "the name of a header, %.40q, has other characters than letters, digits and hyphens", names.Property)
		}
	case *kind.Format:
		p.Addf(place, "%w", problem.Err)
	default:
		p.Addf(place, "%s", problem.LocalizedString(message.NewPrinter(language.English)))
	}
}

// schemaURL names the schema. It must be absolute: the library turns a relative one into a file URL, and does not find
// the schema if the path of the working directory contains a space or a character outside ASCII.
const schemaURL = "https://tasard.example/definition.schema.json"

// schema returns the compiled schema of definition files, with formats for the texts that need a parser.
var schema = sync.OnceValue(func() *jsonschema.Schema {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for name, check := range formats() {
		compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(value any) error {
			if text, isText := value.(string); isText && text != "" {
				return check(text)
			}
			return nil
		}})
	}
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err == nil {
		err = compiler.AddResource(schemaURL, text)
	}
	if err != nil {
		panic("source: " + err.Error()) // impossible: it is embedded, and tested
	}
	return compiler.MustCompile(schemaURL)
})

// formats returns the formats that the schema names.
func formats() map[string]func(text string) error {
	return map[string]func(text string) error{
		"selector": func(text string) error {
			return wantIf(markup.IsSelector(text), "%.80q is not a CSS selector; check its brackets and quotes", text)
		},
		"re2": func(text string) error {
			_, err := regexp.Compile(text)
			return wantIf(err == nil, "is not a pattern: %v; the syntax is RE2 (Go)", err)
		},
		"re2-part": func(text string) error {
			pattern, err := regexp.Compile(text)
			if err != nil {
				return fmt.Errorf("is not a pattern: %w; the syntax is RE2 (Go)", err)
			}
			return wantIf(pattern.NumSubexp() < 2, "has %d groups, but only the first one counts; write the others as (?:...)", pattern.NumSubexp())
		},
		"json-path": func(text string) error {
			return wantIf(isPath(text), "%.80q is not a path; write names joined by dots, [n] for the entry n of a list and [] for its only one, as d.results[0].rate", text)
		},
		"heading": func(text string) error {
			return wantIf(values.NormaliseLabel(text) != "", "has no letters and digits")
		},
		"request-address": checkRequestAddress,
		"proxy-address":   checkProxy,
		"file": func(text string) error {
			return wantIf(fs.ValidPath(text) && text != "." && !strings.Contains(text, `\`),
				"is not a file below this directory; write it with /, without .. and without a / at the start")
		},
		"web-address":    engine.CheckWebAddress,
		"duration-of-go": engine.CheckLifetime,
		"day":            func(text string) error { _, err := engine.ParseDate(text); return err },
		"decimal":        func(text string) error { _, err := engine.ParseDecimal(text); return err },
	}
}

func wantIf(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// checkRequestAddress accepts https, and http only to a machine of the operator that is named by its IP address.
func checkRequestAddress(text string) error {
	address, ok := engine.WebAddress(text)
	if !ok {
		return errors.New("is not a web address; write it with https:// and only ASCII characters, others as %XX")
	}
	ip, err := netip.ParseAddr(address.Hostname())
	own := err == nil && (ip.IsLoopback() || ip.IsPrivate())
	switch {
	case address.Scheme == "http" && !own:
		return errors.New("begins with http://, which is not protected; use https://, or the IP address of a machine of your own")
	case address.Fragment != "" || strings.HasSuffix(text, "#"):
		return errors.New("has a # part, which is never sent; remove it")
	}
	return nil
}

func checkProxy(text string) error {
	address, err := url.Parse(text)
	switch {
	case err != nil || !slices.Contains([]string{"http", "https", "socks5"}, address.Scheme) || address.Hostname() == "" ||
		strings.Trim(address.Path, "/")+address.RawQuery+address.Fragment != "":
		return errors.New("is not the address of a proxy; write http://, https:// or socks5://, host and port")
	case address.User != nil:
		return errors.New("has a password, which others could read here; use a proxy that needs none from this machine")
	}
	return nil
}

// isPath reports whether a path in a JSON document is valid: names joined by dots. Any number of [n] may follow a name.
// Names may have any characters except white space and . [ ] ".
func isPath(path string) bool {
	step := regexp.MustCompile(`^[^\s.\[\]"]*(\[[0-9]{0,6}\])*$`)
	for part := range strings.SplitSeq(path, ".") {
		if part == "" || !step.MatchString(part) {
			return false
		}
	}
	return true
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

// UnmarshalText reads a day such as 2026-09-17.
func (d *Day) UnmarshalText(text []byte) error {
	day, err := engine.ParseDate(string(text))
	*d = Day(day)
	return err
}

// UnmarshalJSON keeps the value as compact text.
func (t *JSONText) UnmarshalJSON(data []byte) error {
	var compact bytes.Buffer
	err := json.Compact(&compact, data)
	*t = JSONText(compact.String())
	return err
}

// finish fills defaults, normalises headings and labels, and reports the problems of a definition that involve several
// keys. labels are those of the whole file.
func (p *problems) finish(d *Definition, labels Labels) {
	if d.Institution == "" && d.UpstreamSource == "" {
		p.Addf("", "neither institution nor upstreamSource is given; name the institution of the source, or the aggregator")
	}
	shared := p.normalisedLabels("labels", labels)
	names := map[string]bool{}
	for i := range d.Pages {
		page, place := &d.Pages[i], fmt.Sprintf("pages[%d]", i)
		p.finishRequests(place, page)
		p.finishExtract(place+".extract", d, page, shared)
		isReplaced := func(other Page) bool { return other.Name == page.InsteadOf && other.InsteadOf == "" }
		if page.InsteadOf != "" && !slices.ContainsFunc(d.Pages[:i], isReplaced) {
			p.Addf(place, "is read instead of %q; name an earlier page that has no insteadOf itself", page.InsteadOf)
		}
		if names[page.Name] || page.Name == "" && len(d.Pages) > 1 {
			p.Addf(place, "has the name %q; with more than one page each needs its own", page.Name)
		}
		names[page.Name] = true
	}
	p.finishSecrets(d)
}

// reservedHeaders returns the HTTP headers that a definition must not set, because package fetch sets them.
func reservedHeaders() []string {
	return []string{
		"Accept-Encoding", "Accept-Language", "Connection", "Content-Length", "Content-Type", "Cookie", "Expect", "From", "Host",
		"If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Proxy-Authorization", "Range", "Te",
		"Trailer", "Transfer-Encoding", "Upgrade", "User-Agent",
	}
}

// secretHeaders returns the usual headers of API keys. A definition must not set them, because it is not confidential.
func secretHeaders() []string {
	return []string{"Api-Key", "Apikey", "Authorization", "Ocp-Apim-Subscription-Key", "X-Access-Token", "X-Api-Key"}
}

func (p *problems) finishRequests(place string, page *Page) {
	site := ""
	for i := range page.Requests {
		r, place := &page.Requests[i], fmt.Sprintf("%s.requests[%d]", place, i)
		r.Method = cmp.Or(r.Method, "GET")
		switch {
		case (r.URL == "") == (r.AddressFrom == nil):
			p.Addf(place, "needs either url or addressFrom, and not both")
		case i == 0 && r.AddressFrom != nil:
			p.Addf(place, "addressFrom in the first request: there is no response before it; give it a url")
		case (r.Method == "POST") != (r.Form != nil || r.JSON != "") || r.Form != nil && r.JSON != "":
			p.Addf(place, "a POST has one body, form or json ({} for an empty form), and a GET has none")
		}
		p.checkHeaders(place, r.Headers)
		if address, err := url.Parse(r.URL); err == nil && r.URL != "" {
			if site = cmp.Or(site, Site(address.Hostname())); site != Site(address.Hostname()) {
				p.Addf(place, "goes to %s, but the first one to %s; all requests of a page stay on one site", Site(address.Hostname()), site)
			}
		}
	}
}

func (p *problems) checkHeaders(place string, headers map[string]string) {
	for name := range headers {
		switch header := textproto.CanonicalMIMEHeaderKey(name); {
		case slices.Contains(reservedHeaders(), header):
			p.Addf(place, "the header %s is not for a definition to set; remove it", header)
		case slices.Contains(secretHeaders(), header):
			p.Addf(place, `the header %s has a secret, which others can read here; put it into a file and name that in "secret"`, header)
		}
	}
}

// finishExtract does the work of finish for Page.Extract. shared are the labels for all pages of the file.
func (p *problems) finishExtract(place string, d *Definition, page *Page, shared Labels) {
	e := &page.Extract
	page.normalise()
	hasInstitution := d.Institution+page.Institution != ""
	for i, f := range e.Fields {
		place := fmt.Sprintf("%s.fields[%d]", place, i)
		switch {
		case !hasInstitution:
			p.Addf(place, "has no institution; name one for the source or the page")
		case f.Currency+page.Currency == "":
			p.Addf(place, "has no currency; name it here or for the page")
		}
	}
	if r := e.Rows; r != nil {
		place += ".rows"
		switch {
		case r.Buy == nil && r.Sell == nil && r.Value == nil:
			p.Addf(place, "has neither buy nor sell nor value; say where the values are")
		case r.Value != nil && (r.Buy != nil || r.Sell != nil):
			p.Addf(place, "has value beside buy or sell; a row has either one value or its sides")
		}
		r.Labels = p.normalisedLabels(place+".labels", r.Labels)
		for i := range r.Ignore {
			r.Ignore[i] = values.NormaliseLabel(r.Ignore[i])
		}
		p.mergeLabels(place, r.Labels, shared, r.Ignore, hasInstitution, page.Currency != "", r.Value != nil)
	}
	if e.Text != nil {
		p.finishText(place+".text", d, page, shared)
	}
}

// normalise sets the default of Rows.Min, and normalises headings.
func (page *Page) normalise() {
	e := &page.Extract
	if e.Sheet != nil {
		for _, heading := range []*string{&e.Sheet.Name, &e.Sheet.Year, &e.Sheet.Month, &e.Sheet.Day} {
			*heading = values.NormaliseLabel(*heading)
		}
		for i := range e.Fields {
			e.Fields[i].At = values.NormaliseLabel(e.Fields[i].At)
		}
	}
	if r := e.Rows; r != nil {
		r.Min = max(r.Min, 1)
		for _, locator := range []*Locator{&r.Label, r.Buy, r.Sell, r.Value} {
			if locator != nil {
				locator.Column = values.NormaliseLabel(locator.Column)
			}
		}
		if r.Date != nil {
			r.Date.Column = values.NormaliseLabel(r.Date.Column)
		}
	}
}

// normalisedLabels returns the labels in normalised form.
func (p *problems) normalisedLabels(place string, labels Labels) Labels {
	normalised, names := Labels{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if name == byWords {
			normalised[name] = Target{}
			continue
		}
		label := values.NormaliseLabel(name)
		if first, exists := names[label]; exists {
			p.Addf(place+"."+name, "is the same label as %q without spaces, accents and capitals; keep one", first)
		}
		names[label], normalised[label] = name, labels[name]
	}
	return normalised
}

// mergeLabels adds the labels of the whole file to the labels of a page, without those that the page itself defines or
// ignores. It reports labels if it is not clear which quote they stand for on this page.
func (p *problems) mergeLabels(place string, labels, shared Labels, ignored []string, hasInstitution, hasCurrency, withSide bool) {
	for label, target := range shared {
		if _, known := labels[label]; !known && !slices.Contains(ignored, label) {
			labels[label] = target
		}
	}
	if len(labels) == 0 {
		p.Addf(place, "labels is missing or empty, here and for the whole file; say what each label means")
	}
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		t, problem := labels[label], ""
		switch {
		case t.Institution == "" && !hasInstitution:
			problem = "names no institution; name it here, for the page or for the source"
		case t.Currency == "" && !hasCurrency && label != byWords:
			problem = "names no currency; name it here or for the page"
		case withSide && t.Side == "" && label != byWords:
			problem = "names no side, but the rows have one value each; say which side it is"
		default:
			continue
		}
		p.Addf(place, "the label %.40q, here or of the file, %s", label, problem)
	}
}

// finishText does the work of finish for Extract.Text. It checks the groups of the pattern.
func (p *problems) finishText(place string, d *Definition, page *Page, shared Labels) {
	t, hasInstitution := page.Extract.Text, d.Institution+page.Institution != ""
	names := regexp.MustCompile(t.Pattern).SubexpNames()
	if !slices.Contains(names, "buy") && !slices.Contains(names, "sell") {
		p.Addf(place, "pattern has neither the group buy nor the group sell; write (?P<buy>...)")
	}
	if slices.Contains(names, "label") {
		t.Labels = p.normalisedLabels(place+".labels", t.Labels)
		p.mergeLabels(place, t.Labels, shared, nil, hasInstitution, page.Currency != "", false)
		return
	}
	if !hasInstitution || page.Currency == "" {
		p.Addf(place, "pattern has no group label, so the source or the page must name the institution, and the page the currency")
	}
}

// finishSecrets reports a problem if a secret could be sent to another site. Package fetch sends none without TLS.
func (p *problems) finishSecrets(d *Definition) {
	var headers []*string
	if d.Secret != nil {
		headers = append(headers, &d.Secret.Header)
	}
	if d.OAuth2 != nil {
		headers = append(headers, &d.OAuth2.ClientIDHeader)
	}
	if d.Secret != nil && d.OAuth2 != nil {
		p.Addf("", "has secret and oauth2; keep one")
	}
	for _, header := range headers {
		if *header = textproto.CanonicalMIMEHeaderKey(*header); slices.Contains(reservedHeaders(), *header) {
			p.Addf("", "the header %s can't be set; use the header that the site documents, such as X-Api-Key", *header)
		}
	}
	for i := range d.Pages {
		for j := range d.Pages[i].Requests {
			if d.Pages[i].Requests[j].AddressFrom != nil && headers != nil {
				p.Addf(fmt.Sprintf("pages[%d].requests[%d]", i, j), "takes its address from a page, which could send the secret elsewhere; write its url")
			}
		}
	}
}

// MayCarrySecret reports whether a request may carry a secret: with TLS, or directly to an address of this machine.
func MayCarrySecret(address *url.URL, proxy string) bool {
	ip, err := netip.ParseAddr(address.Hostname())
	return address.Scheme == "https" || proxy == "" && err == nil && ip.IsLoopback()
}

// Labels maps the normalised labels of rows to quotes. If a definition file has the text "currencies" instead of an
// object, labels are looked up in a dictionary of currency words (values.LabelWords).
type Labels map[string]Target

// byWords is a key that marks Labels with the dictionary. It can't be in a file, where control characters are refused.
const byWords = "\x00currencies"

// UnmarshalJSON reads an object of labels, or "currencies".
func (l *Labels) UnmarshalJSON(data []byte) error {
	if string(data) == `"currencies"` {
		*l = Labels{byWords: {}}
		return nil
	}
	return json.Unmarshal(data, (*map[string]Target)(l))
}

// find returns the quote that a normalised label stands for. withSide means that a row has only one price. A label of
// the dictionary must then name the side, and otherwise must not.
func (l Labels) find(label string, withSide bool) (Target, bool) {
	target, known := l[label]
	if _, words := l[byWords]; known || !words {
		return target, known
	}
	currency, channel, side, ok := values.LabelWords(label)
	return Target{Currency: currency, Channel: engine.Channel(channel), Side: Side(side)}, ok && (side != "") == withSide
}

// targetsOfWords returns all quotes that labels of the dictionary can stand for.
func targetsOfWords() (targets []Target) {
	for _, currency := range values.LabelCurrencies() {
		for _, channel := range []engine.Channel{"", engine.Branch, engine.Digital, engine.Cash, engine.Transfer} {
			targets = append(targets, Target{Currency: currency, Channel: channel})
		}
	}
	return targets
}
