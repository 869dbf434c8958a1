package suggest

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"

	"github.com/tasard/tasard/collectors/markup"
	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

// datePattern is a word for the date of the rates, and behind it the date.
const datePattern = `(?i)(?:actualizad[oa]s?|actualizaci[oó]n|vigentes?|vigencia|fecha|tasas? (?:al|del))[^0-9\pL]{1,3}(?:(?:al|del|desde|el)\s)?([^.]+)`

var (
	dateLabel = regexp.MustCompile(datePattern)
	dateName  = regexp.MustCompile(`(?i)date|fecha|actualiz|as-?of`)
	dateForms = []values.DateForm{values.ISODate, values.DayTime, values.Instant}
)

// date finds the date of the rates: in a page a text behind a word for it, or an attribute whose name says so, in JSON
// the only date. It returns nil if there is none, or if there are several days.
func (s *suggester) date() *date {
	var found []date
	if s.json != nil {
		found = jsonDates(s.json, nil)
	} else {
		found = s.page.dates()
	}
	if len(found) != 1 {
		return nil
	}
	return &found[0]
}

// dates returns a locator for each place of a page that has a date, but one for each day.
func (p *page) dates() (found []date) {
	days := map[engine.Date]bool{}
	try := func(l locator) {
		for _, form := range dateForms {
			d := date{l, string(form)}
			if day := p.dayAt(&d); !day.IsZero() {
				if !days[day] {
					found = append(found, d)
				}
				days[day] = true
				return
			}
		}
	}
	for _, run := range p.runs {
		if selector := selectorOf(run.node.Parent); selector != "" && dateLabel.MatchString(values.NormaliseSpaces(run.text)) {
			try(locator{At: selector, Pattern: datePattern})
		}
	}
	for node := range p.document.Descendants() {
		for _, attr := range node.Attr {
			if selector := "[" + attr.Key + "]"; node.Type == html.ElementNode && strings.HasPrefix(attr.Key, "data-") && dateName.MatchString(attr.Key) && markup.IsSelector(selector) {
				try(locator{At: selector, Attribute: attr.Key})
			}
		}
	}
	return found
}

// dayAt returns the day that all texts of a locator have, or zero.
func (p *page) dayAt(d *date) (day engine.Date) {
	for _, node := range markup.Find(p.document, d.At) {
		text, ok := markup.Text(node, d.Attribute)
		if !ok {
			continue
		}
		texts := []string{text}
		if d.Pattern != "" {
			texts = nil
			for _, match := range dateLabel.FindAllStringSubmatch(values.NormaliseSpaces(text), numbersMax) {
				texts = append(texts, match[1])
			}
		}
		for _, text := range texts {
			other, _, err := values.ParseDate(text, values.DateForm(d.Form))
			if err != nil || !day.IsZero() && other != day {
				return 0
			}
			day = other
		}
	}
	return day
}

// jsonDates finds the dates of a JSON document, but for those in lists of several entries.
func jsonDates(v *value, at path) (found []date) {
	for _, m := range v.members {
		found = append(found, jsonDates(m.value, append(at[:len(at):len(at)], step{key: m.key, value: m.value}))...)
	}
	if len(v.items) == 1 {
		found = append(found, jsonDates(v.items[0], append(at[:len(at):len(at)], step{length: 1, value: v.items[0]}))...)
	}
	for _, form := range dateForms {
		if _, _, err := values.ParseDate(v.text(), form); err == nil && len(at) > 0 {
			return append(found, date{locator{At: at.String()}, string(form)})
		}
	}
	return found
}
