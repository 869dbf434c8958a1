package node

import (
	"errors"
	"io/fs"
	"os"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// Reference is what is known without any observation: institutions, currencies, and where rates come from.
type Reference struct {
	Catalogue *engine.Catalogue // complete with the sources of Sources
	Sources   *source.Set
}

// LoadReference is what the program knows, with what an operator's catalogue file and directory of definitions add; "" = neither.
func LoadReference(catalogueFile, definitions string) (Reference, error) {
	set, setErr := loadSet(definitions)
	catalogue, catalogueErr := loadCatalogue(catalogueFile)
	if err := errors.Join(setErr, catalogueErr); err != nil {
		return Reference{}, err
	}
	return NewReference(catalogue, set)
}

// NewReference completes a catalogue with the sources of definitions. What the catalogue says of a source wins, but for bounds, which an
// operator's file can't say.
func NewReference(catalogue *engine.Catalogue, set *source.Set) (Reference, error) {
	if err := set.Check(catalogue); err != nil {
		return Reference{}, &Error{BadFile, "Definitions", err}
	}
	var sources []engine.Source
	for _, described := range set.Sources() {
		if catalogue.HasSource(described.ID) {
			bounds := described.Bounds
			described = catalogue.Source(described.ID)
			described.Bounds = bounds
		}
		sources = append(sources, described)
	}
	return Reference{catalogue.WithSources(sources...), set}, nil
}

// loadSet is the definitions of the program, with those of an operator's directory.
func loadSet(directory string) (*source.Set, error) {
	if directory == "" {
		return source.DefaultSet(), nil
	}
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		return nil, fail(BadFile, "Definitions", "%s: want a directory of definitions", directory)
	}
	set, err := source.DefaultSet().Extend(os.DirFS(directory), ".")
	if err != nil {
		return nil, fail(BadFile, "Definitions", "read the definitions in %s: %w", directory, err)
	}
	return set, nil
}

// loadCatalogue is the built-in catalogue, extended by a file if there is one.
func loadCatalogue(path string) (*engine.Catalogue, error) {
	if path == "" {
		return engine.DefaultCatalogue(), nil
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail(BadFile, "Catalogue", "%s: there is no such catalogue file", path)
	}
	if err != nil {
		return nil, fail(BadFile, "Catalogue", "read catalogue: %w", err)
	}
	catalogue, err := engine.DefaultCatalogue().Extend(file, path)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, &Error{BadFile, "Catalogue", err}
	}
	return catalogue, nil
}
