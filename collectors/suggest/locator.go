package suggest

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/tasard/tasard/collectors/markup"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

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
