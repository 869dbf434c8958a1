package suggest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

// Suggestion is a definition that reads the findings of a document.
type Suggestion struct {
	Found      []Finding
	Definition []byte   // a definition file; nil = there is none
	Notes      []string // what was refused, and why
}

// The part of a definition file that is replaced.
type (
	extract struct {
		Method string  `json:"method"`
		Date   *date   `json:"date,omitempty"`
		Fields []field `json:"fields,omitempty"`
		Rows   *rows   `json:"rows,omitempty"`
	}
	locator struct {
		At        string `json:"at,omitempty"`
		Column    string `json:"column,omitempty"`
		Attribute string `json:"attribute,omitempty"`
		Pattern   string `json:"pattern,omitempty"`
	}
	date struct {
		locator
		Form string `json:"form"`
	}
	field struct {
		Currency string         `json:"currency"`
		Side     source.Side    `json:"side"`
		Channel  engine.Channel `json:"channel,omitempty"`
		locator
	}
	target struct {
		Currency string         `json:"currency"`
		Side     source.Side    `json:"side,omitempty"`
		Channel  engine.Channel `json:"channel,omitempty"`
	}
	rows struct {
		At     string            `json:"at,omitempty"`
		Label  locator           `json:"label"`
		Buy    *locator          `json:"buy,omitempty"`
		Sell   *locator          `json:"sell,omitempty"`
		Value  *locator          `json:"value,omitempty"`
		Labels map[string]target `json:"labels"`
	}
)

// Suggest finds the rates in a document of a page, and changes the definition file base so that it reads exactly
// them. It keeps all of base but how that page is read and the evidence. seen is the day of the document.
func Suggest(base []byte, page int, doc *source.Document, known []Known, seen engine.Date) Suggestion {
	f := &finder{known: known, ofChannel: map[quoteSide]bool{}}
	d, err := source.ReadDefinition("base.json", base)
	if err != nil {
		return Suggestion{Notes: []string{err.Error()}}
	}
	if d.Institution == "" && d.Pages[page].Institution == "" {
		return Suggestion{Notes: []string{"the page has rates of several institutions; such pages are not searched"}}
	}
	for _, t := range d.Targets(&d.Pages[page]) {
		f.ofChannel[quoteSide{currency: t.Currency, channel: string(t.Channel)}] = t.Channel != d.Channel
	}
	found, err := f.find(doc)
	if err != nil {
		return Suggestion{Notes: append(f.notes, err.Error())}
	}
	s := &suggester{f, base, page, doc, found}
	if len(found) == 0 {
		return Suggestion{Notes: append(f.notes, "no price has clear words for its currency and its side")}
	}
	for _, write := range []func() *extract{s.jsonRows, s.jsonFields, s.tableRows, s.htmlFields} {
		e := write()
		if e == nil {
			continue
		}
		e.Date = s.date()
		file, err := s.replaced(e, seen)
		if err == nil {
			err = s.verify(file)
		}
		if err == nil {
			return Suggestion{Found: found, Definition: file, Notes: f.notes}
		}
		f.note("%s: %v", e.Method, err)
	}
	return Suggestion{Found: found, Notes: f.notes}
}

// suggester writes the definition for findings.
type suggester struct {
	*finder
	base  []byte
	index int // of the page
	doc   *source.Document
	found []Finding
}

// replaced returns the base with another extract and other evidence. The text of all else stays as it is.
func (s *suggester) replaced(e *extract, seen engine.Date) ([]byte, error) {
	var base struct {
		Evidence json.RawMessage
		Pages    []struct{ Extract json.RawMessage }
	}
	if err := json.Unmarshal(s.base, &base); err != nil {
		return nil, fmt.Errorf("read the definition: %w", err)
	}
	if s.index >= len(base.Pages) {
		return nil, fmt.Errorf("the definition has no page %d", s.index)
	}
	text, err := encode(e, "      ")
	if err != nil {
		return nil, err
	}
	file := bytes.Replace(s.base, base.Pages[s.index].Extract, text, 1)
	if base.Evidence == nil {
		return file, nil
	}
	evidence, err := encode(map[string]string{"grade": "reported", "seen": seen.String(), "by": "tasard sources suggest"}, "  ")
	if err != nil {
		return nil, err
	}
	return bytes.Replace(file, base.Evidence, evidence, 1), nil
}

// encode writes JSON as definition files have it: two blanks, no escapes for HTML.
func encode(value any, prefix string) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(prefix, "  ")
	err := encoder.Encode(value)
	return bytes.TrimSpace(text.Bytes()), err
}

// verify wants the definition to read exactly the findings.
func (s *suggester) verify(file []byte) error {
	d, err := source.ReadDefinition("suggested.json", file)
	if err != nil {
		return err
	}
	result, err := d.Parse(s.index, s.doc)
	if err != nil {
		return err
	}
	count := 0
	for _, o := range result.Observations {
		for side, price := range map[source.Side]string{source.BuySide: o.Buy, source.SellSide: o.Sell} {
			if price == "" {
				continue
			}
			count++
			if !slices.ContainsFunc(s.found, func(f Finding) bool { return f.matches(o, side, price) }) {
				return fmt.Errorf("it reads %s %s %s", o.Currency, side, price)
			}
		}
	}
	if count < len(s.found) {
		return fmt.Errorf("it reads %d of %d prices", count, len(s.found))
	}
	return nil
}

func (f *Finding) matches(o engine.Observation, side source.Side, price string) bool {
	value, _ := centsOf(price)
	return f.Currency == o.Currency && f.Side == side && f.at.value == value && (f.Channel == "" || f.Channel == o.Channel)
}

func (f *Finding) target() target { return target{Currency: f.Currency, Channel: f.Channel} }

func (s *suggester) jsonFields() *extract {
	if s.json == nil {
		return nil
	}
	e := &extract{Method: string(source.JSONFields)}
	for _, f := range s.found {
		if slices.ContainsFunc(f.at.path, func(at step) bool { return at.length > 1 }) {
			return nil // the place in a list may change
		}
		e.Fields = append(e.Fields, field{f.Currency, f.Side, f.Channel, locator{At: f.at.path.String()}})
	}
	return e
}

// jsonRows reads a list whose entries are named by a text in them.
func (s *suggester) jsonRows() *extract {
	if s.json == nil {
		return nil
	}
	e := &extract{Method: string(source.JSONRows), Rows: &rows{Labels: map[string]target{}}}
	at, sided := map[source.Side]string{}, map[string]target{}
	for i, f := range s.found {
		index := slices.IndexFunc(f.at.path, func(step step) bool { return step.length > 0 })
		if index < 0 {
			return nil
		}
		list, within := f.at.path[:index].String(), f.at.path[index+1:].String()
		if i > 0 && e.Rows.At != list || at[f.Side] != "" && at[f.Side] != within {
			return nil
		}
		e.Rows.At, at[f.Side] = list, within
		label, ok := s.labelOf(f.at.path[index].value, &f, e.Rows.Label.At)
		if !ok {
			return nil
		}
		e.Rows.Label.At = label.key
		e.Rows.Labels[label.value.text()] = f.target()
		sided[label.value.text()] = target{f.Currency, f.Side, f.Channel}
	}
	if at[source.BuySide] == at[source.SellSide] { // an entry for each side
		e.Rows.Value, e.Rows.Labels = locatorAt(at[source.BuySide]), sided
		return e
	}
	e.Rows.Buy, e.Rows.Sell = locatorAt(at[source.BuySide]), locatorAt(at[source.SellSide])
	return e
}

func locatorAt(at string) *locator {
	if at == "" {
		return nil
	}
	return &locator{At: at}
}

// labelOf returns the text of an entry that names the currency of a finding.
func (s *suggester) labelOf(entry *value, f *Finding, key string) (member, bool) {
	for _, m := range entry.members {
		text := m.value.text()
		currency, _ := only(values.Words(text), values.AboutCurrency)
		if code := codesOfNumbers[text]; code != "" {
			currency.Meaning = code
		}
		if currency.Meaning == f.Currency && (key == "" || key == m.key) && !strings.ContainsAny(text, "\n") {
			return m, true
		}
	}
	return member{}, false
}

// tableRows reads a table with a column for each side, and a label in each row.
func (s *suggester) tableRows() *extract {
	if s.page == nil {
		return nil
	}
	t := tableWriter{page: s.page, headings: map[source.Side]string{}, labels: map[string]target{}, labelColumn: -1}
	for i := range s.found {
		if err := t.add(&s.found[i]); err != nil {
			return nil
		}
	}
	return t.extract()
}

var errNoTable = errors.New("not a table with headings and labels")
