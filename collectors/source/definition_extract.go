package source

import (
	"maps"
	"regexp"
	"slices"

	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/jsonfile"
)

func sideNames() []Side { return []Side{BuySide, SellSide, BothSides} }

// pageDefaults says which keys may be omitted where a quote is described, because they are given for the whole page.
type pageDefaults struct {
	institution bool              // the page or the definition names the institution
	currency    bool              // the page names the currency
	labels      map[string]Target // for rows of all pages: the label of a row, and which quote it stands for
}

func (o *object) extract(defaults *pageDefaults) Extract {
	e := Extract{Method: jsonfile.RequiredEnum(o.Object, "method", []Method{HTMLFields, HTMLRows, JSONFields, JSONRows, TextRegex, XLSXRows})}
	switch e.Method {
	case "":
		o.DiscardRest() // the other keys depend on the method
	case HTMLFields, JSONFields, XLSXRows:
		o.each("fields", entriesMax, func(field *object) { e.Fields = append(e.Fields, field.field(e.Method, defaults)) })
		o.checkFields(e.Fields)
	case HTMLRows, JSONRows:
		o.requiredPart("rows", func(part *object) { e.Rows = part.rows(e.Method, defaults) })
	case TextRegex:
		o.requiredPart("text", func(part *object) { e.Text = part.regex(defaults) })
	}
	if e.Method == XLSXRows {
		o.requiredPart("sheet", func(part *object) {
			e.Sheet = &Sheet{
				Name: values.NormaliseLabel(part.shortText("name")), Year: part.Required("year", "", part.heading),
				Month: part.Required("month", "", part.heading), Day: part.Required("day", "", part.heading),
			}
		})
	}
	if e.Method != XLSXRows {
		e.Date = o.date("date", locatorFormsOf(e.Method).document, false)
	}
	if e.Method != XLSXRows && e.Method != TextRegex {
		o.each("expect", entriesMax, func(part *object) { e.Expect = append(e.Expect, part.expect(e.Method)) })
	}
	return e
}

func (o *object) expect(method Method) Expect {
	if method == JSONFields || method == JSONRows {
		return Expect{Path: o.Required("path", hintPath, o.path), Value: o.Required("value", "", o.shortText)}
	}
	return Expect{
		At:      o.Required("at", hintSelector, o.selector),
		Pattern: o.Required("pattern", "; write one that fits the text of a good page, as (?i)euro", o.patternText),
	}
}

// Advice in errors if a definition file does not say where a text is.
const (
	hintPath     = "; write a path as d.results[0].rate"
	hintSelector = "; say which elements are meant, as a CSS selector"
)

func (o *object) field(method Method, defaults *pageDefaults) Field {
	f := Field{
		Currency: o.currency("currency"), Side: jsonfile.RequiredEnum(o.Object, "side", sideNames()),
		Channel: jsonfile.Enum(o.Object, "channel", "", engine.Channels()), Locator: o.locator(locatorFormsOf(method).field),
	}
	if method == XLSXRows {
		f.From = o.day("from")
	}
	if !defaults.institution {
		o.Errorf("has no institution; name one for the source or the page")
	}
	if f.Currency == "" && !defaults.currency {
		o.Errorf("has no currency; name it here or for the page")
	}
	return f
}

// checkFields checks the list "fields", whose entries each say where one price is. It reports an error if one entry has
// both sides (BothSides) of a quote, and another entry a single side of the same quote.
func (o *object) checkFields(fields []Field) {
	if len(fields) == 0 {
		o.Errorf("fields is missing or empty; say where the values are")
	}
	type quote struct {
		currency string
		channel  engine.Channel
	}
	isBoth := map[quote]bool{}
	for i := range fields {
		key, both := quote{fields[i].Currency, fields[i].Channel}, fields[i].Side == BothSides
		if previous, known := isBoth[key]; known && previous != both {
			o.Errorf("fields[%d]: %s has a field for both sides and one for a single side; keep one of the two ways", i, key.currency)
		}
		isBoth[key] = both
	}
}

func (o *object) rows(method Method, defaults *pageDefaults) *Rows {
	form := locatorFormsOf(method).row
	r := &Rows{Min: int(o.Number("min", 1, 1, minimumRowsMax))}
	if method == HTMLRows {
		r.At = o.Required("at", hintSelector, o.selector)
	} else {
		r.At = o.path("at")
	}
	o.requiredPart("label", func(part *object) { r.Label = part.locator(form) })
	o.part("buy", func(part *object) { r.Buy = new(part.locator(form)) })
	o.part("sell", func(part *object) { r.Sell = new(part.locator(form)) })
	o.part("value", func(part *object) { r.Value = new(part.locator(form)) })
	switch {
	case r.Buy == nil && r.Sell == nil && r.Value == nil:
		o.Errorf("has neither buy nor sell nor value; say where the values are")
	case r.Value != nil && (r.Buy != nil || r.Sell != nil):
		o.Errorf("has value beside buy or sell; a row has either one value or its sides")
	}
	labels := o.labels("labels")
	r.Ignore = o.ignoredLabels("ignore", labels)
	r.Labels = o.mergeLabels(labels, defaults, r.Value != nil, r.Ignore)
	if method == HTMLRows {
		r.Unless = o.patternText("unless")
	}
	r.Date = o.date("date", form, true)
	return r
}

// labels reads a map with a key for each label, which identifies rows, such as the name of a bank. The value (Target)
// says which quote the label stands for. labels normalises the labels. It does not check the values; mergeLabels does
// so for each page.
func (o *object) labels(key string) map[string]Target {
	labels, names := map[string]Target{}, map[string]string{}
	o.EachKey(key, entriesMax, func(part *jsonfile.Object, name string) {
		(&object{part}).part(name, func(entry *object) {
			label := values.NormaliseLabel(name)
			if first, exists := names[label]; exists {
				entry.Errorf("is the same label as %q without spaces, accents and capitals; keep one", first)
			}
			if label == "" || len(label) > nameMax {
				entry.Errorf("is not a label; a label has 1 to %d bytes without spaces and marks", nameMax)
			}
			names[label] = name
			labels[label] = Target{
				Institution: entry.id("institution"), Currency: entry.currency("currency"),
				Channel: jsonfile.Enum(entry.Object, "channel", "", engine.Channels()), Side: jsonfile.Enum(entry.Object, "side", "", sideNames()),
			}
		})
	})
	return labels
}

// mergeLabels adds the labels of the whole definition to the labels of a page. It does not add labels that the page
// itself defines or ignores. It reports an error for a label if it is not clear which quote it stands for on this page.
func (o *object) mergeLabels(labels map[string]Target, defaults *pageDefaults, withSide bool, ignored []string) map[string]Target {
	for label, target := range defaults.labels {
		if _, known := labels[label]; !known && !slices.Contains(ignored, label) {
			labels[label] = target
		}
	}
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		if problem := defaults.targetProblem(labels[label], withSide); problem != "" {
			o.Errorf("the label %.40q, here or of the file, %s", label, problem)
		}
	}
	if len(labels) == 0 {
		o.Errorf("labels is missing or empty, here and for the whole file; say what each label means")
	}
	return labels
}

// targetProblem returns what is missing or not allowed in the description of a quote, or "". withSide means that the
// description must name a side (buy or sell).
func (defaults *pageDefaults) targetProblem(t Target, withSide bool) string {
	switch {
	case t.Institution == "" && !defaults.institution:
		return "names no institution; name it here, for the page or for the source"
	case t.Currency == "" && !defaults.currency:
		return "names no currency; name it here or for the page"
	case withSide && t.Side == "":
		return "names no side, but the rows have one value each; say which side it is"
	case !withSide && t.Side != "":
		return "names a side, but only rows with the key value need one; remove it"
	}
	return ""
}

func (o *object) ignoredLabels(key string, labels map[string]Target) []string {
	var ignored []string
	for _, name := range jsonfile.List[string](o.Object, key, entriesMax) {
		label := values.NormaliseLabel(name)
		_, exists := labels[label]
		switch {
		case label == "":
			o.Errorf("%s has a label without letters and digits; remove it", key)
		case exists || slices.Contains(ignored, label):
			o.Errorf("%s has %.80q, which is already among the labels or here; keep one", key, name)
		}
		ignored = append(ignored, label)
	}
	return ignored
}

func (o *object) regex(defaults *pageDefaults) *Text {
	t := &Text{At: o.selector("at"), Min: int(o.Number("min", 1, 1, minimumRowsMax))}
	t.Pattern = o.Required("pattern", "; write one with the groups (?P<buy>...) and (?P<sell>...)", o.patternText)
	if t.Pattern == "" {
		return t
	}
	t.Unless = o.patternText("unless")
	names := regexp.MustCompile(t.Pattern).SubexpNames()
	for _, name := range names {
		if !slices.Contains([]string{"", "buy", "sell", "label"}, name) {
			o.Errorf("pattern has the group %.40q; known are buy, sell and label", name)
		}
	}
	if !slices.Contains(names, "buy") && !slices.Contains(names, "sell") {
		o.Errorf("pattern has neither the group buy nor the group sell; write (?P<buy>...)")
	}
	if slices.Contains(names, "label") {
		t.Labels = o.mergeLabels(o.labels("labels"), defaults, false, nil)
		return t
	}
	if !defaults.institution || !defaults.currency {
		o.Errorf("pattern has no group label, so the source or the page must name the institution, and the page the currency")
	}
	return t
}

// date reads where a date is. inRow means that it is the date of one row, which may be optional.
func (o *object) date(key string, form locatorForm, inRow bool) (date *Date) {
	forms := []values.DateForm{values.ISODate, values.DayMonthYear, values.DayTime, values.SpanishDate, values.ISOInstant, values.Instant}
	o.part(key, func(part *object) {
		date = &Date{Form: jsonfile.RequiredEnum(part.Object, "form", forms), Locator: part.locator(form)}
		if inRow {
			date.Optional = part.Bool("optional", false)
		}
	})
	return date
}
