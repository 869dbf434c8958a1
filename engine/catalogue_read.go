package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tasard/tasard/engine/jsonfile"
)

const (
	catalogueBytesMax = 1 << 20
	priorityMax       = 9_007_199_254_740_991
)

var (
	idForm   = regexp.MustCompile(fmt.Sprintf(`^[a-z0-9-]{1,%d}$`, InstitutionIDMax))
	codeForm = regexp.MustCompile(`^[A-Z]{3}$`)
)

// CheckWebAddress returns an error unless a text is empty or a WebAddress.
func CheckWebAddress(text string) error {
	if _, ok := WebAddress(text); !ok && text != "" {
		return errors.New("is not a web address; write it with https:// and only ASCII characters, others as %XX")
	}
	return nil
}

// CheckLifetime returns an error unless a text is a duration for which a rate may be valid. Times are published in
// whole seconds, and no rate is valid for more than a year.
func CheckLifetime(text string) error {
	const durationMin, durationMax = time.Second, 366 * 24 * time.Hour
	if duration, err := time.ParseDuration(text); err != nil || duration < durationMin || duration > durationMax {
		return fmt.Errorf(`is not a duration from %v to %v; write it as "26h"`, durationMin, durationMax)
	}
	return nil
}

// Entries of a catalogue file whose JSON form differs from the types of the catalogue.
type (
	currencyEntry struct {
		Currency
		Lowest, Highest string
	}
	sourceEntry struct {
		ID, Name, URL, UpstreamSource, Lifetime string
		Priority                                int64
		Manual                                  bool
	}
)

// catalogueFile collects the problems of a catalogue file. The parameter place of its methods is as in Problems.Addf.
type catalogueFile struct {
	jsonfile.Problems
}

// read adds the entries of a catalogue file to c. After an error c must not be used.
func (c *Catalogue) read(r io.Reader, name string) error {
	data, err := io.ReadAll(io.LimitReader(r, catalogueBytesMax+1))
	if err != nil {
		return fmt.Errorf("read catalogue %s: %w", name, err)
	}
	value, err := jsonfile.Read(name, data, catalogueBytesMax)
	if err != nil {
		return err
	}
	f := &catalogueFile{jsonfile.Problems{File: name}}
	f.CheckTexts("", value)
	var lists struct{ Institutions, Currencies, Sources []json.RawMessage }
	if _, isObject := value.(map[string]any); !isObject {
		f.Addf("", "is not a JSON object; write { ... }")
	} else {
		f.Decode("", data, &lists)
	}
	readEntries(f, "institutions", lists.Institutions, Institution{Active: true}, func(place string, e *Institution) string {
		f.checkInstitution(place, e)
		c.institutions[e.ID] = e
		return e.ID
	})
	readEntries(f, "currencies", lists.Currencies, currencyEntry{}, func(place string, e *currencyEntry) string {
		e.Symbol = cmp.Or(e.Symbol, e.Code)
		f.checkCurrency(place, e)
		c.currencies[e.Code] = &e.Currency
		return e.Code
	})
	byDefault := sourceEntry{Priority: PriorityDefault, Lifetime: LifetimeDefault.String()}
	readEntries(f, "sources", lists.Sources, byDefault, func(place string, e *sourceEntry) string {
		f.checkSource(place, e)
		lifetime, _ := time.ParseDuration(e.Lifetime)
		c.sources[e.ID] = Source{
			ID: e.ID, Name: cmp.Or(e.Name, e.ID), URL: e.URL, Priority: e.Priority, UpstreamSource: e.UpstreamSource, Lifetime: lifetime, Manual: e.Manual,
		}
		return e.ID
	})
	return f.Err()
}

// readEntries decodes each entry of a list into a copy of defaults and calls add, which returns the entry's id. Two
// entries with the same id are a problem.
func readEntries[T any](f *catalogueFile, list string, raws []json.RawMessage, defaults T, add func(place string, entry *T) string) {
	places := map[string]string{}
	for i, raw := range raws {
		place, entry := fmt.Sprintf("%s[%d]", list, i), defaults
		if !f.Decode(place, raw, &entry) {
			continue
		}
		id := add(place, &entry)
		if other, found := places[id]; found {
			f.Addf(place, "%s stands already in %s; keep one of them", id, other)
		}
		places[id] = place
	}
}

// checkText reports a text of too few or too many characters.
func (f *catalogueFile) checkText(place, text string, charactersMin, charactersMax int) {
	switch n := utf8.RuneCountInString(text); {
	case n < charactersMin:
		f.Addf(place, "is missing or empty; an entry is given as a whole, also when it replaces a known one")
	case n > charactersMax:
		f.Addf(place, "has %d characters; shorten it to %d", n, charactersMax)
	}
}

func (f *catalogueFile) checkForm(place, text string, form *regexp.Regexp) {
	if f.checkText(place, text, 1, catalogueBytesMax); text != "" && !form.MatchString(text) {
		f.Addf(place, "%.40q is not of the form %s", text, form)
	}
}

func (f *catalogueFile) checkValue(place string, err error) {
	if err != nil {
		f.Addf(place, "%w", err)
	}
}

func (f *catalogueFile) checkInstitution(place string, e *Institution) {
	f.checkForm(place+".id", e.ID, idForm)
	f.checkText(place+".name", e.Name, 1, 200)
	if !slices.Contains(InstitutionTypes(), e.Type) {
		f.Addf(place+".type", "is not one of %s", strings.Trim(strings.ReplaceAll(fmt.Sprint(InstitutionTypes()), " ", ", "), "[]"))
	}
	f.checkText(place+".website", e.Website, 0, 2000)
	f.checkValue(place+".website", CheckWebAddress(e.Website))
	f.checkText(place+".description", e.Description, 0, 2000)
	f.checkText(place+".contact", e.Contact, 0, 200)
}

func (f *catalogueFile) checkCurrency(place string, e *currencyEntry) {
	if f.checkForm(place+".code", e.Code, codeForm); e.Code == QuoteCurrency {
		f.Addf(place, "%s is the currency that every rate is quoted in; take the entry out", e.Code)
	}
	f.checkText(place+".name", e.Name, 1, 200)
	f.checkText(place+".symbol", e.Symbol, 0, 16)
	for key, limit := range map[string]struct {
		text string
		to   *Decimal
	}{".lowest": {e.Lowest, &e.Currency.Lowest}, ".highest": {e.Highest, &e.Currency.Highest}} {
		if limit.text != "" {
			var err error
			*limit.to, err = ParseDecimal(limit.text)
			f.checkValue(place+key, err)
		}
	}
	if e.Lowest != "" && e.Highest != "" && e.Currency.Lowest.Compare(e.Currency.Highest) > 0 {
		f.Addf(place, "lowest %s is above highest %s; exchange them", e.Lowest, e.Highest)
	}
}

func (f *catalogueFile) checkSource(place string, e *sourceEntry) {
	f.checkForm(place+".id", e.ID, idForm)
	f.checkText(place+".name", e.Name, 0, 200)
	f.checkText(place+".url", e.URL, 0, 2000)
	f.checkValue(place+".url", CheckWebAddress(e.URL))
	if e.Priority < 0 || e.Priority > priorityMax {
		f.Addf(place+".priority", "is not a whole number from 0 to %d", priorityMax)
	}
	f.checkText(place+".upstreamSource", e.UpstreamSource, 0, 200)
	f.checkValue(place+".lifetime", CheckLifetime(e.Lifetime))
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
