package suggest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

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

// fields returns an Extract that reads each price with its own locator, or nil if a price has no such locator.
func (s *suggester) fields() *source.Extract {
	e := &source.Extract{Method: source.HTMLFields}
	if s.json != nil {
		e.Method = source.JSONFields
	}
	// In a page, a locator must find this price and no other one. It may find the price several times.
	has := func(l source.Locator, f *Finding) bool {
		texts := l.Texts(s.document)
		return len(texts) > 0 && !slices.ContainsFunc(texts, func(text string) bool { return unitsOf(text) != f.at.units })
	}
	for _, f := range s.found {
		locators := s.locators(&f)
		found := slices.IndexFunc(locators, func(l source.Locator) bool { return s.json != nil || has(l, &f) })
		if found < 0 {
			s.note("%s %s %s: no place has it alone", f.Currency, f.Side, f.Price)
			return nil
		}
		e.Fields = append(e.Fields, source.Field{Currency: f.Currency, Side: f.Side, Locator: locators[found]})
	}
	return e
}

// Patterns for a price in a text.
const (
	pricePattern = `([0-9]+(?:[.,][0-9]+)*)`
	otherPrice   = `(?:[0-9]+(?:[.,][0-9]+)*|-|N/A)`
)

// aroundMax is the maximum size of a text that becomes a pattern.
const aroundMax = 500

// locators returns possible locators of a price, beginning with those that will probably last longest: by a name that
// says the side, by an attribute, by the words in an element around the price.
func (s *suggester) locators(f *Finding) (all []source.Locator) {
	at := f.at
	switch {
	case at.inScript:
		return []source.Locator{{At: "script", Pattern: scriptPattern(f)}}
	case isJSON(at.node):
		if path, isOfSeveral := pathOf(at.node, nil); !isOfSeveral { // else its place in the list may change
			all = append(all, source.Locator{At: path})
		}
		return all
	}
	for _, selector := range namesOf(at.node) {
		if side, _ := only(values.Words(selector), values.AboutSide); at.attribute != "" || side.Meaning == string(f.Side) {
			all = append(all, source.Locator{At: selector, Attribute: at.attribute})
		}
	}
	isSmall := func(node *html.Node) bool {
		return node.DataAtom != atom.Body && len(markup.VisibleText(node)) <= aroundMax
	}
	for around := at.node; at.attribute == "" && around != nil && isSmall(around); around = around.Parent {
		if pattern, ok := template(markup.VisibleText(around), at.text); ok && selectorOf(around) != "" {
			all = append(all, source.Locator{At: selectorOf(around), Pattern: pattern})
		}
	}
	return all
}

// scriptPattern returns a pattern for a price in the JSON of a script: after the label in its object, if there is one.
func scriptPattern(f *Finding) string {
	price := regexp.QuoteMeta(strconv.Quote(keyOf(f.at.node))) + `\s*:\s*"?` + pricePattern
	label := labelOf(f.at.node.Parent, f.Currency)
	if label == nil {
		return price
	}
	text := jsonText(label)
	if label.Data != numberValue {
		text = strconv.Quote(text)
	}
	return regexp.QuoteMeta(strconv.Quote(keyOf(label))) + `\s*:\s*` + regexp.QuoteMeta(text) + `[^{}]*?` + price
}

// describe names an element in words that an operator can search the page for, and a JSON value by its path.
func describe(node *html.Node) string {
	if isJSON(node) {
		path, _ := pathOf(node, nil)
		return path
	}
	return cmp.Or(selectorOf(node), node.Data)
}

var plainName = regexp.MustCompile(`^[#.][A-Za-z0-9_-]+$`)

// namesOf returns a selector for the id and for each class of an element.
func namesOf(node *html.Node) []string {
	id, _ := markup.Text(node, "id")
	class, _ := markup.Text(node, "class")
	selectors := []string{"#" + id}
	for name := range strings.FieldsSeq(class[:min(len(class), nameMax)]) {
		selectors = append(selectors, "."+name)
	}
	return slices.DeleteFunc(selectors, func(selector string) bool { return !plainName.MatchString(selector) || !markup.IsSelector(selector) })
}

// selectorOf returns a selector of an element: its name with its id or its classes, or "".
func selectorOf(node *html.Node) string {
	names := namesOf(node)
	if len(names) > 0 && strings.HasPrefix(names[0], "#") {
		names = names[:1]
	}
	if selector := node.Data + strings.Join(names, ""); markup.IsSelector(selector) {
		return selector
	}
	return ""
}

// template returns a pattern for a text: the same words, any other numbers, and the price in a group. ok is false if
// the text contains the price twice.
func template(text, price string) (pattern string, ok bool) {
	before, behind, _ := strings.Cut(text, price)
	return `(?i)^\s*` + freeNumbers(before) + pricePattern + freeNumbers(behind) + `\s*$`, !strings.Contains(behind, price)
}

var partPattern = regexp.MustCompile(`\s+|[0-9][0-9.,]*|[^\s0-9]+`)

// freeNumbers returns a pattern for a text whose numbers may change.
func freeNumbers(text string) string {
	return partPattern.ReplaceAllStringFunc(text, func(part string) string {
		switch {
		case strings.TrimSpace(part) == "":
			return `\s+` // so that one number is not read as two
		case unicode.IsDigit(rune(part[0])):
			return otherPrice
		}
		return regexp.QuoteMeta(part)
	})
}

// datePattern matches a word for the date of the rates, and the date behind it.
const datePattern = `(?i)(?:actualizad[oa]s?|actualizaci[oó]n|vigentes?|vigencia|fecha|tasas? (?:al|del))[^0-9\pL]{1,3}(?:(?:al|del|desde|el)\s)?([^.]+)`

var (
	dateLabel = regexp.MustCompile(datePattern)
	dateForms = []values.DateForm{values.ISODate, values.DayTime, values.Instant}
)

// placesMax limits the number of places that may contain the date. With as many, no date is suggested.
const placesMax = 20

// date finds the date of the rates. In a page it must follow a word such as "fecha"; in JSON it may be any text. date
// returns nil if there is no date, or if there are different dates.
func (s *suggester) date() *source.Date {
	days := map[engine.Date]*source.Date{}
	for place, texts := range s.datePlaces() {
		for _, text := range texts {
			for _, form := range dateForms {
				if day, _, err := values.ParseDate(text, form); err == nil {
					days[day] = cmp.Or(days[day], &source.Date{Locator: place, Form: form})
					break
				}
			}
		}
	}
	for _, date := range days {
		if len(days) == 1 {
			return date
		}
	}
	return nil
}

// datePlaces returns the places that may contain the date, with the texts there.
func (s *suggester) datePlaces() map[source.Locator][]string {
	places := map[source.Locator][]string{}
	for node := range cmp.Or(s.json, s.document).Descendants() {
		if len(places) == placesMax {
			return nil
		}
		text := jsonText(node)
		if path, isOfSeveral := pathOf(node, nil); isJSON(node) && !isOfSeveral && text != "" {
			places[source.Locator{At: path}] = []string{text}
		}
		if node.Type == html.TextNode && !isJSON(node.Parent) && !markup.IsInvisible(node.Parent) && dateLabel.MatchString(values.CollapseSpaces(node.Data)) {
			places[source.Locator{At: selectorOf(node.Parent), Pattern: datePattern}] = nil
		}
	}
	for place := range places {
		if s.json == nil {
			places[place] = place.Texts(s.document)
		}
	}
	return places
}
