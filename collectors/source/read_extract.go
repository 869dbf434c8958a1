package source

import (
	"maps"
	"regexp"
	"slices"

	"github.com/tasard/tasard/engine"
)

// methods is the closed list of extractors.
func methods() []Method {
	return []Method{HTMLFields, HTMLRows, JSONFields, JSONRows, TextRegex, XLSXRows}
}

func sides() []Side { return []Side{BuySide, SellSide, BothSides} }

func dateForms() []DateForm {
	return []DateForm{ISODate, DayMonthYear, DayTime, SpanishDate, ISOMoment}
}

// extractKeys are the keys of an extract besides method, and the methods that they belong to.
func extractKeys() map[string][]Method {
	return map[string][]Method{
		"fields": {HTMLFields, JSONFields, XLSXRows},
		"rows":   {HTMLRows, JSONRows},
		"text":   {TextRegex},
		"sheet":  {XLSXRows},
		"date":   {HTMLFields, HTMLRows, JSONFields, JSONRows, TextRegex},
		"expect": {HTMLFields, HTMLRows, JSONFields, JSONRows},
	}
}

// speaker says what a value need not name itself, because the definition or its page does.
type speaker struct {
	institution, currency bool
	labels                map[string]Target // those of the file, for every page
}

func (o *object) extract(s *speaker) Extract {
	e := Extract{Method: neededWord(o, "method", methods())}
	o.refuseForeignKeys(e.Method)
	switch e.Method {
	case HTMLFields, JSONFields, XLSXRows:
		eachObject(o, "fields", entriesMax, func(field *object) { e.Fields = append(e.Fields, field.field(e.Method, s)) })
		o.checkFields(e.Fields)
	case HTMLRows, JSONRows:
		o.needPart("rows", func(part *object) { e.Rows = part.rows(e.Method, s) })
	case TextRegex:
		o.needPart("text", func(part *object) { e.Text = part.regex(s) })
	}
	if e.Method == XLSXRows {
		o.needPart("sheet", func(part *object) {
			e.Sheet = &Sheet{
				Name: Normalise(part.name("name")), Year: part.needed("year", "", part.heading),
				Month: part.needed("month", "", part.heading), Day: part.needed("day", "", part.heading),
			}
		})
	}
	e.Date = o.date("date", documentPlaces(e.Method))
	eachObject(o, "expect", entriesMax, func(part *object) { e.Expect = append(e.Expect, part.expect(e.Method)) })
	return e
}

func (o *object) expect(method Method) Expect {
	if method == JSONFields || method == JSONRows {
		return Expect{Path: o.needed("path", hintPath, o.path), Value: o.needed("value", "", o.name)}
	}
	return Expect{
		At:      o.needed("at", hintSelector, o.selector),
		Pattern: o.needed("pattern", "; write one that fits the text of a good page, as (?i)euro", o.patternText),
	}
}

// The way out where a place is missing.
const (
	hintPath     = "; write a path as d.results[0].rate"
	hintSelector = "; say which elements are meant, as a CSS selector"
)

// refuseForeignKeys reports the keys that belong to other methods and takes them away, so that they are reported once.
func (o *object) refuseForeignKeys(method Method) {
	if method == "" {
		clear(o.fields)
		return
	}
	for _, key := range []string{"fields", "rows", "text", "sheet", "date", "expect"} {
		if !slices.Contains(extractKeys()[key], method) && o.has(key) {
			delete(o.fields, key)
			o.wrong("%s does not belong to the method %s; take it out, or use one of %q", key, method, extractKeys()[key])
		}
	}
}

func (o *object) field(method Method, s *speaker) Field {
	f := Field{
		Currency: o.currency("currency"), Side: neededWord(o, "side", sides()),
		Channel: word(o, "channel", "", engine.Channels()), Place: o.place(fieldPlaces(method)),
	}
	if method == XLSXRows {
		f.From = o.day("from")
	}
	if !s.institution {
		o.wrong("belongs to no institution; name one for the source or the page, fields cannot tell it")
	}
	if f.Currency == "" && !s.currency {
		o.wrong("has no currency; name it here or for the page")
	}
	return f
}

// checkFields holds the fields of a page together. Several of one side are alternatives; one value for both sides beside
// one for a single side is a contradiction.
func (o *object) checkFields(fields []Field) {
	if len(fields) == 0 {
		o.wrong("fields is missing or empty; say where the values stand")
	}
	type quote struct {
		currency string
		channel  engine.Channel
	}
	both, single := map[quote]bool{}, map[quote]bool{}
	for i := range fields {
		key := quote{fields[i].Currency, fields[i].Channel}
		if fields[i].Side == BothSides {
			both[key] = true
		} else {
			single[key] = true
		}
		if both[key] && single[key] {
			o.wrong("fields[%d]: %s has a field for both sides and one for a single side; keep one of the two ways", i, key.currency)
		}
	}
}

func (o *object) rows(method Method, s *speaker) *Rows {
	places := rowPlaces(method)
	r := &Rows{Min: int(o.number("min", 1, 1, minimumRowsMax))}
	if method == HTMLRows {
		r.At = o.needed("at", hintSelector, o.selector)
	} else {
		r.At = o.path("at")
	}
	o.needPart("label", func(part *object) { r.Label = part.place(places) })
	o.part("buy", func(part *object) { r.Buy = new(part.place(places)) })
	o.part("sell", func(part *object) { r.Sell = new(part.place(places)) })
	o.part("value", func(part *object) { r.Value = new(part.place(places)) })
	switch {
	case r.Buy == nil && r.Sell == nil && r.Value == nil:
		o.wrong("has neither buy nor sell nor value; say where the values stand")
	case r.Value != nil && (r.Buy != nil || r.Sell != nil):
		o.wrong("has value beside buy or sell; a row has either one value or its sides")
	}
	own := o.labels("labels", s, r.Value != nil)
	r.Ignore = o.ignored("ignore", own)
	r.Labels = o.withShared(own, s, r.Value != nil, r.Ignore)
	if method == HTMLRows {
		r.Unless = o.patternText("unless")
	}
	r.Date = o.date("date", places)
	return r
}

// labels reads what each label means. They are normalised here, once: the reader of documents compares them as they are. Without
// a speaker it is not checked yet that they say enough.
func (o *object) labels(key string, s *speaker, withSide bool) map[string]Target {
	labels, written := map[string]Target{}, map[string]string{}
	eachKey(o, key, func(part *object, name string) {
		part.part(name, func(entry *object) {
			label := Normalise(name)
			if first, twice := written[label]; twice {
				entry.wrong("is the same label as %q once blanks, accents and capitals count no more; keep one", first)
			}
			if label == "" || len(label) > nameMax {
				entry.wrong("is no label; a label has 1 to %d bytes besides blanks and marks", nameMax)
			}
			written[label] = name
			labels[label] = entry.target(s, withSide)
		})
	})
	return labels
}

// sharedLabels reads the labels of a whole file, which all its pages know. Whether a target says enough depends on the page.
func (o *object) sharedLabels() map[string]Target {
	if !o.has("labels") {
		return nil
	}
	labels := o.labels("labels", nil, false)
	if len(labels) == 0 {
		o.wrong("labels is empty; say what each label means, or take it out")
	}
	return labels
}

// withShared adds the labels of the file to those of the page, which win; so does what the page ignores.
func (o *object) withShared(own map[string]Target, s *speaker, withSide bool, ignored []string) map[string]Target {
	for _, label := range slices.Sorted(maps.Keys(s.labels)) {
		if _, known := own[label]; known || slices.Contains(ignored, label) {
			continue
		}
		own[label] = s.labels[label]
		if problem := s.lacks(own[label], withSide); problem != "" {
			o.wrong("the label %.40q of the file %s", label, problem)
		}
	}
	if len(own) == 0 {
		o.wrong("labels is missing or empty, here and for the whole file; say what each label means")
	}
	return own
}

func (o *object) target(s *speaker, withSide bool) Target {
	t := Target{
		Institution: o.id("institution"), Currency: o.currency("currency"),
		Channel: word(o, "channel", "", engine.Channels()), Side: word(o, "side", "", sides()),
	}
	if s == nil {
		return t
	}
	if problem := s.lacks(t, withSide); problem != "" {
		o.wrong("%s", problem)
	}
	return t
}

// lacks is what a label's target does not say, or says too much, for the page that it stands on.
func (s *speaker) lacks(t Target, withSide bool) string {
	switch {
	case t.Institution == "" && !s.institution:
		return "names no institution; name it here, for the page or for the source"
	case t.Currency == "" && !s.currency:
		return "names no currency; name it here or for the page"
	case withSide && t.Side == "":
		return "names no side, but the rows have one value each; say which side it is"
	case !withSide && t.Side != "":
		return "names a side, but the rows tell their sides themselves; take it out"
	}
	return ""
}

// ignored reads the labels that are known and mean no quote.
func (o *object) ignored(key string, known map[string]Target) []string {
	var ignored []string
	for _, name := range list[string](o, key, entriesMax) {
		label := Normalise(name)
		_, quoted := known[label]
		switch {
		case label == "":
			o.wrong("%s has a label without letters and digits; take it out", key)
		case quoted || slices.Contains(ignored, label):
			o.wrong("%s has %.80q, which stands among the labels or here already; keep one", key, name)
		}
		ignored = append(ignored, label)
	}
	return ignored
}

func (o *object) regex(s *speaker) *Text {
	t := &Text{At: o.selector("at"), Min: int(o.number("min", 1, 1, minimumRowsMax))}
	t.Pattern = o.needed("pattern", "; write one with the groups (?P<buy>...) and (?P<sell>...)", o.patternText)
	if t.Pattern == "" {
		return t
	}
	t.Unless = o.patternText("unless")
	names := regexp.MustCompile(t.Pattern).SubexpNames()
	for _, name := range names {
		if !slices.Contains([]string{"", "buy", "sell", "label"}, name) {
			o.wrong("pattern has the group %.40q; known are buy, sell and label", name)
		}
	}
	if !slices.Contains(names, "buy") && !slices.Contains(names, "sell") {
		o.wrong("pattern has neither the group buy nor the group sell; write (?P<buy>...)")
	}
	if slices.Contains(names, "label") {
		t.Labels = o.withShared(o.labels("labels", s, false), s, false, nil)
		return t
	}
	if !s.institution || !s.currency {
		o.wrong("pattern has no group label, so the source or the page must name the institution, and the page the currency")
	}
	return t
}

func (o *object) date(key string, places placeForm) (date *Date) {
	o.part(key, func(part *object) {
		date = &Date{Form: neededWord(part, "form", dateForms()), Place: part.place(places)}
	})
	return date
}
