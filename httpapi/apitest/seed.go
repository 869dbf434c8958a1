package apitest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/tasard/tasard/engine"
)

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
