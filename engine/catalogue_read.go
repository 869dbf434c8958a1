package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	catalogueBytesMax = 1 << 20
	priorityMax       = 9_007_199_254_740_991
	// Limits of a lifetime. Times are published in whole seconds, and no rate is valid for more than a year.
	lifetimeMin = time.Second
	lifetimeMax = 366 * 24 * time.Hour
	// wholeEntryHint is added to the error for a missing key.
	wholeEntryHint = "; an entry is given as a whole, also when it replaces a known one"
)

// The entries of a catalogue file. max is the maximum number of characters of a text.
type (
	institutionEntry struct {
		ID          string          `json:"id"`
		Name        string          `json:"name" max:"200"`
		Type        InstitutionType `json:"type"`
		Website     string          `json:"website" max:"2000"`
		Description string          `json:"description" max:"2000"`
		Contact     string          `json:"contact" max:"200"`
		Active      bool            `json:"active"`
	}
	currencyEntry struct {
		Code    string  `json:"code"`
		Name    string  `json:"name" max:"200"`
		Symbol  string  `json:"symbol" max:"16"`
		Lowest  *string `json:"lowest"`
		Highest *string `json:"highest"`
	}
	sourceEntry struct {
		ID             string `json:"id"`
		Name           string `json:"name" max:"200"`
		URL            string `json:"url" max:"2000"`
		Priority       int64  `json:"priority"`
		UpstreamSource string `json:"upstreamSource" max:"200"`
		Lifetime       string `json:"lifetime"`
		Manual         bool   `json:"manual"`
	}
)

const _ = uint(UpstreamSourceMax-200) + uint(200-UpstreamSourceMax) // the tag of UpstreamSource

var (
	idForm   = regexp.MustCompile(fmt.Sprintf(`^[a-z0-9-]{1,%d}$`, InstitutionIDMax))
	codeForm = regexp.MustCompile(`^[A-Z]{3}$`)
)

// read adds the entries of a catalogue file to c. After an error c must not be used.
func (c *Catalogue) read(r io.Reader, name string) error {
	data, err := io.ReadAll(io.LimitReader(r, catalogueBytesMax+1))
	if err != nil {
		return fmt.Errorf("read catalogue %s: %w", name, err)
	}
	if err := validateJSON(data); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var lists struct {
		Institutions []json.RawMessage `json:"institutions"`
		Currencies   []json.RawMessage `json:"currencies"`
		Sources      []json.RawMessage `json:"sources"`
	}
	file := &entry{file: name, path: "the file", problems: &[]error{}}
	file.decode(data, &lists)
	readEntries(file, "institutions", "id", lists.Institutions, institutionEntry{Active: true}, func(e *entry, v *institutionEntry) {
		c.institutions[v.ID] = e.institution(v)
	})
	readEntries(file, "currencies", "code", lists.Currencies, currencyEntry{}, func(e *entry, v *currencyEntry) {
		c.currencies[v.Code] = e.currency(v)
	})
	defaults := sourceEntry{Priority: PriorityDefault, Lifetime: LifetimeDefault.String()}
	readEntries(file, "sources", "id", lists.Sources, defaults, func(e *entry, v *sourceEntry) {
		c.sources[v.ID] = e.source(v)
	})
	return errors.Join(*file.problems...)
}

// validateJSON checks the size, the encoding and the JSON syntax of a file.
func validateJSON(data []byte) error {
	switch {
	case len(data) > catalogueBytesMax:
		return fmt.Errorf("the file is longer than %d bytes; split it", catalogueBytesMax)
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return errors.New("the file begins with a byte order mark; save it as UTF-8 without one")
	case !utf8.Valid(data):
		return errors.New("the file is not UTF-8; save it as UTF-8")
	}
	var value json.RawMessage
	err := json.Unmarshal(data, &value)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		line := 1 + bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n"))
		return fmt.Errorf("line %d: the file is not one JSON object: %w; correct it there", line, err)
	}
	return err
}

// entry is an institution, a currency or a source in a file, or the whole file.
type entry struct {
	file, path string
	problems   *[]error // of the file
	mistyped   []string // keys with a value of another type; no other problem of them is reported
}

func (e *entry) errorf(format string, args ...any) {
	*e.problems = append(*e.problems, fmt.Errorf("%s: %s: %w", e.file, e.path, fmt.Errorf(format, args...)))
}

// readEntries decodes each entry of a list into a copy of defaults, and calls add. Two entries with the same value of
// key are a problem.
func readEntries[T any](file *entry, list, key string, raws []json.RawMessage, defaults T, add func(*entry, *T)) {
	places := map[string]string{} // path of each entry, by the value of its key
	for i, raw := range raws {
		e, value := &entry{file: file.file, path: fmt.Sprintf("%s[%d]", list, i), problems: file.problems}, defaults
		place := e.path
		var fields map[string]json.RawMessage
		var label string
		if json.Unmarshal(raw, &fields) == nil && json.Unmarshal(fields[key], &label) == nil && label != "" {
			e.path = fmt.Sprintf("%s %.80q", place, label)
			if other, found := places[label]; found {
				e.errorf("stands already in %s; keep one of them", other)
			}
			places[label] = cmp.Or(places[label], place)
		}
		if e.decode(raw, &value) {
			add(e, &value)
		}
	}
}

// decode is json.Unmarshal into a struct, but it reports every problem: unknown and repeated keys (in the exact case),
// null, values of another type, and texts with control characters or more characters than the tag max says. It returns
// false if raw is not an object.
func (e *entry) decode(raw json.RawMessage, to any) bool {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		e.errorf("is not a JSON object; write { ... }")
		return false
	}
	target := reflect.ValueOf(to).Elem()
	var known, seen []string
	for i := range target.NumField() {
		known = append(known, target.Type().Field(i).Tag.Get("json"))
	}
	for decoder.More() {
		token, _ := decoder.Token() // raw is valid JSON
		key, _ := token.(string)
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			e.errorf("is not valid JSON; check its commas and quotes")
			return false
		}
		if slices.Contains(seen, key) {
			e.errorf("has the key %.40q twice; keep one", key)
		}
		seen = append(seen, key)
		i := slices.Index(known, key)
		if i < 0 {
			e.errorf("unknown key %.40q; known are %s", key, strings.Join(known, ", "))
			continue
		}
		field := target.Field(i)
		if err := json.Unmarshal(value, field.Addr().Interface()); err != nil || string(value) == "null" {
			field.SetZero()
			e.mistyped = append(e.mistyped, key)
			e.errorf("%s is not %s", key, expected(field.Type()))
		} else if field.Kind() == reflect.String {
			limit, _ := strconv.Atoi(target.Type().Field(i).Tag.Get("max"))
			e.checkText(key, field.String(), limit)
		}
	}
	return true
}

// expected describes the values of a type.
func expected(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "a list; write [ ... ] around its entries"
	case reflect.Bool:
		return "true or false; write one of them without quotes"
	case reflect.Int64:
		return fmt.Sprintf("a whole number from 0 to %d", priorityMax)
	}
	return "a text; write it in quotes"
}

func (e *entry) checkText(key, text string, charactersMax int) {
	if characters := utf8.RuneCountInString(text); charactersMax > 0 && characters > charactersMax {
		e.errorf("%s has %d characters; shorten it to %d", key, characters, charactersMax)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }) {
		e.errorf("%s has a control character or a broken one; take it out", key)
	}
}

// require reports a missing text. It returns whether there is one.
func (e *entry) require(key, text, hint string) bool {
	if text == "" && !slices.Contains(e.mistyped, key) {
		e.errorf("%s is missing or empty%s", key, hint)
	}
	return text != ""
}

func (e *entry) institution(v *institutionEntry) *Institution {
	types := "; use one of " + strings.Trim(strings.ReplaceAll(fmt.Sprintf("%q", InstitutionTypes()), `" "`, `", "`), "[]")
	e.checkID(v.ID)
	e.require("name", v.Name, wholeEntryHint)
	if e.require("type", string(v.Type), types) && !slices.Contains(InstitutionTypes(), v.Type) {
		e.errorf("type %.40q is unknown%s", string(v.Type), types)
	}
	e.checkAddress("website", v.Website)
	institution := Institution(*v)
	return &institution
}

func (e *entry) currency(v *currencyEntry) *Currency {
	switch {
	case !e.require("code", v.Code, wholeEntryHint):
	case !codeForm.MatchString(v.Code):
		e.errorf("code is not of the form %s; use the ISO 4217 code, as USD", codeForm)
	case v.Code == QuoteCurrency:
		e.errorf("%s is the currency that every rate is quoted in; take the entry out", v.Code)
	}
	e.require("name", v.Name, wholeEntryHint)
	currency := &Currency{Code: v.Code, Name: v.Name, Symbol: cmp.Or(v.Symbol, v.Code), Lowest: e.decimal("lowest", v.Lowest), Highest: e.decimal("highest", v.Highest)}
	if !currency.Lowest.IsNull() && !currency.Highest.IsNull() && currency.Lowest.Compare(currency.Highest) > 0 {
		e.errorf("lowest %s is above highest %s; exchange them", currency.Lowest, currency.Highest)
	}
	return currency
}

func (e *entry) decimal(key string, text *string) (value Decimal) {
	if text == nil {
		return value
	}
	value, err := ParseDecimal(*text)
	if err != nil {
		e.errorf(`%s: %w; write it as "40" or leave it out`, key, err)
	}
	return value
}

func (e *entry) source(v *sourceEntry) Source {
	e.checkID(v.ID)
	e.checkAddress("url", v.URL)
	if v.Priority < 0 || v.Priority > priorityMax {
		e.errorf("priority is not %s", expected(reflect.TypeFor[int64]()))
	}
	lifetime, err := time.ParseDuration(v.Lifetime)
	if (err != nil || lifetime < lifetimeMin || lifetime > lifetimeMax) && !slices.Contains(e.mistyped, "lifetime") {
		e.errorf(`lifetime is not a duration from %v to %v; write it as "26h"`, lifetimeMin, lifetimeMax)
	}
	return Source{
		ID: v.ID, Name: cmp.Or(v.Name, v.ID), URL: v.URL, Priority: v.Priority, UpstreamSource: v.UpstreamSource, Lifetime: lifetime, Manual: v.Manual,
	}
}

func (e *entry) checkID(id string) {
	if e.require("id", id, wholeEntryHint) && !idForm.MatchString(id) {
		e.errorf("id is not of the form %s; use small letters, digits and hyphens", idForm)
	}
}

func (e *entry) checkAddress(key, text string) {
	if _, ok := WebAddress(text); text != "" && !ok {
		e.errorf("%s is not a web address; write it with https:// and only ASCII characters, others as %%XX, or leave it out", key)
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
