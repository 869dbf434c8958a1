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

// standardFile is a seedFile. It never changes. A new version is a new file, with a golden file.
//
//go:embed seeds/standard-v1.json
var standardFile []byte

// seed is a data set.
type seed struct {
	name      string
	start     time.Time
	catalogue *engine.Catalogue
	refreshes []engine.Refresh
}

// seedFile is the file of a data set: the time at which the clock starts, a catalogue file, and the publications of the
// sources, in order.
type seedFile struct {
	Start        time.Time         `json:"now"`
	Catalogue    json.RawMessage   `json:"catalogue"`
	Publications []seedPublication `json:"said"`
}

// seedPublication has the rates that a source published at a time.
type seedPublication struct {
	Source string    `json:"source"`
	At     time.Time `json:"at"`
	Rates  []Rate    `json:"rates"`
}

// newestSeed is the newest version of the only data set.
const newestSeed = "standard/v1"

// standardSeed parses the data set once. The result is immutable, so nodes can share it.
var standardSeed = sync.OnceValues(func() (*seed, error) { return parseSeed(newestSeed, standardFile) })

// readSeed finds a data set by name.
func readSeed(name string) (*seed, error) {
	if name != "standard" && name != newestSeed {
		return nil, fmt.Errorf("there is no seed %q; there is %s", name, newestSeed)
	}
	return standardSeed()
}

// parseSeed decodes a data set.
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

// resolve sets the defaults of the options and returns the seed, or nil if there is none.
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
	switch {
	case !c.start.IsZero():
	case c.state != nil:
		c.start = c.state.clock
	case s != nil:
		c.start = s.start
	default:
		c.start = Epoch()
	}
	return s, nil
}
