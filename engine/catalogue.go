package engine

import "time"

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
	ID             string
	Name           string
	URL            string        // a URI or ""
	Priority       int64         // lower wins; 100 unless stated
	UpstreamSource string        // whom an aggregator repeats, "" for the institution's own word
	Lifetime       time.Duration // from a check to expiry when the source states none (T3); 26 h unless stated
	Manual         bool          // typed by an operator: wins over every collected one (S11)
}

// Defaults of a source that the catalogue does not describe (S11, T3).
const (
	PriorityDefault = 100
	LifetimeDefault = 26 * time.Hour
)
