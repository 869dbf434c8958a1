package engine

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tasard/tasard/engine/jsonfile"
)

const catalogueBytesMax = 1 << 20

//go:embed catalogue.schema.json
var catalogueSchemaText []byte

var catalogueSchema = sync.OnceValue(func() *jsonfile.Schema { return jsonfile.MustCompile(catalogueSchemaText, FileFormats()) })

// FileFormats are the formats of values in files of operators that this package reads.
func FileFormats() jsonfile.Formats {
	// Times are published in whole seconds, and no rate is valid for more than a year.
	const durationMin, durationMax = time.Second, 366 * 24 * time.Hour
	return jsonfile.Formats{
		"web-address": func(text string) error {
			if _, ok := WebAddress(text); !ok {
				return errors.New("is not a web address; write it with https:// and only ASCII characters, others as %XX")
			}
			return nil
		},
		"duration-of-go": func(text string) error {
			if duration, err := time.ParseDuration(text); err != nil || duration < durationMin || duration > durationMax {
				return fmt.Errorf(`is not a duration from %v to %v; write it as "26h"`, durationMin, durationMax)
			}
			return nil
		},
		"day":     func(text string) error { _, err := ParseDate(text); return err },
		"decimal": func(text string) error { _, err := ParseDecimal(text); return err },
	}
}

// The entries of a catalogue file, where they differ from those of the catalogue.
type (
	currencyEntry struct {
		Currency
		Lowest, Highest string
	}
	sourceEntry struct {
		Source
		Lifetime string
	}
)

// read adds the entries of a catalogue file to c. After an error c must not be used. tested means that the file is
// embedded, and a test has compared it with the schema.
func (c *Catalogue) read(r io.Reader, name string, tested bool) error {
	data, err := io.ReadAll(io.LimitReader(r, catalogueBytesMax+1))
	if err != nil {
		return fmt.Errorf("read catalogue %s: %w", name, err)
	}
	if !tested {
		if err := catalogueSchema().Check(name, data, catalogueBytesMax); err != nil {
			return err
		}
	}
	var lists struct{ Institutions, Currencies, Sources []json.RawMessage }
	if err := json.Unmarshal(data, &lists); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	problems := &jsonfile.Problems{File: name}
	readEntries(problems, "institutions", lists.Institutions, Institution{Active: true}, func(_ string, e *Institution) string {
		c.institutions[e.ID] = e
		return e.ID
	})
	readEntries(problems, "currencies", lists.Currencies, currencyEntry{}, func(place string, e *currencyEntry) string {
		e.Symbol = cmp.Or(e.Symbol, e.Code)
		e.Currency.Lowest, _ = ParseDecimal(e.Lowest)
		e.Currency.Highest, _ = ParseDecimal(e.Highest)
		switch {
		case e.Code == QuoteCurrency:
			problems.Addf(place, "%s is the currency that every rate is quoted in; take the entry out", e.Code)
		case e.Lowest != "" && e.Highest != "" && e.Currency.Lowest.Compare(e.Currency.Highest) > 0:
			problems.Addf(place, "lowest %s is above highest %s; exchange them", e.Lowest, e.Highest)
		}
		c.currencies[e.Code] = &e.Currency
		return e.Code
	})
	byDefault := sourceEntry{Source: Source{Priority: PriorityDefault}, Lifetime: LifetimeDefault.String()}
	readEntries(problems, "sources", lists.Sources, byDefault, func(_ string, e *sourceEntry) string {
		e.Name = cmp.Or(e.Name, e.ID)
		e.Source.Lifetime, _ = time.ParseDuration(e.Lifetime)
		c.sources[e.ID] = e.Source
		return e.ID
	})
	return problems.Err()
}

// readEntries decodes each entry of a list into a copy of defaults and calls add, which returns the entry's id. The
// schema has checked the entries; two with the same id are a problem.
func readEntries[T any](problems *jsonfile.Problems, list string, raws []json.RawMessage, defaults T, add func(place string, entry *T) string) {
	places := map[string]string{}
	for i, raw := range raws {
		place, entry := fmt.Sprintf("%s[%d]", list, i), defaults
		if err := json.Unmarshal(raw, &entry); err != nil {
			problems.Addf(place, "%w", err)
			continue
		}
		id := add(place, &entry)
		if other, found := places[id]; found {
			problems.Addf(place, "%s stands already in %s; keep one of them", id, other)
		}
		places[id] = place
	}
}

// WebAddress parses an absolute http or https URL of RFC 3986 characters, without user name and password.
func WebAddress(text string) (*url.URL, bool) {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' || strings.IndexByte("\"<>\\^`{|}", text[i]) >= 0 {
			return nil, false
		}
	}
	address, err := url.Parse(text)
	if err != nil || address.Scheme != "https" && address.Scheme != "http" || address.Hostname() == "" || address.User != nil {
		return nil, false
	}
	return address, true
}
