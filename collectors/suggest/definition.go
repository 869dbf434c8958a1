package suggest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/net/html"

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

// Suggest finds the rates in a document of a page, and changes the definition file base so that it reads exactly
// them. It keeps all of base but how that page is read and the evidence. seen is the day of the document. Pages with
// rates of several institutions, and workbooks, are not searched.
func Suggest(base []byte, page int, doc *source.Document, known []Known, seen engine.Date) Suggestion {
	s := &suggester{&finder{known: pricesOf(known), ofChannel: map[quoteSide]bool{}}, base, page, doc, nil}
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
	for _, t := range d.Targets(&d.Pages[s.index]) {
		s.ofChannel[quoteSide{currency: t.Currency, channel: string(t.Channel)}] = t.Channel != d.Channel
	}
	if s.found, err = s.find(s.doc); err != nil {
		return nil, err
	}
	if len(s.found) == 0 {
		return nil, fmt.Errorf("no price has clear words for its currency and its side")
	}
	methods := []func() *source.Extract{s.tableRows, s.htmlFields}
	if s.json != nil {
		methods = []func() *source.Extract{s.jsonRows, s.jsonFields}
	}
	for _, write := range methods {
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

// replaced returns the base with another extract and other evidence. The text of all else stays as it is.
func (s *suggester) replaced(e *source.Extract, seen engine.Date) ([]byte, error) {
	var base struct {
		Evidence json.RawMessage
		Pages    []struct{ Extract json.RawMessage }
	}
	evidence := map[string]string{"grade": "reported", "seen": seen.String(), "by": "tasard sources suggest"}
	if err := json.Unmarshal(s.base, &base); err != nil {
		return nil, fmt.Errorf("read the definition: %w", err)
	}
	file := bytes.Replace(s.base, base.Pages[s.index].Extract, encoded(e, "      "), 1)
	if base.Evidence != nil {
		file = bytes.Replace(file, base.Evidence, encoded(evidence, "  "), 1)
	}
	return file, nil
}

// encoded writes JSON as definition files have it: two blanks, no escapes for HTML.
func encoded(value any, prefix string) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(prefix, "  ")
	if err := encoder.Encode(value); err != nil {
		panic(err) // impossible: texts and numbers
	}
	return bytes.TrimSpace(text.Bytes())
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
			isFound := func(f Finding) bool {
				return f.Currency == o.Currency && f.Side == side && f.at.units == unitsOf(price) && (f.Channel == "" || f.Channel == o.Channel)
			}
			if !slices.ContainsFunc(s.found, isFound) {
				return fmt.Errorf("it reads %s %s %s", o.Currency, side, price)
			}
		}
	}
	if count < len(s.found) {
		return fmt.Errorf("it reads %d of %d prices", count, len(s.found))
	}
	return nil
}

func (f *Finding) target() source.Target {
	return source.Target{Currency: f.Currency, Channel: f.Channel}
}

func (f *Finding) field(l source.Locator) source.Field {
	return source.Field{Currency: f.Currency, Side: f.Side, Channel: f.Channel, Locator: l}
}

// tableRows reads a table with a column for each side, and a label in each row.
func (s *suggester) tableRows() *source.Extract {
	rows, headings := &source.Rows{Labels: source.Labels{}}, map[source.Side]string{}
	var table *html.Node
	labelColumn, labelHeading := -1, ""
	for i := range s.found {
		f := &s.found[i]
		cell := cellOf(f.at.node)
		if cell == nil || f.at.attribute != "" || f.at.inScript || table != nil && table != markup.EnclosingTable(cell) {
			return nil
		}
		table = markup.EnclosingTable(cell)
		grid, row, column := s.page.gridOf(cell)
		above := s.page.headingsAbove(grid, row, column)
		if above == nil {
			return nil
		}
		heading := markup.VisibleText(above[column])
		label := slices.IndexFunc(grid[row], func(other *html.Node) bool { return s.page.isLabel(other, f) })
		if label >= 0 && labelColumn >= 0 && s.page.isLabel(grid[row][labelColumn], f) {
			label = labelColumn
		}
		if known := headings[f.Side]; known != "" && known != heading || label < 0 || labelColumn >= 0 && label != labelColumn {
			return nil
		}
		headings[f.Side], labelColumn = heading, label
		rows.Labels[markup.VisibleText(grid[row][label])] = f.target()
		if label < len(above) {
			labelHeading = markup.VisibleText(above[label])
		}
	}
	for side, locator := range map[source.Side]**source.Locator{source.BuySide: &rows.Buy, source.SellSide: &rows.Sell} {
		if heading := headings[side]; heading != "" {
			*locator = &source.Locator{Column: heading}
		}
	}
	buy, sell := values.NormaliseLabel(headings[source.BuySide]), values.NormaliseLabel(headings[source.SellSide])
	rows.At, rows.Label = "table tr", source.Locator{Column: labelHeading}
	if selector := selectorOf(table); selector != "" {
		rows.At = selector + " tr"
	}
	if name := values.NormaliseLabel(labelHeading); name == "" || name == buy || name == sell {
		rows.Label = source.Locator{At: fmt.Sprintf("td:nth-child(%[1]d), th:nth-child(%[1]d)", labelColumn+1)}
	}
	if buy == sell {
		return nil
	}
	return &source.Extract{Method: source.HTMLRows, Rows: rows}
}

// isLabel reports whether a cell of the row of a finding names its currency, and its channel.
func (p *page) isLabel(cell *html.Node, f *Finding) bool {
	words := p.wordsIn(cell)
	currency, _ := only(words, values.AboutCurrency)
	return p.pricesIn(cell) == 0 && currency.Meaning == f.Currency && (f.Channel == "" || has(words, values.AboutChannel))
}

// headingsAbove returns the nearest row above that has a text in a column, and no price in it, or nil.
func (p *page) headingsAbove(grid [][]*html.Node, row, column int) []*html.Node {
	for _, cells := range slices.Backward(grid[:row]) {
		if column < len(cells) && p.pricesIn(cells[column]) == 0 && markup.VisibleText(cells[column]) != "" {
			return cells
		}
	}
	return nil
}
