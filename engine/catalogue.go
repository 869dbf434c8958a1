package engine

import (
	"cmp"
	_ "embed"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
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

	institutionList []*Institution
	currencyList    []*Currency
	sourceList      []Source
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
	extended.institutionList = sortedValues(extended.institutions)
	extended.currencyList = sortedValues(extended.currencies)
	extended.sourceList = sortedValues(extended.sources)
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
func (c *Catalogue) Institutions() []*Institution { return c.institutionList }

// Currencies returns all currencies, by code.
func (c *Catalogue) Currencies() []*Currency { return c.currencyList }

// Sources returns all sources, by id.
func (c *Catalogue) Sources() []Source { return c.sourceList }

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
	extended.sourceList = sortedValues(extended.sources)
	return &extended
}
