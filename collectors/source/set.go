package source

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/tasard/tasard/engine"
)

// Set is a set of definitions. A definition says how the pages of a source are fetched and read. A Set is immutable;
// Extend returns another set.
type Set struct {
	byID map[string]*Definition
	list []*Definition     // sorted by id
	text map[string][]byte // of the files with the definitions, by id
}

var defaultSet = sync.OnceValue(func() *Set {
	set, err := NewSet().extend(embedded, "definitions", true)
	if err != nil {
		panic("source: the embedded definitions are damaged: " + err.Error())
	}
	return set
})

// DefaultSet returns the built-in definitions.
func DefaultSet() *Set { return defaultSet() }

// NewSet returns a set of definitions. Of several with the same id, the set contains the last.
func NewSet(definitions ...*Definition) *Set {
	s := &Set{byID: make(map[string]*Definition, len(definitions))}
	for _, d := range definitions {
		s.byID[d.ID] = d
	}
	s.list = slices.SortedFunc(maps.Values(s.byID), func(a, b *Definition) int { return cmp.Compare(a.ID, b.ID) })
	return s
}

// Definitions returns all definitions sorted by id, including disabled definitions. The caller must not change the
// slice.
func (s *Set) Definitions() []*Definition { return s.list }

// Find returns the definition with an id.
func (s *Set) Find(id string) (*Definition, bool) {
	d, known := s.byID[id]
	return d, known
}

// File returns the text of the file with the whole definition of a source, or nil. It does not include changes that
// another file makes.
func (s *Set) File(id string) []byte { return s.text[id] }

// Extend returns a set with the definitions of s and of the files *.json in a directory. A file with the key pages is a
// whole definition, and replaces the definition with the same id. A file without pages changes some keys of that
// definition; docs/definitions.md lists them. The key caFile is a path below the directory. The error joins all
// problems of all files.
func (s *Set) Extend(files fs.FS, dir string) (*Set, error) { return s.extend(files, dir, false) }

func (s *Set) extend(files fs.FS, dir string, tested bool) (*Set, error) {
	listing, err := fs.ReadDir(files, dir)
	if err != nil {
		return nil, fmt.Errorf("list the definitions: %w", err)
	}
	listing = slices.DeleteFunc(listing, func(file fs.DirEntry) bool { return file.IsDir() || path.Ext(file.Name()) != ".json" })
	extended, readFrom, text := maps.Clone(s.byID), map[string]string{}, map[string][]byte{}
	maps.Copy(text, s.text)
	var problems []error
	for _, file := range listing {
		var loaded *definitionFile
		data, err := ReadFile(files, path.Join(dir, file.Name()))
		if err == nil {
			loaded, err = readDefinitionFile(file.Name(), data, tested)
		}
		if err == nil {
			err = loaded.addTo(extended, readFrom)
		}
		switch {
		case err != nil:
			problems = append(problems, err)
		case loaded.definition != nil:
			text[loaded.id] = loaded.text
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	set := NewSet(slices.Collect(maps.Values(extended))...)
	set.text = text
	return set, nil
}

// readBytesMax is the maximum size of a definition or certificate that ReadFile reads.
const readBytesMax = 1 << 20

// ReadFile reads a definition, or a certificate that a definition names. It opens only a regular file: a named pipe
// could block forever, and a device have no end.
func ReadFile(files fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(files, name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: want a regular file, found a directory, pipe or device", name)
	case info.Size() > readBytesMax:
		return nil, fmt.Errorf("%s: the file is longer than %d bytes; shorten it", name, readBytesMax)
	}
	return fs.ReadFile(files, name)
}

// ReadDefinition reads the text of a file with a whole definition. The error joins all problems.
func ReadDefinition(name string, text []byte) (*Definition, error) {
	file, err := readDefinitionFile(name, text, false)
	if err != nil {
		return nil, err
	}
	return file.definition, nil
}

// addTo adds the definition in the file to definitions, or changes one of them. readFrom maps ids to the names of files
// read before; a second file for an id is an error.
func (f *definitionFile) addTo(definitions map[string]*Definition, readFrom map[string]string) error {
	if first, exists := readFrom[f.id]; exists {
		return fmt.Errorf("%s: the source %s is already in %s; keep one of them", f.name, f.id, first)
	}
	readFrom[f.id] = f.name
	existing, exists := definitions[f.id]
	switch {
	case f.definition != nil:
		definitions[f.id] = f.definition
	case !exists:
		return fmt.Errorf("%s: there is no source %s to change; check its id, or write a whole definition with pages", f.name, f.id)
	default:
		changed := *existing
		definitions[f.id] = &changed
		return json.Unmarshal(f.text, &changed)
	}
	return nil
}

// Check returns an error if a definition names an institution or currency that is not in the catalogue, or if its id is
// reserved for manual rates (those that an operator enters).
func (s *Set) Check(c *engine.Catalogue) error {
	var problems []error
	for _, d := range s.list {
		if c.Source(d.ID).Manual {
			problems = append(problems, fmt.Errorf("source %s: the id is reserved for manual rates; choose another", d.ID))
		}
		institutions, currencies := d.references()
		for _, id := range institutions {
			if _, known := c.Institution(id); !known {
				problems = append(problems, fmt.Errorf("source %s: there is no institution %q; check it, or add it to the catalogue", d.ID, id))
			}
		}
		for _, code := range currencies {
			if _, known := c.Currency(code); !known {
				problems = append(problems, fmt.Errorf("source %s: there is no currency %q; check it, or add it to the catalogue", d.ID, code))
			}
		}
	}
	return errors.Join(problems...)
}

// Sources returns the sources of all definitions, for an engine.Catalogue. It includes disabled ones, because the log
// may contain their rates.
func (s *Set) Sources() []engine.Source {
	sources := make([]engine.Source, len(s.list))
	for i, d := range s.list {
		sources[i] = d.Source()
	}
	return sources
}

// Source returns the data of the source that an engine.Catalogue needs.
func (d *Definition) Source() engine.Source {
	return engine.Source{
		ID: d.ID, Name: d.Name, URL: d.URL, Priority: d.Priority, UpstreamSource: d.UpstreamSource,
		Lifetime: d.Expiry.AfterCheck, PlausibleRanges: d.Bounds,
	}
}

// ExpiresAt computes from d.Expiry when a quote expires. checked is the time of the last check of the quote; effective
// is the date for which it applies (zero = none).
func (d *Definition) ExpiresAt(checked time.Time, effective engine.Date) time.Time {
	expires := checked.Add(d.Expiry.AfterCheck)
	if effective.IsZero() || d.Expiry.AfterDate == 0 {
		return expires
	}
	if end := effective.AddDays(1).Start().Add(d.Expiry.AfterDate); end.Before(expires) {
		return end
	}
	return expires
}

// Targets returns the institution, currency and channel of each quote that a page may have. If a quote does not name
// them, they are those of the page or the source.
func (d *Definition) Targets(p *Page) (all []Target) {
	for _, field := range p.Extract.Fields {
		all = append(all, Target{Currency: field.Currency, Channel: field.Channel})
	}
	for label, target := range p.labels() {
		if label == byWords {
			all = append(all, targetsOfWords()...)
		} else {
			all = append(all, target)
		}
	}
	if len(all) == 0 {
		all = []Target{{}}
	}
	for i := range all {
		t := &all[i]
		t.Institution, t.Currency = cmp.Or(t.Institution, p.Institution, d.Institution), cmp.Or(t.Currency, p.Currency)
		t.Channel = cmp.Or(t.Channel, d.Channel)
	}
	return all
}

// labels returns the labels of the rows or of the text.
func (p *Page) labels() Labels {
	switch {
	case p.Extract.Rows != nil:
		return p.Extract.Rows.Labels
	case p.Extract.Text != nil:
		return p.Extract.Text.Labels
	}
	return nil
}

// Currencies returns the currencies that the definition names to read. A page whose labels are read with the dictionary
// names none.
func (d *Definition) Currencies() (currencies []string) {
	for i := range d.Pages {
		if _, byDictionary := d.Pages[i].labels()[byWords]; byDictionary {
			continue
		}
		for _, target := range d.Targets(&d.Pages[i]) {
			currencies = append(currencies, target.Currency)
		}
	}
	return distinct(currencies)
}

// references returns the institutions and currencies that the definition names.
func (d *Definition) references() (institutions, currencies []string) {
	for _, bound := range d.Bounds {
		currencies = append(currencies, bound.Currency)
	}
	for i := range d.Pages {
		for _, target := range d.Targets(&d.Pages[i]) {
			institutions, currencies = append(institutions, target.Institution), append(currencies, target.Currency)
		}
	}
	return distinct(institutions), distinct(currencies)
}

// distinct returns the names sorted, without duplicates and without "".
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

//go:embed definitions/*.json
var embedded embed.FS

//go:embed definition.schema.json
var schemaText string

// Schema returns the JSON Schema of definition files, for editors. It lists every key. It does not check selectors,
// patterns and other texts that need a parser, and it does not check keys that depend on each other.
func Schema() []byte { return []byte(schemaText) }
