package source

import (
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
		"expect": {JSONFields, JSONRows},
	}
}

// speaker says what a value need not name itself, because the definition or its page does.
type speaker struct {
	institution, currency bool
}

func (o *object) extract(s *speaker) Extract {
	e := Extract{Method: requiredWord(o, "method", methods())}
	o.refuseForeignKeys(e.Method)
	switch e.Method {
	case HTMLFields, JSONFields, XLSXRows:
		eachObject(o, "fields", entriesMax, func(field *object) { e.Fields = append(e.Fields, field.field(e.Method, s)) })
		o.checkFields(e.Fields)
	case HTMLRows, JSONRows:
		if part, ok := o.requiredPart("rows"); ok {
			e.Rows = part.rows(e.Method, s)
			part.refuseOtherKeys()
		}
	case TextRegex:
		if part, ok := o.requiredPart("text"); ok {
			e.Text = part.regex(s)
			part.refuseOtherKeys()
		}
	}
	if e.Method == XLSXRows {
		if part, ok := o.requiredPart("sheet"); ok {
			e.Sheet = part.sheet()
			part.refuseOtherKeys()
		}
	}
	e.Date = o.date("date", documentPlaces(e.Method))
	eachObject(o, "expect", entriesMax, func(part *object) {
		e.Expect = append(e.Expect, Expect{Path: part.path("path", true), Value: part.required("value", nameMax)})
	})
	return e
}

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

func (o *object) has(key string) bool {
	_, given := o.fields[key]
	return given
}

func (o *object) requiredPart(key string) (*object, bool) {
	part, given := o.part(key)
	if !given {
		o.wrong("%s is missing; the method needs it", key)
	}
	return part, given
}

func (o *object) field(method Method, s *speaker) Field {
	f := Field{
		Currency: o.currency("currency"), Side: requiredWord(o, "side", sides()),
		Channel: word(o, "channel", "", engine.Channels()), Place: o.place(fieldPlaces(method)),
	}
	if method == XLSXRows {
		f.From = o.day("from")
	}
	if !s.institution {
		o.wrong("belongs to no institution; name one for the source, fields cannot tell it")
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
		r.At = o.requiredSelector("at")
	} else {
		r.At = o.path("at", false)
	}
	if part, ok := o.requiredPart("label"); ok {
		r.Label = part.place(places)
		part.refuseOtherKeys()
	}
	r.Buy, r.Sell, r.Value = o.placeUnder("buy", places), o.placeUnder("sell", places), o.placeUnder("value", places)
	switch {
	case r.Buy == nil && r.Sell == nil && r.Value == nil:
		o.wrong("has neither buy nor sell nor value; say where the values stand")
	case r.Value != nil && (r.Buy != nil || r.Sell != nil):
		o.wrong("has value beside buy or sell; a row has either one value or its sides")
	}
	r.Labels = o.labels("labels", s, r.Value != nil)
	r.Ignore = o.ignored("ignore", r.Labels)
	r.Date = o.date("date", places)
	return r
}

func (o *object) placeUnder(key string, places placeForm) *Place {
	part, given := o.part(key)
	if !given {
		return nil
	}
	place := part.place(places)
	part.refuseOtherKeys()
	return &place
}

// labels reads what each label means. They are normalised here, once: the reader of documents compares them as they are.
func (o *object) labels(key string, s *speaker, withSide bool) map[string]Target {
	labels, written := map[string]Target{}, map[string]string{}
	eachKey(o, key, func(part *object, name string) {
		entry, _ := part.part(name)
		label := Normalise(name)
		if first, twice := written[label]; twice {
			entry.wrong("is the same label as %q once blanks, accents and capitals count no more; keep one", first)
		}
		if label == "" || len(label) > nameMax {
			entry.wrong("is no label; a label has 1 to %d bytes besides blanks and marks", nameMax)
		}
		written[label] = name
		labels[label] = entry.target(s, withSide)
		entry.refuseOtherKeys()
	})
	if len(labels) == 0 {
		o.wrong("%s is missing or empty; say what each label means", key)
	}
	return labels
}

func (o *object) target(s *speaker, withSide bool) Target {
	t := Target{
		Institution: o.optionalID("institution"), Currency: o.currency("currency"),
		Channel: word(o, "channel", "", engine.Channels()), Side: word(o, "side", "", sides()),
	}
	switch {
	case t.Institution == "" && !s.institution:
		o.wrong("names no institution; name it here or for the source")
	case t.Currency == "" && !s.currency:
		o.wrong("names no currency; name it here or for the page")
	case withSide && t.Side == "":
		o.wrong("names no side, but the rows have one value each; say which side it is")
	case !withSide && t.Side != "":
		o.wrong("names a side, but the rows tell their sides themselves; take it out")
	}
	return t
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
	pattern := o.pattern("pattern")
	if pattern == nil {
		o.wrong("pattern is missing or empty; write one with the groups (?P<buy>...) and (?P<sell>...)")
		return t
	}
	t.Pattern = pattern.String()
	names := groups(pattern)
	for _, name := range names {
		if !slices.Contains([]string{"buy", "sell", "label"}, name) {
			o.wrong("pattern has the group %.40q; known are buy, sell and label", name)
		}
	}
	if !slices.Contains(names, "buy") && !slices.Contains(names, "sell") {
		o.wrong("pattern has neither the group buy nor the group sell; write (?P<buy>...)")
	}
	if slices.Contains(names, "label") {
		t.Labels = o.labels("labels", s, false)
		return t
	}
	if !s.institution || !s.currency {
		o.wrong("pattern has no group label, so the source must name its institution and the page its currency")
	}
	return t
}

// groups are the names of a pattern's groups; one that stands twice is there twice.
func groups(pattern *regexp.Regexp) []string {
	return slices.DeleteFunc(pattern.SubexpNames(), func(name string) bool { return name == "" })
}

func (o *object) sheet() *Sheet {
	return &Sheet{
		Name: Normalise(o.text("name", nameMax)),
		Year: o.heading("year"), Month: o.heading("month"), Day: o.heading("day"),
	}
}

// heading takes the heading of a column as it is compared: normalised.
func (o *object) heading(key string) string {
	text := o.required(key, nameMax)
	heading := Normalise(text)
	if text != "" && heading == "" {
		o.wrong("%s has no letters and digits", key)
	}
	return heading
}

func (o *object) date(key string, places placeForm) *Date {
	part, given := o.part(key)
	if !given {
		return nil
	}
	date := &Date{Form: requiredWord(part, "form", dateForms()), Place: part.place(places)}
	part.refuseOtherKeys()
	return date
}
