package engine

import (
	"cmp"
	"fmt"
	"io"
)

// Limits of a catalogue file.
const (
	catalogueBytesMax    = 1 << 20
	catalogueTextMax     = 2000 // characters of a description or a URL
	catalogueNameMax     = 200  // characters of a name or a contact
	catalogueSymbolMax   = 16   // characters
	cataloguePriorityMax = 9_007_199_254_740_991
)

// read adds the entries of a catalogue file to c. After an error c must not be used.
func (c *Catalogue) read(r io.Reader, name string) error {
	data, err := io.ReadAll(io.LimitReader(r, catalogueBytesMax+1))
	if err != nil {
		return fmt.Errorf("read catalogue %s: %w", name, err)
	}
	return readJSONFile(name, data, catalogueBytesMax, "split it", func(top *jsonObject) {
		eachEntry(top, "institutions", "id", func(e *entry) {
			institution := e.institution()
			c.institutions[institution.ID] = institution
		})
		eachEntry(top, "currencies", "code", func(e *entry) {
			currency := e.currency()
			c.currencies[currency.Code] = currency
		})
		eachEntry(top, "sources", "id", func(e *entry) {
			source := e.source()
			c.sources[source.ID] = source
		})
	})
}

// entry is an institution, a currency or a source in a file.
type entry struct{ *jsonObject }

// eachEntry calls visit for each entry of one list. It reports a problem if two entries have the same key.
func eachEntry(top *jsonObject, list, key string, visit func(*entry)) {
	places := map[string]string{} // path of each entry, by the value of its key
	top.each(list, catalogueBytesMax, func(o *jsonObject) {
		place := o.place()
		label := o.useLabel(key)
		if other, found := places[label]; found && label != "" {
			o.errorf("stands already in %s; keep one of them", other)
		} else {
			places[label] = place
		}
		visit(&entry{o})
	})
}

func (e *entry) institution() *Institution {
	return &Institution{
		ID:          e.id("id"),
		Name:        e.required("name"),
		Type:        requiredEnum(e.jsonObject, "type", InstitutionTypes()),
		Website:     e.uri("website", catalogueTextMax),
		Description: e.text("description", catalogueTextMax),
		Contact:     e.text("contact", catalogueNameMax),
		Active:      e.bool("active", true),
	}
}

func (e *entry) currency() *Currency {
	code := e.jsonObject.required("code", wholeEntryHint, e.currencyCode)
	if code == QuoteCurrency {
		e.errorf("%s is the currency that every rate is quoted in; take the entry out", code)
	}
	currency := &Currency{
		Code: code, Name: e.required("name"), Symbol: cmp.Or(e.text("symbol", catalogueSymbolMax), code),
		Lowest: parsedAs(e.jsonObject, "lowest", "40", ParseDecimal), Highest: parsedAs(e.jsonObject, "highest", "40", ParseDecimal),
	}
	if !currency.Lowest.IsNull() && !currency.Highest.IsNull() && currency.Lowest.Compare(currency.Highest) > 0 {
		e.errorf("lowest %s is above highest %s; exchange them", currency.Lowest, currency.Highest)
	}
	return currency
}

func (e *entry) source() Source {
	id := e.id("id")
	return Source{
		ID: id, Name: cmp.Or(e.text("name", catalogueNameMax), id), URL: e.uri("url", catalogueTextMax),
		Priority:       e.number("priority", PriorityDefault, 0, cataloguePriorityMax),
		UpstreamSource: e.text("upstreamSource", UpstreamSourceMax),
		Lifetime:       e.duration("lifetime", LifetimeDefault),
		Manual:         e.bool("manual", false),
	}
}

// wholeEntryHint is added to the error for a missing JSON key.
const wholeEntryHint = "; an entry is given as a whole, also when it replaces a known one"

func (e *entry) id(key string) string {
	return e.jsonObject.required(key, wholeEntryHint, func(key string) string { return e.jsonObject.id(key, InstitutionIDMax) })
}

func (e *entry) required(key string) string {
	return e.jsonObject.required(key, wholeEntryHint, func(key string) string { return e.text(key, catalogueNameMax) })
}
