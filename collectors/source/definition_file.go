package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
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
			p.addf("", "has no pages and changes nothing; write a whole definition, or one of the keys that docs/definitions.md names")
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

// addf adds a problem; see jsonfile.Problems.
func (p *problems) addf(place, format string, args ...any) { p.Addf(place, format, args...) }

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
