package engine

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tasard/tasard/engine/jsonfile"
)

// InstitutionType is the kind of business of an institution.
type InstitutionType string

// All institution types.
const (
	Bank        InstitutionType = "bank"
	Association InstitutionType = "association"
	Exchange    InstitutionType = "exchange"
	Official    InstitutionType = "official"
	Cooperative InstitutionType = "cooperative"
)

// InstitutionTypes returns all types, in the order of the API specification.
func InstitutionTypes() []InstitutionType {
	return []InstitutionType{Bank, Association, Exchange, Official, Cooperative}
}

// Institution is an entry of the catalogue: a bank or another publisher of exchange rates.
type Institution struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Type        InstitutionType `json:"type"`
	Website     string          `json:"website"` // a URI or ""
	Description string          `json:"description"`
	Contact     string          `json:"contact"`
	Active      bool            `json:"active"`
}

// Currency is an entry of the catalogue, with the plausible range of its rates.
type Currency struct {
	Code            string  `json:"code"`
	Name            string  `json:"name"` // in Spanish
	Symbol          string  `json:"symbol"`
	Lowest, Highest Decimal `json:"-"` // null = no limit
}

// Source is an origin of observations, for example a bank's web site.
type Source struct {
	ID              string
	Name            string
	URL             string        // of a web page for people, or ""
	Priority        int64         // the rate of the source with the lowest number is published
	UpstreamSource  string        // for an aggregator, the source it copies; else ""
	Lifetime        time.Duration // time from an observation to its expiry, unless the source states an expiry
	Manual          bool          // entered by an operator; takes precedence over all other sources
	PlausibleRanges []PlausibleRange
}

// PlausibleRange is the plausible range of a currency for one source. It replaces the limits in Currency and Rules. For
// example, the central bank's history needs other limits for the years when a dollar cost twelve pesos.
type PlausibleRange struct {
	Currency        string
	Until           Date    // last effective date, zero = no end; of several matching ranges, the one that ends first applies
	Lowest, Highest Decimal // null = the limit in Currency
	JumpPermille    int64   // maximum change as in Rules; 0 = Rules.JumpPermille
	SidesDiffer     bool    // true = equal buy and sell prices are refused for reference rates too
}

// Defaults of a source.
const (
	PriorityDefault = 100
	LifetimeDefault = 26 * time.Hour
)

// Catalogue lists the known institutions, currencies and sources. It is immutable and safe for concurrent use. Do not
// change its values, because they are shared. The zero Catalogue is empty.
type Catalogue struct {
	institutions map[string]*Institution
	currencies   map[string]*Currency
	sources      map[string]Source
}

//go:embed catalogue.json
var catalogueJSON string

var defaultCatalogue = sync.OnceValue(func() *Catalogue {
	catalogue, err := new(Catalogue).Extend(strings.NewReader(catalogueJSON), "catalogue.json")
	if err != nil {
		panic("engine: the embedded catalogue is damaged: " + err.Error())
	}
	return catalogue
})

// DefaultCatalogue returns the embedded catalogue: the Dominican institutions, the currencies quoted by them and the
// central bank, and the source "manual" for an operator's rates, which expire after 24 hours. Collectors add their own
// sources (WithSources).
func DefaultCatalogue() *Catalogue { return defaultCatalogue() }

// Extend returns a copy of the catalogue with the entries of an operator's JSON file. An entry replaces the whole entry
// with the same id or code. name is the file's name, for errors. Optional keys are shown with their defaults:
//
//	{"institutions": [{"id": "popular", "name": "Banco Popular Dominicano", "type": "bank",
//	                   "website": "", "description": "", "contact": "", "active": true}],
//	 "currencies":   [{"code": "USD", "name": "Dólar estadounidense",
//	                   "symbol": <code>, "lowest": <no limit>, "highest": <no limit>}],
//	 "sources":      [{"id": "popular-site", "name": <id>, "url": "", "priority": 100,
//	                   "upstreamSource": "", "lifetime": "26h", "manual": false}]}
//
// lowest and highest are decimal texts ("40"), lifetime is a Go duration. The error joins all problems of the file
// (errors.Join), each with its place in the file.
func (c *Catalogue) Extend(r io.Reader, name string) (*Catalogue, error) {
	extended := &Catalogue{
		institutions: cloned(c.institutions), currencies: cloned(c.currencies), sources: cloned(c.sources),
	}
	if err := extended.read(r, name); err != nil {
		return nil, err
	}
	return extended, nil
}

// Institution returns the institution with an id, active or not.
func (c *Catalogue) Institution(id string) (*Institution, bool) {
	institution, ok := c.institutions[id]
	return institution, ok
}

// Currency returns the currency with a code.
func (c *Catalogue) Currency(code string) (*Currency, bool) {
	currency, ok := c.currencies[code]
	return currency, ok
}

// Source returns the source with an id. For an unknown id it returns a source with defaults and the id as its name.
func (c *Catalogue) Source(id string) Source {
	if source, ok := c.sources[id]; ok {
		return source
	}
	return Source{ID: id, Name: id, Priority: PriorityDefault, Lifetime: LifetimeDefault}
}

// HasSource reports whether the catalogue contains the source.
func (c *Catalogue) HasSource(id string) bool {
	_, ok := c.sources[id]
	return ok
}

// Institutions returns all institutions, by id, including inactive ones.
func (c *Catalogue) Institutions() []*Institution { return sortedValues(c.institutions) }

// Currencies returns all currencies, by code.
func (c *Catalogue) Currencies() []*Currency { return sortedValues(c.currencies) }

// Sources returns all sources, by id.
func (c *Catalogue) Sources() []Source { return sortedValues(c.sources) }

// cloned is like maps.Clone, but never returns nil.
func cloned[V any](src map[string]V) map[string]V {
	dst := make(map[string]V, len(src))
	maps.Copy(dst, src)
	return dst
}

func sortedValues[K cmp.Ordered, V any](m map[K]V) []V {
	values := make([]V, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		values = append(values, m[key])
	}
	return values
}

// WithSources returns a catalogue with sources added or replaced.
func (c *Catalogue) WithSources(sources ...Source) *Catalogue {
	extended := *c
	extended.sources = cloned(c.sources)
	for _, source := range sources {
		extended.sources[source.ID] = source
	}
	return &extended
}

const (
	catalogueBytesMax = 1 << 20
	priorityMax       = 9_007_199_254_740_991
)

var (
	idForm   = regexp.MustCompile(fmt.Sprintf(`^[a-z0-9-]{1,%d}$`, InstitutionIDMax))
	codeForm = regexp.MustCompile(`^[A-Z]{3}$`)
)

// CheckWebAddress returns an error unless a text is empty or a WebAddress.
func CheckWebAddress(text string) error {
	if _, ok := WebAddress(text); !ok && text != "" {
		return errors.New("is not a web address; write it with https:// and only ASCII characters, others as %XX")
	}
	return nil
}

// CheckLifetime returns an error unless a text is a duration for which a rate may be valid. Times are published in
// whole seconds, and no rate is valid for more than a year.
func CheckLifetime(text string) error {
	const durationMin, durationMax = time.Second, 366 * 24 * time.Hour
	if duration, err := time.ParseDuration(text); err != nil || duration < durationMin || duration > durationMax {
		return fmt.Errorf(`is not a duration from %v to %v; write it as "26h"`, durationMin, durationMax)
	}
	return nil
}

// Entries of a catalogue file whose JSON form differs from the types of the catalogue.
type (
	currencyEntry struct {
		Currency
		Lowest, Highest string
	}
	sourceEntry struct {
		ID, Name, URL, UpstreamSource, Lifetime string
		Priority                                int64
		Manual                                  bool
	}
)

// catalogueFile collects the problems of a catalogue file. The parameter place of its methods is as in Problems.Addf.
type catalogueFile struct {
	jsonfile.Problems
}

// read adds the entries of a catalogue file to c. After an error c must not be used.
func (c *Catalogue) read(r io.Reader, name string) error {
	data, err := io.ReadAll(io.LimitReader(r, catalogueBytesMax+1))
	if err != nil {
		return fmt.Errorf("read catalogue %s: %w", name, err)
	}
	value, err := jsonfile.Read(name, data, catalogueBytesMax)
	if err != nil {
		return err
	}
	f := &catalogueFile{jsonfile.Problems{File: name}}
	f.CheckTexts("", value)
	var lists struct{ Institutions, Currencies, Sources []json.RawMessage }
	if _, isObject := value.(map[string]any); !isObject {
		f.Addf("", "is not a JSON object; write { ... }")
	} else {
		f.Decode("", data, &lists)
	}
	readEntries(f, "institutions", lists.Institutions, Institution{Active: true}, func(place string, e *Institution) string {
		f.checkInstitution(place, e)
		c.institutions[e.ID] = e
		return e.ID
	})
	readEntries(f, "currencies", lists.Currencies, currencyEntry{}, func(place string, e *currencyEntry) string {
		e.Symbol = cmp.Or(e.Symbol, e.Code)
		f.checkCurrency(place, e)
		c.currencies[e.Code] = &e.Currency
		return e.Code
	})
	byDefault := sourceEntry{Priority: PriorityDefault, Lifetime: LifetimeDefault.String()}
	readEntries(f, "sources", lists.Sources, byDefault, func(place string, e *sourceEntry) string {
		f.checkSource(place, e)
		lifetime, _ := time.ParseDuration(e.Lifetime)
		c.sources[e.ID] = Source{
			ID: e.ID, Name: cmp.Or(e.Name, e.ID), URL: e.URL, Priority: e.Priority, UpstreamSource: e.UpstreamSource, Lifetime: lifetime, Manual: e.Manual,
		}
		return e.ID
	})
	return f.Err()
}

// readEntries decodes each entry of a list into a copy of defaults and calls add, which returns the entry's id. Two
// entries with the same id are a problem.
func readEntries[T any](f *catalogueFile, list string, raws []json.RawMessage, defaults T, add func(place string, entry *T) string) {
	places := map[string]string{}
	for i, raw := range raws {
		place, entry := fmt.Sprintf("%s[%d]", list, i), defaults
		if !f.Decode(place, raw, &entry) {
			continue
		}
		id := add(place, &entry)
		if other, found := places[id]; found {
			f.Addf(place, "%s stands already in %s; keep one of them", id, other)
		}
		places[id] = place
	}
}

// checkText reports a text of too few or too many characters.
func (f *catalogueFile) checkText(place, text string, charactersMin, charactersMax int) {
	switch n := utf8.RuneCountInString(text); {
	case n < charactersMin:
		f.Addf(place, "is missing or empty; an entry is given as a whole, also when it replaces a known one")
	case n > charactersMax:
		f.Addf(place, "has %d characters; shorten it to %d", n, charactersMax)
	}
}

func (f *catalogueFile) checkForm(place, text string, form *regexp.Regexp) {
	if f.checkText(place, text, 1, catalogueBytesMax); text != "" && !form.MatchString(text) {
		f.Addf(place, "%.40q is not of the form %s", text, form)
	}
}

func (f *catalogueFile) checkValue(place string, err error) {
	if err != nil {
		f.Addf(place, "%w", err)
	}
}

func (f *catalogueFile) checkInstitution(place string, e *Institution) {
	f.checkForm(place+".id", e.ID, idForm)
	f.checkText(place+".name", e.Name, 1, 200)
	if !slices.Contains(InstitutionTypes(), e.Type) {
		f.Addf(place+".type", "is not one of %s", strings.Trim(strings.ReplaceAll(fmt.Sprint(InstitutionTypes()), " ", ", "), "[]"))
	}
	f.checkText(place+".website", e.Website, 0, 2000)
	f.checkValue(place+".website", CheckWebAddress(e.Website))
	f.checkText(place+".description", e.Description, 0, 2000)
	f.checkText(place+".contact", e.Contact, 0, 200)
}

func (f *catalogueFile) checkCurrency(place string, e *currencyEntry) {
	if f.checkForm(place+".code", e.Code, codeForm); e.Code == QuoteCurrency {
		f.Addf(place, "%s is the currency that every rate is quoted in; take the entry out", e.Code)
	}
	f.checkText(place+".name", e.Name, 1, 200)
	f.checkText(place+".symbol", e.Symbol, 0, 16)
	for key, limit := range map[string]struct {
		text string
		to   *Decimal
	}{".lowest": {e.Lowest, &e.Currency.Lowest}, ".highest": {e.Highest, &e.Currency.Highest}} {
		if limit.text != "" {
			var err error
			*limit.to, err = ParseDecimal(limit.text)
			f.checkValue(place+key, err)
		}
	}
	if e.Lowest != "" && e.Highest != "" && e.Currency.Lowest.Compare(e.Currency.Highest) > 0 {
		f.Addf(place, "lowest %s is above highest %s; exchange them", e.Lowest, e.Highest)
	}
}

func (f *catalogueFile) checkSource(place string, e *sourceEntry) {
	f.checkForm(place+".id", e.ID, idForm)
	f.checkText(place+".name", e.Name, 0, 200)
	f.checkText(place+".url", e.URL, 0, 2000)
	f.checkValue(place+".url", CheckWebAddress(e.URL))
	if e.Priority < 0 || e.Priority > priorityMax {
		f.Addf(place+".priority", "is not a whole number from 0 to %d", priorityMax)
	}
	f.checkText(place+".upstreamSource", e.UpstreamSource, 0, 200)
	f.checkValue(place+".lifetime", CheckLifetime(e.Lifetime))
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

// nearestBytesMax is the number of bytes of a text that are compared. More would take too long (see EditDistance).
const nearestBytesMax = 32

// EditDistance returns the Damerau-Levenshtein distance (optimal string alignment) of two words, ignoring case. The
// running time grows with the product of the lengths, so unknown words must be truncated.
func EditDistance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	beforeLast, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], beforeLast[j-1]+1)
			}
		}
		beforeLast, last, row = last, row, beforeLast
	}
	return last[len(b)]
}

// NearestCurrency returns the currency with the code or name most similar to a text, as a code, or "" if none is
// similar.
func (c *Catalogue) NearestCurrency(text string) string {
	return nearest(text, func(compare func(word, result string)) {
		for _, currency := range c.Currencies() {
			compare(currency.Code, currency.Code)
			compare(currency.Name, currency.Code)
		}
	})
}

// NearestInstitution returns the active institution with the id or name most similar to a text, as an id, or "" if none
// is similar.
func (c *Catalogue) NearestInstitution(text string) string {
	return nearest(text, func(compare func(word, result string)) {
		for _, institution := range c.Institutions() {
			if institution.Active {
				compare(institution.ID, institution.ID)
				compare(institution.Name, institution.ID)
			}
		}
	})
}

// nearest returns the result of the word most similar to text. The edit distance of a similar word is at most a third
// of the length of text. each calls compare for every word.
func nearest(text string, each func(compare func(word, result string))) string {
	text = text[:min(len(text), nearestBytesMax)]
	best, bestDistance := "", max(2, len(text)/3+1)
	each(func(word, result string) {
		if difference := len(word) - len(text); max(difference, -difference) >= bestDistance {
			return
		}
		if distance := EditDistance(text, word); distance < bestDistance {
			best, bestDistance = result, distance
		}
	})
	return best
}
