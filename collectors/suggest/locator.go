package suggest

import (
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

// htmlFields reads each price by the names of its element, or by the words around it.
func (s *suggester) htmlFields() *source.Extract {
	e := &source.Extract{Method: source.HTMLFields}
	for i := range s.found {
		f := &s.found[i]
		locators := s.locators(f)
		found := slices.IndexFunc(locators, func(l source.Locator) bool { return s.page.reads(&l, f.at.units) })
		if found < 0 {
			s.note("%s %s %s: no selector finds it alone", f.Currency, f.Side, f.Price)
			return nil
		}
		e.Fields = append(e.Fields, f.field(locators[found]))
	}
	return e
}

// reads reports whether a locator finds a price, and no other one.
func (p *page) reads(l *source.Locator, units int64) bool {
	texts := l.Texts(p.document)
	return len(texts) > 0 && !slices.ContainsFunc(texts, func(text string) bool { return unitsOf(text) != units })
}

// Patterns for a price in a text.
const (
	pricePattern = `([0-9]+(?:[.,][0-9]+)*)`
	otherPrice   = `(?:[0-9]+(?:[.,][0-9]+)*|-|N/A)`
	lonePrice    = `^(?:\P{N}*[^\p{N}.,−–-])?` + pricePattern + `(?:\s?(?:DOP|RD\s?\$|\$))?$`
)

// aroundMax is the size of a text whose words a pattern repeats.
const aroundMax = 500

// locators returns the ways to find a price, the most lasting one first: by a name that says the side, an attribute, or
// by the words in an element around it.
func (s *suggester) locators(f *Finding) (all []source.Locator) {
	at := f.at
	switch {
	case at.script != "":
		return scriptLocators(at)
	case at.inScript:
		return scriptJSONLocators(f)
	}
	selectors := namesOf(at.node)
	if len(values.Words(at.attribute)) > 0 {
		selectors = append([]string{"[" + at.attribute + "]"}, selectors...)
	}
	for _, selector := range selectors {
		if side, _ := only(values.Words(selector), values.AboutSide); side.Meaning == string(f.Side) {
			all = append(all, source.Locator{At: selector, Attribute: at.attribute}, source.Locator{At: selector, Attribute: at.attribute, Pattern: lonePrice})
		}
	}
	if at.attribute != "" {
		for _, selector := range selectors {
			all = append(all, source.Locator{At: selector, Attribute: at.attribute})
		}
		return all
	}
	for around := at.node; around != nil && around.DataAtom != atom.Body && len(markup.VisibleText(around)) <= aroundMax; around = around.Parent {
		words := append(s.page.wordsIn(around), s.page.names(around)...)
		isNamed := true // the words around it, if words and not the known price named it
		for _, about := range []values.Topic{values.AboutSide, values.AboutCurrency} {
			isNamed = isNamed && (at.words[about].Text == "" || has(words, about) || about == values.AboutCurrency && has(s.page.title, about))
		}
		if selector := selectorOf(around); selector != "" && isNamed {
			all = append(all, source.Locator{At: selector, Pattern: template(around, at)})
		}
	}
	return all
}

func scriptLocators(at *spot) []source.Locator {
	name := strings.TrimSpace(at.script)
	name = name[strings.LastIndexAny(name, "\n;")+1:]
	return []source.Locator{{At: "script", Pattern: regexp.QuoteMeta(name) + `\s*[=:(]\s*(?:[A-Za-z]{1,20}\()?["'` + "`" + `]?\s*(?:RD\$|\$)?\s?` +
		`([0-9]+(?:\.[0-9]+|,[0-9]{2})?)(?:\s?DOP)?["'` + "`" + `)\];}]`}}
}

// scriptJSONLocators returns patterns for a price of a JSON value in a script: the member with the label is before the
// price in its object, or behind it.
func scriptJSONLocators(f *Finding) []source.Locator {
	entry := f.at.node.Parent
	if entry == nil || entry.Parent == nil {
		return nil
	}
	price := regexp.QuoteMeta(`"`+keyOf(f.at.node)+`"`) + `\s*:\s*"?` + pricePattern
	label := labelOf(entry, f, "")
	if label == nil {
		return []source.Locator{{At: "script", Pattern: price}}
	}
	text := jsonText(label)
	if label.Data != numberValue {
		text = strconv.Quote(text)
	}
	name := regexp.QuoteMeta(`"`+keyOf(label)+`"`) + `\s*:\s*` + regexp.QuoteMeta(text)
	return []source.Locator{{At: "script", Pattern: name + `[^{}]*?` + price}, {At: "script", Pattern: price + `[^{}]*?` + name}}
}

// describe names an element in words that an operator can search the page for: its name, id and classes.
func describe(node *html.Node) string {
	text := node.Data
	if id, _ := markup.Text(node, "id"); id != "" && len(id) <= nameMax {
		text += "#" + strings.Join(strings.Fields(id), "#")
	}
	class, _ := markup.Text(node, "class")
	for name := range strings.FieldsSeq(class[:min(len(class), nameMax)]) {
		text += "." + name
	}
	return text
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

// priceMark stands for the price in a text. It is not a character of Unicode.
const priceMark = "\uFDD0"

// template returns a pattern for the text of an element: its words as they are, all numbers free, and the price in a
// group.
func template(around *html.Node, own *spot) string {
	data := own.textNode.Data
	text := values.CollapseSpaces(data)
	left, right, _ := strings.Cut(data, strings.TrimFunc(data, values.IsSpace))
	own.textNode.Data = left + text[:own.start] + priceMark + text[own.end:] + right
	before, behind, _ := strings.Cut(markup.VisibleText(around), priceMark)
	own.textNode.Data = data
	return `(?i)^\s*` + freeNumbers(before) + pricePattern + freeNumbers(behind) + `\s*$`
}

var (
	partPattern = regexp.MustCompile(`\s+|[0-9]+(?:[.,][0-9]+)*|\pL+|[^\s0-9\pL]+`)
	calendar    = strings.Fields("enero febrero marzo abril mayo junio julio agosto septiembre setiembre octubre noviembre diciembre " +
		"lunes martes miercoles jueves viernes sabado domingo")
)

// freeNumbers returns a pattern for a text whose numbers, months and days of the week may change.
func freeNumbers(text string) string {
	return partPattern.ReplaceAllStringFunc(text, func(part string) string {
		isNumber := unicode.IsDigit(rune(part[0]))
		switch {
		case strings.TrimSpace(part) == "":
			return `\s*`
		case isNumber && strings.ContainsAny(part, ".,"):
			return otherPrice
		case isNumber:
			return `[0-9]+`
		case slices.Contains(calendar, values.NormaliseLabel(part)):
			return `\pL+`
		}
		return regexp.QuoteMeta(part)
	})
}

// datePattern is a word for the date of the rates, and behind it the date.
const datePattern = `(?i)(?:actualizad[oa]s?|actualizaci[oó]n|vigentes?|vigencia|fecha|tasas? (?:al|del))[^0-9\pL]{1,3}(?:(?:al|del|desde|el)\s)?([^.]+)`

var (
	dateLabel = regexp.MustCompile(datePattern)
	dateName  = regexp.MustCompile(`(?i)date|fecha|actualiz|as-?of`)
	dateForms = []values.DateForm{values.ISODate, values.DayTime, values.Instant}
)

// date finds the date of the rates: in a page a text behind a word for it, or an attribute whose name says so, in JSON
// the only date. It returns nil if there is none, or if there are several days.
func (s *suggester) date() *source.Date {
	var found []source.Date
	if s.json != nil {
		found = jsonDates(s.json)
	} else {
		found = s.page.dates()
	}
	if len(found) != 1 {
		return nil
	}
	return &found[0]
}

// dates returns a locator for each place of a page that has a date, but one for each day.
func (p *page) dates() (found []source.Date) {
	var places []source.Locator
	for _, run := range p.runs {
		if dateLabel.MatchString(run.text) {
			places = append(places, source.Locator{At: selectorOf(run.node.Parent), Pattern: datePattern})
		}
	}
	for node := range p.document.Descendants() {
		for _, attr := range node.Attr {
			if strings.HasPrefix(attr.Key, "data-") && dateName.MatchString(attr.Key) && markup.IsSelector("["+attr.Key+"]") {
				places = append(places, source.Locator{At: "[" + attr.Key + "]", Attribute: attr.Key})
			}
		}
	}
	days := map[engine.Date]bool{}
	for _, place := range places {
		for _, form := range dateForms {
			if day := p.dayAt(&place, form); !day.IsZero() {
				if !days[day] {
					found = append(found, source.Date{Locator: place, Form: form})
				}
				days[day] = true
				break
			}
		}
	}
	return found
}

// dayAt returns the day that all texts of a locator have, or zero.
func (p *page) dayAt(l *source.Locator, form values.DateForm) (day engine.Date) {
	for _, text := range l.Texts(p.document) {
		other, _, err := values.ParseDate(text, form)
		if err != nil || !day.IsZero() && other != day {
			return 0
		}
		day = other
	}
	return day
}
