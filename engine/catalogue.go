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

// InstitutionType is what an institution is.
type InstitutionType string

// The closed list of types (interface §2.4).
const (
	Bank        InstitutionType = "bank"
	Association InstitutionType = "association"
	Exchange    InstitutionType = "exchange"
	Official    InstitutionType = "official"
	Cooperative InstitutionType = "cooperative"
)

// InstitutionTypes returns the closed list, in the order of the contract.
func InstitutionTypes() []InstitutionType {
	return []InstitutionType{Bank, Association, Exchange, Official, Cooperative}
}

// Institution is an entry of the catalogue.
type Institution struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Type        InstitutionType `json:"type"`
	Website     string          `json:"website"` // a URI or ""
	Description string          `json:"description"`
	Contact     string          `json:"contact"`
	Active      bool            `json:"active"`
}

// Currency is an entry of the catalogue, with the band outside which no rate of it is believed (I3).
type Currency struct {
	Code            string  `json:"code"`
	Name            string  `json:"name"` // in Spanish
	Symbol          string  `json:"symbol"`
	Lowest, Highest Decimal `json:"-"` // null = no bound
}

// Source is where observations come from: its precedence among the sources of one quote (S11) and how long it is believed.
type Source struct {
	ID              string
	Name            string
	URL             string           // the page that a person can open, a URI or ""
	Priority        int64            // lower wins; 100 unless stated
	UpstreamSource  string           // whom an aggregator repeats, "" for the institution's own word
	Lifetime        time.Duration    // from a check to expiry when the source states none (T3); 26 h unless stated
	Manual          bool             // typed by an operator: wins over every collected one (S11)
	PlausibleRanges []PlausibleRange // what is believed of it where the currency's band and the limits of the rules do not fit
}

// PlausibleRange is what is believed of one source's values of one currency, instead of the currency's band and the jump limit of the
// rules (I3): an official history reaches back to years in which a dollar was worth twelve pesos.
type PlausibleRange struct {
	Currency        string
	Until           Date    // effective dates up to this one, included; zero = every date. The earliest that fits counts
	Lowest, Highest Decimal // null = the currency's
	JumpPermille    int64   // 0 = the rules'
	SidesDiffer     bool    // equal sides are one side read twice (X14), as they are in every commercial quote
}

// Defaults of a source that the catalogue does not describe (S11, T3).
const (
	PriorityDefault = 100
	LifetimeDefault = 26 * time.Hour
)

// Catalogue is what is known without any observation: institutions, currencies and sources. It is immutable and safe for
// concurrent use; what it hands out is shared and must not be changed. The zero Catalogue is empty.
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

// DefaultCatalogue is the catalogue that the program carries: the Dominican institutions, the currencies that they or the
// central bank quote, and one source: rates typed by hand (manual), believed for 24 hours, because whoever types one is expected to
// look again the next day. What is collected is described by its collector (WithSources).
func DefaultCatalogue() *Catalogue { return defaultCatalogue() }

// Extend is the catalogue with the entries of an operator's JSON file added; an entry whose id or code is known already
// replaces the known one as a whole. The receiver stays as it is. name is the file's name, for errors.
//
// The file, with every key that may be left out shown with its default:
//
//	{"institutions": [{"id": "popular", "name": "Banco Popular Dominicano", "type": "bank",
//	                   "website": "", "description": "", "contact": "", "active": true}],
//	 "currencies":   [{"code": "USD", "name": "Dólar estadounidense",
//	                   "symbol": <code>, "lowest": <no bound>, "highest": <no bound>}],
//	 "sources":      [{"id": "popular-site", "name": <id>, "url": "", "priority": 100,
//	                   "upstreamSource": "", "lifetime": "26h", "manual": false}]}
//
// PlausibleRanges are decimal texts ("40"), spans are Go durations. The error tells every problem of the file at once, each with its
// place and the way out; it unwraps to one error for each (errors.Join).
func (c *Catalogue) Extend(r io.Reader, name string) (*Catalogue, error) {
	file, err := readCatalogueFile(r, name)
	if err != nil {
		return nil, err
	}
	extended := &Catalogue{
		institutions: cloned(c.institutions), currencies: cloned(c.currencies), sources: cloned(c.sources),
	}
	for _, institution := range file.institutions {
		extended.institutions[institution.ID] = institution
	}
	for _, currency := range file.currencies {
		extended.currencies[currency.Code] = currency
	}
	for _, source := range file.sources {
		extended.sources[source.ID] = source
	}
	extended.institutionList = sortedValues(extended.institutions)
	extended.currencyList = sortedValues(extended.currencies)
	extended.sourceList = sortedValues(extended.sources)
	return extended, nil
}

// Institution is the institution of an id, active or not.
func (c *Catalogue) Institution(id string) (*Institution, bool) {
	institution, ok := c.institutions[id]
	return institution, ok
}

// Currency is the currency of a code.
func (c *Catalogue) Currency(code string) (*Currency, bool) {
	currency, ok := c.currencies[code]
	return currency, ok
}

// Source is the source of an id. One that the catalogue does not describe has its id as name and the defaults.
func (c *Catalogue) Source(id string) Source {
	if source, ok := c.sources[id]; ok {
		return source
	}
	return Source{ID: id, Name: id, Priority: PriorityDefault, Lifetime: LifetimeDefault}
}

// HasSource reports that the catalogue describes the source; every other id is taken for one with the defaults.
func (c *Catalogue) HasSource(id string) bool {
	_, ok := c.sources[id]
	return ok
}

// Institutions are all institutions, inactive ones too, by id (P4).
func (c *Catalogue) Institutions() []*Institution { return c.institutionList }

// Currencies are all currencies, by code (P4).
func (c *Catalogue) Currencies() []*Currency { return c.currencyList }

// Sources are the described sources, by id.
func (c *Catalogue) Sources() []Source { return c.sourceList }

// InternInstitution is the catalogue's own copy of an id that stands in a borrowed buffer. It does not allocate.
func (c *Catalogue) InternInstitution(id []byte) (string, bool) {
	if institution, ok := c.institutions[string(id)]; ok {
		return institution.ID, true
	}
	return "", false
}

// InternCurrency is the catalogue's own copy of a code that stands in a borrowed buffer. It does not allocate.
func (c *Catalogue) InternCurrency(code []byte) (string, bool) {
	if currency, ok := c.currencies[string(code)]; ok {
		return currency.Code, true
	}
	return "", false
}

// cloned is a copy that can be written to, also of a nil map.
func cloned[V any](from map[string]V) map[string]V {
	to := make(map[string]V, len(from))
	maps.Copy(to, from)
	return to
}

func sortedValues[K cmp.Ordered, V any](from map[K]V) []V {
	values := make([]V, 0, len(from))
	for _, key := range slices.Sorted(maps.Keys(from)) {
		values = append(values, from[key])
	}
	return values
}

// WithSources is the catalogue with sources added; one whose id is known already replaces the known one.
func (c *Catalogue) WithSources(sources ...Source) *Catalogue {
	extended := *c
	extended.sources = cloned(c.sources)
	for _, source := range sources {
		extended.sources[source.ID] = source
	}
	extended.sourceList = sortedValues(extended.sources)
	return &extended
}
