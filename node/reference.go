package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// ReferenceData is the data about institutions, currencies and sources.
type ReferenceData struct {
	Catalogue *engine.Catalogue // includes the sources of Sources
	Sources   *source.Set       // definitions: how to fetch and read each source's rates
}

// LoadReferenceData returns the built-in reference data, extended by a catalogue file (institutions, currencies and
// sources) and a directory with source definitions. An empty path means no extension.
func LoadReferenceData(catalogueFile, definitions string) (ReferenceData, error) {
	set, setErr := loadDefinitions(definitions)
	catalogue, catalogueErr := loadCatalogue(catalogueFile)
	if err := errors.Join(setErr, catalogueErr); err != nil {
		return ReferenceData{}, err
	}
	return NewReferenceData(catalogue, set)
}

// NewReferenceData adds the sources of definitions to a catalogue. For a source in both, the catalogue's description is
// kept. Only the plausible ranges then come from the definition, because a catalogue file can't set them.
func NewReferenceData(catalogue *engine.Catalogue, set *source.Set) (ReferenceData, error) {
	if err := set.Check(catalogue); err != nil {
		return ReferenceData{}, &Error{BadFile, "Definitions", err}
	}
	var sources []engine.Source
	for _, src := range set.Sources() {
		if catalogue.HasSource(src.ID) {
			ranges := src.PlausibleRanges
			src = catalogue.Source(src.ID)
			src.PlausibleRanges = ranges
		}
		sources = append(sources, src)
	}
	return ReferenceData{catalogue.WithSources(sources...), set}, nil
}

// loadDefinitions returns the built-in definitions of sources, extended by those in a directory.
func loadDefinitions(directory string) (*source.Set, error) {
	if directory == "" {
		return source.DefaultSet(), nil
	}
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		return nil, errorf(BadFile, "Definitions", "%s: not a directory; want a directory of definitions", directory)
	}
	set, err := source.DefaultSet().Extend(os.DirFS(directory), ".")
	if err != nil {
		return nil, errorf(BadFile, "Definitions", "read the definitions in %s: %w", directory, err)
	}
	return set, nil
}

// loadCatalogue returns the built-in catalogue (institutions, currencies and sources), extended by a file.
func loadCatalogue(path string) (*engine.Catalogue, error) {
	if path == "" {
		return engine.DefaultCatalogue(), nil
	}
	if _, err := checkRegular(path); err != nil {
		return nil, &Error{BadFile, "Catalogue", err}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, errorf(BadFile, "Catalogue", "read catalogue: %w", err)
	}
	catalogue, err := engine.DefaultCatalogue().Extend(file, path)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, &Error{BadFile, "Catalogue", err}
	}
	return catalogue, nil
}

// DemoPrefix is the prefix of the ids of simulated sources.
const DemoPrefix = "demo-"

// rejectDemoData returns an error if the data directory contains rates of a demo and this node is not that demo.
func (n *Node) rejectDemoData() error {
	page, err := n.system.Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: n.Rates()}})
	if err != nil {
		return nil //nolint:nilerr // the system has no rates yet
	}
	for _, rate := range page.Items {
		if strings.HasPrefix(rate.SourceID, DemoPrefix) && !n.reference.Catalogue.HasSource(rate.SourceID) {
			return errorf(BadFile, "", "the data directory holds made-up rates of %s, from a demo; use another directory", rate.SourceID)
		}
	}
	return nil
}

// SourceSecrets maps names to API keys and other secrets of sources. A definition names the secrets of its source.
type SourceSecrets map[string]account.Secret

// ReadSourceSecrets reads the secrets named by definitions. Each is a file in the directory Collect.Secrets. A missing
// file is not an error, but disables the source (Apply).
func (c Config) ReadSourceSecrets(set *source.Set) (SourceSecrets, error) {
	secrets, directory := SourceSecrets{}, c.Collect.Secrets
	if directory == "" {
		return secrets, nil
	}
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		return nil, errorf(BadFile, "Collect.Secrets", "%s: not a directory; want one with a file for each secret", directory)
	}
	var problems []error
	for _, d := range set.Definitions() {
		for _, name := range d.SecretNames() {
			path := filepath.Join(directory, name)
			_, known := secrets[name]
			if _, err := os.Lstat(path); known || errors.Is(err, fs.ErrNotExist) {
				continue
			}
			secret, err := ReadSecret(path, c.Credentials)
			if err != nil {
				problems = append(problems, &Error{BadFile, "Collect.Secrets", err})
			}
			secrets[name] = secret
		}
	}
	return secrets, errors.Join(problems...)
}

// Apply returns a set in which sources with missing secrets are disabled.
func (s SourceSecrets) Apply(set *source.Set) *source.Set {
	definitions := slices.Clone(set.Definitions())
	for i, d := range definitions {
		for _, name := range d.SecretNames() {
			if _, known := s[name]; !known && d.Disabled == "" {
				disabled := *d
				disabled.Disabled = fmt.Sprintf("It needs the secret %s: a file of this name in the directory of --source-secrets.", name)
				definitions[i] = &disabled
				break
			}
		}
	}
	return source.NewSet(definitions...)
}
