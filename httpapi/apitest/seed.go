package apitest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tasard/tasard/engine"
)

// seeds holds a file for each version of each data set, in the form of seedFile.
//
//go:embed seeds
var seeds embed.FS

// newestVersions maps data sets to their newest versions.
func newestVersions() map[string]string { return map[string]string{"standard": "standard/v1"} }

// seed is a data set.
type seed struct {
	name      string
	now       time.Time
	catalogue *engine.Catalogue
	refreshes []engine.Refresh
}

// seedFile is the file of a data set: the time of the clock, a catalogue file, and what the sources published, in
// order.
type seedFile struct {
	Now          time.Time         `json:"now"`
	Catalogue    json.RawMessage   `json:"catalogue"`
	Publications []seedPublication `json:"said"`
}

// seedPublication is what a source published at a time.
type seedPublication struct {
	Source string    `json:"source"`
	At     time.Time `json:"at"`
	Rates  []Rate    `json:"rates"`
}

// allSeeds holds all data sets. They are immutable, so that nodes can share them.
var allSeeds = sync.OnceValues(func() (map[string]*seed, error) {
	all := map[string]*seed{}
	for _, name := range seedNames() {
		data, err := seeds.ReadFile("seeds/" + strings.ReplaceAll(name, "/", "-") + ".json")
		if err != nil {
			return nil, fmt.Errorf("seed %s: %w", name, err)
		}
		if all[name], err = parseSeed(name, data); err != nil {
			return nil, err
		}
	}
	return all, nil
})

// readSeed finds a data set by name.
func readSeed(name string) (*seed, error) {
	all, err := allSeeds()
	if err != nil {
		return nil, err
	}
	if version, is := newestVersions()[name]; is {
		name = version
	}
	if s := all[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("there is no seed %q; there is %q", name, seedNames())
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
	s := &seed{name: full, now: file.Now, catalogue: catalogue}
	for i := range file.Publications {
		said := &file.Publications[i]
		for j := range said.Rates {
			said.Rates[j].Source = said.Source
		}
		list, err := refreshes(said.Rates, said.At)
		if err != nil {
			return nil, fmt.Errorf("seed %s: %w", full, err)
		}
		s.refreshes = append(s.refreshes, list...)
	}
	return s, nil
}

// seedNames returns the names of all data sets with their versions.
func seedNames() []string {
	entries, _ := seeds.ReadDir("seeds") // embedded
	var names []string
	for _, entry := range entries {
		names = append(names, strings.Replace(strings.TrimSuffix(entry.Name(), ".json"), "-", "/", 1))
	}
	return names
}

// resolve fills in the defaults of the options and returns the seed, nil if there is none.
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
	case !c.at.IsZero():
	case c.state != nil:
		c.at = c.state.at
	case s != nil:
		c.at = s.now
	default:
		c.at = Epoch()
	}
	return s, nil
}
