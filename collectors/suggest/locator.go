package suggest

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/tasard/tasard/collectors/markup"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/collectors/values"
)

// htmlFields reads each price by the names of its element, or by the words around it.
func (s *suggester) htmlFields() *extract {
	if s.page == nil {
		return nil
	}
	e := &extract{Method: string(source.HTMLFields)}
	for i := range s.found {
		f := &s.found[i]
		found := slices.IndexFunc(s.locators(f), func(l locator) bool { return s.page.reads(&l, f.at.value) })
		if found < 0 {
			s.note("%s %s %s: no selector finds it alone", f.Currency, f.Side, f.Price)
			return nil
		}
		e.Fields = append(e.Fields, field{f.Currency, f.Side, f.Channel, s.locators(f)[found]})
	}
	return e
}

// reads reports whether a locator finds a price, and no other one.
func (p *page) reads(l *locator, price cents) bool {
	var pattern *regexp.Regexp
	if l.Pattern != "" {
		var err error
		if pattern, err = regexp.Compile(l.Pattern); err != nil {
			return false
		}
	}
	count := 0
	for _, node := range markup.Find(p.document, l.At) {
		text, ok := markup.Text(node, l.Attribute)
		if !ok {
			continue
		}
		texts := []string{text}
		if pattern != nil {
			texts = nil
			for _, match := range pattern.FindAllStringSubmatch(values.NormaliseSpaces(text), numbersMax) {
				texts = append(texts, match[len(match)-1])
			}
		}
		for _, text := range texts {
			found, err := values.ParsePrice(text, values.AnyMark, decimalsMax)
			value, isPrice := centsOf(found)
			if err != nil || !isPrice || value != price {
				return false
			}
			count++
		}
	}
	return count > 0
}

// Patterns for a price in a text.
const (
	pricePattern = `([0-9]+(?:[.,][0-9]+)*)`
	otherPrice   = `(?:[0-9]+(?:[.,][0-9]+)*|-|N/A)`
	lonePrice    = `^(?:\P{N}*[^\p{N}.,−–-])?` + pricePattern + `(?:\s?(?:DOP|RD\s?\$|\$))?$`
)

// locators returns the ways to find a price, the most lasting one first: by a name that says the side, an attribute, or
// by the words in an element around it.
func (s *suggester) locators(f *Finding) (all []locator) {
	at := f.at
	switch {
	case at.script != "":
		return s.scriptLocators(at)
	case at.inScript:
		return s.scriptJSONLocators(f)
	}
	selectors := namesOf(at.node)
	if len(values.Words(at.attribute)) > 0 {
		selectors = append([]string{"[" + at.attribute + "]"}, selectors...)
	}
	for _, selector := range selectors {
		if side, _ := only(values.Words(selector), values.AboutSide); side.Meaning == string(f.Side) {
			all = append(all, locator{At: selector, Attribute: at.attribute}, locator{At: selector, Attribute: at.attribute, Pattern: lonePrice})
		}
	}
	if at.attribute != "" {
		for _, selector := range selectors {
			all = append(all, locator{At: selector, Attribute: at.attribute})
		}
		return all
	}
	for around := at.node; around != nil && around.DataAtom != atom.Html && around.DataAtom != atom.Body; around = around.Parent {
		text := values.NormaliseSpaces(markup.VisibleText(around))
		if len(text) > aroundMax {
			break
		}
		words := append(s.page.wordsIn(around), s.page.names(around)...)
		lacksSide := at.side.Text != "" && !has(words, values.AboutSide)
		lacksCurrency := at.currency.Text != "" && !has(words, values.AboutCurrency) && !has(s.page.title, values.AboutCurrency)
		if selector := selectorOf(around); selector != "" && !lacksSide && !lacksCurrency {
			if pattern := s.page.template(around, text, at); pattern != "" {
				all = append(all, locator{At: selector, Pattern: pattern})
			}
		}
	}
	return all
}

// aroundMax is the size of a text whose words a pattern repeats.
const aroundMax = 500

func (s *suggester) scriptLocators(at *spot) []locator {
	name := strings.TrimSpace(at.script)
	name = name[strings.LastIndexAny(name, "\n;")+1:]
	return []locator{{At: "script", Pattern: regexp.QuoteMeta(name) + `\s*[=:(]\s*(?:[A-Za-z]{1,20}\()?["'` + "`" + `]?\s*(?:RD\$|\$)?\s?` +
		`([0-9]+(?:\.[0-9]+|,[0-9]{2})?)(?:\s?DOP)?["'` + "`" + `)\];}]`}}
}

// scriptJSONLocators returns patterns for a price of a JSON value in a script: the member with the label is before the
// price in its object, or behind it.
func (s *suggester) scriptJSONLocators(f *Finding) (all []locator) {
	last := len(f.at.path) - 1
	if last < 1 {
		return nil
	}
	price := regexp.QuoteMeta(`"`+f.at.path[last].key+`"`) + `\s*:\s*"?` + pricePattern
	label, ok := s.labelOf(f.at.path[last-1].value, f, "")
	if !ok {
		return []locator{{At: "script", Pattern: price}}
	}
	name := regexp.QuoteMeta(`"`+label.key+`"`) + `\s*:\s*` + regexp.QuoteMeta(label.value.Raw)
	return []locator{{At: "script", Pattern: name + `[^{}]*?` + price}, {At: "script", Pattern: price + `[^{}]*?` + name}}
}

// namesOf returns a selector for the id and for each class of an element.
func namesOf(node *html.Node) (selectors []string) {
	id, _ := markup.Text(node, "id")
	class, _ := markup.Text(node, "class")
	candidates := []string{"#" + id}
	for name := range strings.FieldsSeq(class[:min(len(class), nameMax)]) {
		candidates = append(candidates, "."+name)
	}
	for _, selector := range candidates {
		if len(selector) > 1 && strings.Trim(selector[1:], nameCharacters) == "" && markup.IsSelector(selector) {
			selectors = append(selectors, selector)
		}
	}
	return selectors
}

const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// selectorOf returns a selector of an element: its name with its id or its classes.
func selectorOf(node *html.Node) string {
	names := namesOf(node)
	if len(names) > 0 && strings.HasPrefix(names[0], "#") {
		names = names[:1]
	}
	selector := node.Data + strings.Join(names, "")
	if !markup.IsSelector(selector) {
		return ""
	}
	return selector
}

// template returns a pattern for the text of an element: its words as they are, all numbers free, and the price in a
// group. It returns "" if the price is not in the text.
func (p *page) template(around *html.Node, text string, own *spot) string {
	want := own.text[strings.IndexAny(own.text, "0123456789"):]
	skip, seen, mine := p.before(around, own), 0, -1
	var numbers [][]int
	for _, at := range numberPattern.FindAllStringSubmatchIndex(text, numbersMax) {
		number := text[at[4]:at[5]]
		isOwn := strings.HasPrefix(want, number)
		if !isOwn && !strings.ContainsAny(number, ".,") {
			continue
		}
		if isOwn {
			if seen == skip {
				mine = len(numbers)
			}
			seen++
		}
		numbers = append(numbers, at[4:6])
	}
	if mine < 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(`(?i)^\s*`)
	position := 0
	for i, at := range numbers {
		writeLiteral(&b, text[position:at[0]])
		if i == mine {
			b.WriteString(pricePattern)
		} else {
			b.WriteString(otherPrice)
		}
		position = at[1]
	}
	writeLiteral(&b, text[position:])
	b.WriteString(`\s*$`)
	return b.String()
}

// before returns how many equal prices stand before a price in an element.
func (p *page) before(around *html.Node, own *spot) (count int) {
	for _, t := range p.tokensOf(around) {
		switch {
		case t.spot == own:
			return count
		case t.spot != nil && t.spot.price == own.price:
			count++
		}
	}
	return count
}

var (
	literalPattern = regexp.MustCompile(`\s+|[0-9]+|\pL+|[^\s0-9\pL]+`)
	calendar       = strings.Fields("enero febrero marzo abril mayo junio julio agosto septiembre setiembre octubre noviembre diciembre " +
		"lunes martes miercoles jueves viernes sabado domingo")
)

// writeLiteral writes a pattern for a text whose numbers, months and days of the week may change.
func writeLiteral(b *strings.Builder, text string) {
	for _, part := range literalPattern.FindAllString(text, -1) {
		switch {
		case strings.TrimSpace(part) == "":
			b.WriteString(`\s*`)
		case unicode.IsDigit(rune(part[0])):
			b.WriteString(`[0-9]+`)
		case slices.Contains(calendar, values.NormaliseLabel(part)):
			b.WriteString(`\pL+`)
		default:
			b.WriteString(regexp.QuoteMeta(part))
		}
	}
}
