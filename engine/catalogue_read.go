package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Limits of a catalogue file.
const (
	catalogueBytesMax    = 1 << 20
	catalogueTextMax     = 2000                 // characters of a description or an address
	catalogueNameMax     = 200                  // characters of a name or a contact
	catalogueSymbolMax   = 16                   // characters
	catalogueLifetimeMin = time.Second          // instants are published in whole seconds
	catalogueLifetimeMax = 366 * 24 * time.Hour // longer is no expiry
	cataloguePriorityMax = 9_007_199_254_740_991
)

// catalogueFile is what one file says, in its order.
type catalogueFile struct {
	institutions []*Institution
	currencies   []*Currency
	sources      []Source
}

// readCatalogueFile reads and checks a whole file; the error joins all its problems.
func readCatalogueFile(r io.Reader, name string) (*catalogueFile, error) {
	data, err := io.ReadAll(io.LimitReader(r, catalogueBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read catalogue %s: %w", name, err)
	}
	if err := CheckJSON(data, catalogueBytesMax, "split it"); err != nil {
		return nil, fmt.Errorf("read catalogue %s: %w", name, err)
	}
	file, report := new(catalogueFile), &problems{name: name}
	top := report.object("the file", data)
	eachEntry(top, "institutions", "id", func(e *entry) { file.institutions = append(file.institutions, e.institution()) })
	eachEntry(top, "currencies", "code", func(e *entry) { file.currencies = append(file.currencies, e.currency()) })
	eachEntry(top, "sources", "id", func(e *entry) { file.sources = append(file.sources, e.source()) })
	top.refuseOtherKeys()
	if err := errors.Join(report.found...); err != nil {
		return nil, err
	}
	return file, nil
}

// eachEntry visits the objects of one list of the file. It is an error when two of them carry the same key text.
func eachEntry(top *entry, list, key string, visit func(*entry)) {
	raw, given := top.take(list)
	if !given {
		return
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil || items == nil {
		top.wrong("%q is no list; write [ ... ] around its entries", list)
		return
	}
	first := map[string]int{}
	for i, item := range items {
		e := top.report.object(fmt.Sprintf("%s[%d]", list, i), item)
		if e.fields == nil {
			continue
		}
		label := e.label(key)
		if before, seen := first[label]; seen && label != "" {
			e.wrong("stands already in %s[%d]; keep one of them", list, before)
		} else {
			first[label] = i
		}
		visit(e)
		e.refuseOtherKeys()
	}
}

func (e *entry) institution() *Institution {
	return &Institution{
		ID:          e.id("id"),
		Name:        e.required("name", catalogueNameMax),
		Type:        e.institutionType("type"),
		Website:     e.uri("website"),
		Description: e.text("description", catalogueTextMax),
		Contact:     e.text("contact", catalogueNameMax),
		Active:      e.flag("active", true),
	}
}

func (e *entry) currency() *Currency {
	code := e.currencyCode("code")
	currency := &Currency{
		Code: code, Name: e.required("name", catalogueNameMax), Symbol: e.textOr("symbol", code, catalogueSymbolMax),
		Lowest: e.decimal("lowest"), Highest: e.decimal("highest"),
	}
	if !currency.Lowest.IsNull() && !currency.Highest.IsNull() && currency.Lowest.Compare(currency.Highest) > 0 {
		e.wrong("lowest %s is above highest %s; exchange them", currency.Lowest, currency.Highest)
	}
	return currency
}

func (e *entry) source() Source {
	id := e.id("id")
	return Source{
		ID: id, Name: e.textOr("name", id, catalogueNameMax), URL: e.uri("url"),
		Priority:       e.priority("priority"),
		UpstreamSource: e.text("upstreamSource", UpstreamSourceMax),
		Lifetime:       e.lifetime("lifetime"),
		Manual:         e.flag("manual", false),
	}
}

func (e *entry) id(key string) string {
	id, given := e.string(key)
	if given && !isID(id) {
		e.wrong("%s is not of the form ^[a-z0-9-]{1,%d}$; use small letters, digits and hyphens", key, InstitutionIDMax)
	}
	e.need(key, given)
	return id
}

func isID(text string) bool {
	for i := range len(text) {
		if c := text[i]; c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return text != "" && len(text) <= InstitutionIDMax
}

func (e *entry) currencyCode(key string) string {
	code, given := e.string(key)
	switch {
	case !given:
	case len(code) != 3 || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		e.wrong("%s is not of the form ^[A-Z]{3}$; use the ISO 4217 code, as USD", key)
	case code == QuoteCurrency:
		e.wrong("%s is the currency that every rate is quoted in; take the entry out", code)
	}
	e.need(key, given)
	return code
}

func (e *entry) institutionType(key string) InstitutionType {
	text, given := e.string(key)
	kind := InstitutionType(text)
	if given && !slices.Contains(InstitutionTypes(), kind) {
		e.wrong("%s %.40q is none of %q; use one of them", key, text, InstitutionTypes())
	}
	e.need(key, given)
	return kind
}

func (e *entry) uri(key string) string {
	text := e.text(key, catalogueTextMax)
	if text != "" && !isWebURI(text) {
		e.wrong("%s is no web address; write it with https:// and only ASCII characters, others as %%XX, or leave it out", key)
	}
	return text
}

// isWebURI accepts absolute http and https addresses in RFC 3986 characters, without a user's name and password.
func isWebURI(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' || strings.IndexByte("\"<>\\^`{|}", text[i]) >= 0 {
			return false
		}
	}
	address, err := url.Parse(text)
	return err == nil && (address.Scheme == "https" || address.Scheme == "http") && address.Hostname() != "" && address.User == nil
}

func (e *entry) decimal(key string) Decimal {
	text, given := e.string(key)
	if !given {
		return Decimal{}
	}
	value, err := ParseDecimal(text)
	if err != nil {
		e.wrong("%s: %w; write it as \"40\" or leave it out", key, err)
	}
	return value
}

func (e *entry) priority(key string) int64 {
	raw, given := e.take(key)
	if !given {
		return PriorityDefault
	}
	var value *int64
	if err := json.Unmarshal(raw, &value); err != nil || value == nil || *value < 0 || *value > cataloguePriorityMax {
		e.wrong("%s is no whole number from 0 to %d; the lower number wins, %d is usual", key, int64(cataloguePriorityMax), PriorityDefault)
		return PriorityDefault
	}
	return *value
}

func (e *entry) lifetime(key string) time.Duration {
	text, given := e.string(key)
	if !given {
		return LifetimeDefault
	}
	span, err := time.ParseDuration(text)
	if err != nil || span < catalogueLifetimeMin || span > catalogueLifetimeMax {
		e.wrong("%s is no span from %v to %v; write it as \"26h\"", key, catalogueLifetimeMin, catalogueLifetimeMax)
	}
	return span
}
