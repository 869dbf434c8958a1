package suggest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tasard/tasard/collectors/markup"
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

// suggester writes the definition for findings.
type suggester struct {
	*finder
	base  []byte
	index int // of the page
	doc   *source.Document
	found []Finding
}

// Suggest finds the rates in a document of a page. It returns a copy of the definition file base that reads exactly
// these rates: only the page's extract and the evidence are changed. known are the known prices. seen is the day of the
// document. Pages with rates of several institutions, and workbooks, are not searched.
func Suggest(base []byte, page int, doc *source.Document, known []engine.Observation, seen engine.Date) Suggestion {
	s := &suggester{newFinder(known), base, page, doc, nil}
	file, err := s.suggest(seen)
	if err != nil {
		s.note("%v", err)
	}
	return Suggestion{s.found, file, s.notes}
}

func (s *suggester) suggest(seen engine.Date) (file []byte, err error) {
	d, err := source.ReadDefinition("base.json", s.base)
	switch {
	case err != nil:
		return nil, err
	case s.index >= len(d.Pages):
		return nil, fmt.Errorf("the definition has no page %d", s.index)
	case d.Institution == "" && d.Pages[s.index].Institution == "":
		return nil, fmt.Errorf("the page has rates of several institutions; such pages are not searched")
	}
	s.channel = string(d.Channel)
	if s.found, err = s.find(s.doc); err != nil {
		return nil, err
	}
	if len(s.found) == 0 {
		return nil, fmt.Errorf("no price has clear words for its currency and its side")
	}
	for _, write := range []func() *source.Extract{s.rows, s.fields} {
		e := write()
		if e == nil {
			continue
		}
		e.Date = s.date()
		if file, err = s.replaced(e, seen); err == nil {
			err = s.verify(file)
		}
		if err == nil {
			return file, nil
		}
		s.note("%s: %v", e.Method, err)
	}
	return nil, nil
}

// replaced returns the base with another extract and other evidence. All other text is unchanged.
func (s *suggester) replaced(e *source.Extract, seen engine.Date) (file []byte, err error) {
	evidence := map[string]string{"grade": "reported", "seen": seen.String(), "by": "tasard sources suggest"}
	if file, err = replaced(s.base, "evidence", evidence, "  "); err == nil {
		file, err = replaced(file, fmt.Sprintf("pages.%d.extract", s.index), e, "      ")
	}
	return file, err
}

func replaced(file []byte, path string, value any, prefix string) ([]byte, error) {
	text, err := json.MarshalIndent(value, prefix, "  ")
	old := gjson.GetBytes(file, path)
	if err != nil || !old.Exists() {
		return file, err
	}
	return slices.Concat(file[:old.Index], text, file[old.Index+len(old.Raw):]), nil
}

// verify returns an error unless the definition reads exactly the findings.
func (s *suggester) verify(file []byte) error {
	d, err := source.ReadDefinition("suggested.json", file)
	if err != nil {
		return err
	}
	result, err := d.Parse(s.index, s.doc)
	if err != nil {
		return err
	}
	want, got := map[quoteSide]int64{}, map[quoteSide]int64{}
	for _, f := range s.found {
		want[f.at.quoteSide] = f.at.units
	}
	for _, o := range result.Observations {
		for side, price := range map[string]string{"buy": o.Buy, "sell": o.Sell} {
			if price != "" {
				got[quoteSide{o.Currency, side}] = unitsOf(price)
			}
		}
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("it reads %d prices, but not these %d", len(got), len(want))
	}
	return nil
}

// row is the row of a table, or the entry of a JSON list, that contains a price.
type row struct {
	at           string // selector or path of all rows
	label, price source.Locator
	text         string // of the label
}

// rows returns an Extract that finds the prices in rows by their labels, or nil if that is not possible.
func (s *suggester) rows() *source.Extract {
	e := &source.Extract{Method: source.HTMLRows, Rows: &source.Rows{Labels: source.Labels{}}}
	rowOf := s.tableRow
	if s.json != nil {
		e.Method, rowOf = source.JSONRows, jsonRow
	}
	at, sided := map[source.Side]*source.Locator{}, source.Labels{}
	for i, f := range s.found {
		r, ok := rowOf(&f)
		if !ok || i > 0 && (r.at != e.Rows.At || r.label != e.Rows.Label) || at[f.Side] != nil && *at[f.Side] != r.price {
			return nil
		}
		e.Rows.At, e.Rows.Label, at[f.Side] = r.at, r.label, &r.price
		e.Rows.Labels[r.text] = source.Target{Currency: f.Currency}
		sided[r.text] = source.Target{Currency: f.Currency, Side: f.Side}
	}
	buy, sell := at[source.BuySide], at[source.SellSide]
	if buy != nil && sell != nil && *buy == *sell { // a row for each side
		e.Rows.Value, e.Rows.Labels = buy, sided
	} else {
		e.Rows.Buy, e.Rows.Sell = buy, sell
	}
	return e
}

// tableRow returns the table row of a finding. ok is false if the row lacks a label, or the column a heading.
func (s *suggester) tableRow(f *Finding) (r row, ok bool) {
	cell := cellOf(f.at.node)
	if cell == nil || f.at.attribute != "" {
		return row{}, false
	}
	grid, at, column := s.gridOf(cell)
	label := -1 // the last cell that names the currency: "Unión Europea | Euro"
	for i, other := range grid[at] {
		if word, _ := only(s.wordsIn(other), values.AboutCurrency); s.pricesIn(other) == 0 && word.Meaning == f.Currency {
			label = i
		}
	}
	heading := ""
	for _, cells := range slices.Backward(grid[:at]) {
		if column < len(cells) && s.pricesIn(cells[column]) == 0 && heading == "" {
			heading = markup.VisibleText(cells[column])
		}
	}
	if label < 0 || heading == "" {
		return row{}, false
	}
	return row{
		at:    strings.TrimSpace(selectorOf(markup.EnclosingTable(cell)) + " tr"),
		label: source.Locator{At: fmt.Sprintf("td:nth-child(%[1]d), th:nth-child(%[1]d)", label+1)},
		price: source.Locator{Column: heading}, text: markup.VisibleText(grid[at][label]),
	}, true
}
