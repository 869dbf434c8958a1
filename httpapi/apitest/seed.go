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

// seeds holds one file for each version of a data set; their form is seedFile.
//
//go:embed seeds
var seeds embed.FS

// newestVersions is the newest version of each data set.
func newestVersions() map[string]string { return map[string]string{"standard": "standard/v1"} }

// seed is a data set.
type seed struct {
	name      string
	now       time.Time
	catalogue *engine.Catalogue
	refreshes []engine.Refresh
}

// seedFile is a data set as it is kept: the moment at which it is looked at, what is known (the form of a catalogue file),
// and what the sources said, in the order in which they said it.
type seedFile struct {
	Now          time.Time         `json:"now"`
	Catalogue    json.RawMessage   `json:"catalogue"`
	Publications []seedPublication `json:"said"`
}

// seedPublication is what a source said at a moment; what is left out of a rate is null or the default.
type seedPublication struct {
	Source string    `json:"source"`
	At     time.Time `json:"at"`
	Rates  []Rate    `json:"rates"`
}

// allSeeds are all data sets, read once: they are immutable, and a hundred nodes may begin with the same.
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

// readSeed finds a data set by its name.
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

// parseSeed reads a data set.
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

// seedNames are all versions of all data sets.
func seedNames() []string {
	entries, _ := seeds.ReadDir("seeds") // it is embedded
	var names []string
	for _, entry := range entries {
		names = append(names, strings.Replace(strings.TrimSuffix(entry.Name(), ".json"), "-", "/", 1))
	}
	return names
}

// resolve completes what the options leave open. The seed is nil without one.
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
