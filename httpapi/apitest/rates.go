package apitest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tasard/tasard/engine"
)

// Rate is an institution's rate to publish. Buy and Sell are decimal numbers; "" = not published.
type Rate struct {
	Institution   string         `json:"institution"`
	Currency      string         `json:"currency"`
	Buy           string         `json:"buy"`  // compra: the institution's buying price
	Sell          string         `json:"sell"` // venta: the institution's selling price
	Channel       engine.Channel `json:"channel"`
	Kind          engine.Kind    `json:"kind"`
	Source        string         `json:"source"`        // id of the source; "" = the institution's id and "-test"
	EffectiveDate string         `json:"effectiveDate"` // YYYY-MM-DD, "" = not stated
	PublishedAt   time.Time      `json:"publishedAt"`   // zero = not stated
	ExpiresAt     time.Time      `json:"expiresAt"`     // zero = after the lifetime in the catalogue, usually 26 h
}

func (r *Rate) source() string {
	if r.Source == "" {
		return r.Institution + "-test"
	}
	return r.Source
}

// refreshes groups rates by source, in order of appearance. The result has one engine.Refresh for each source.
func refreshes(rates []Rate, at time.Time) ([]engine.Refresh, error) {
	var list []engine.Refresh
	for i := range rates {
		r := &rates[i]
		effective, err := parseDate(r.EffectiveDate)
		if err != nil {
			return nil, fmt.Errorf("rate %d, of %s: EffectiveDate: %w", i, r.Institution, err)
		}
		source := r.source()
		index := slices.IndexFunc(list, func(refresh engine.Refresh) bool { return refresh.SourceID == source })
		if index < 0 {
			index, list = len(list), append(list, engine.Refresh{SourceID: source, ObservedAt: at})
		}
		list[index].Observations = append(list[index].Observations, engine.Observation{
			InstitutionID: r.Institution, Currency: r.Currency, Channel: r.Channel, Kind: r.Kind, Buy: r.Buy, Sell: r.Sell,
			EffectiveDate: effective, PublishedAt: r.PublishedAt, ExpiresAt: r.ExpiresAt,
		})
	}
	return list, nil
}

func parseDate(text string) (engine.Date, error) {
	if text == "" {
		return 0, nil
	}
	return engine.ParseDate(text)
}

// refusalsShown is the number of refused rates in an error.
const refusalsShown = 3

// refusalError returns an error that lists the refused rates, or nil without any.
func refusalError(receipt *engine.Receipt) error {
	if len(receipt.Refused) == 0 {
		return nil
	}
	var lines []string
	for i := range receipt.Refused {
		if i == refusalsShown {
			lines = append(lines, fmt.Sprintf("and %d more", len(receipt.Refused)-i))
			break
		}
		r := &receipt.Refused[i]
		o := &r.Observation
		detail := r.Detail
		if hint := refusalHint(r.Reason); hint != "" {
			detail, _, _ = strings.Cut(detail, ";") // the rest is for operators
			detail += "; " + hint
		}
		lines = append(lines, fmt.Sprintf("%s %s %s / %s: %s: %s", o.InstitutionID, o.Currency, o.Buy, o.Sell, r.Reason, detail))
	}
	return fmt.Errorf("the node's rules refuse %d of the rates: %s", len(receipt.Refused), strings.Join(lines, "; "))
}

// refusalHint returns advice about a refused rate for the author of a test, or "".
func refusalHint(reason engine.Reason) string {
	switch reason {
	case engine.UnknownInstitution, engine.UnknownCurrency:
		return "GET /v1/institutions and /v1/currencies list the known ones; tasard mock --catalogue FILE (in Go, the option Catalogue) adds others"
	case engine.Jump, engine.OffMarket, engine.SameSides:
		return "tasard mock --lenient (in Go, the option Lenient) turns this rule off"
	}
	return ""
}

// standardFile is a seedFile in JSON: version 1 of the data set "standard". It must never change: a new version is a
// new file, with a new golden file.
//
//go:embed seeds/standard-v1.json
var standardFile []byte

type seed struct {
	name      string
	start     time.Time
	catalogue *engine.Catalogue
	refreshes []engine.Refresh
}

// seedFile is the content of a file with a data set (a seed).
type seedFile struct {
	Start        time.Time         `json:"now"`       // time at which Clock starts
	Catalogue    json.RawMessage   `json:"catalogue"` // content of a catalogue file: institutions, currencies and sources
	Publications []seedPublication `json:"said"`      // sorted by time
}

// seedPublication contains the rates that a source published at one time.
type seedPublication struct {
	Source string    `json:"source"`
	At     time.Time `json:"at"`
	Rates  []Rate    `json:"rates"`
}

// newestSeed is the newest version of the data set "standard".
const newestSeed = "standard/v1"

// standardSeed parses standardFile once. All nodes share the result, so it must not be modified.
var standardSeed = sync.OnceValues(func() (*seed, error) { return parseSeed(newestSeed, standardFile) })

func readSeed(name string) (*seed, error) {
	if name != "standard" && name != newestSeed {
		return nil, fmt.Errorf("there is no seed %q; there is %s", name, newestSeed)
	}
	return standardSeed()
}

func parseSeed(full string, data []byte) (*seed, error) {
	var file seedFile
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("seed %s: %w", full, err)
	}
	catalogue, err := new(engine.Catalogue).Extend(bytes.NewReader(file.Catalogue), full)
	if err != nil {
		return nil, fmt.Errorf("seed %s: %w", full, err)
	}
	s := &seed{name: full, start: file.Start, catalogue: catalogue}
	for i := range file.Publications {
		publication := &file.Publications[i]
		for j := range publication.Rates {
			publication.Rates[j].Source = publication.Source
		}
		list, err := refreshes(publication.Rates, publication.At)
		if err != nil {
			return nil, fmt.Errorf("seed %s: %w", full, err)
		}
		s.refreshes = append(s.refreshes, list...)
	}
	return s, nil
}

// resolve sets the catalogue and the start time unless options have set them. It returns the data set of the option
// Seed, or nil.
func (c *config) resolve() (*seed, error) {
	var s *seed
	if c.seed != "" {
		var err error
		if s, err = readSeed(c.seed); err != nil {
			return nil, err
		}
	}
	if c.catalogue == nil {
		c.catalogue = engine.DefaultCatalogue()
		if s != nil {
			c.catalogue = s.catalogue
		}
	}
	if c.extra != nil {
		var err error
		if c.catalogue, err = c.catalogue.Extend(bytes.NewReader(c.extra), c.extraName); err != nil {
			return nil, err
		}
	}
	switch {
	case !c.start.IsZero():
	case s != nil:
		c.start = s.start
	default:
		c.start = Epoch()
	}
	return s, nil
}
