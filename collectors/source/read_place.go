package source

import (
	"regexp"
	"strings"
)

// atForm is what the key at of a place is.
type atForm int

const (
	atSelector atForm = iota
	atPath
	atHeading
)

// placeForm is what a place may say, which depends on the kind of document and on what the place is below.
type placeForm struct {
	at        atForm
	optional  bool // at may be left out: the row itself, or the whole text
	column    bool // the cell of a column of the row; at is then below the cell
	attribute bool
}

// fieldPlaces are the places of fields, which stand in the document itself.
func fieldPlaces(method Method) placeForm {
	switch method {
	case JSONFields:
		return placeForm{at: atPath}
	case XLSXRows:
		return placeForm{at: atHeading}
	}
	return placeForm{at: atSelector, attribute: true}
}

// rowPlaces are the places below a row.
func rowPlaces(method Method) placeForm {
	if method == JSONRows {
		return placeForm{at: atPath}
	}
	return placeForm{at: atSelector, optional: true, column: true, attribute: true}
}

// documentPlaces are the places of a date of the whole document.
func documentPlaces(method Method) placeForm {
	switch method {
	case JSONFields, JSONRows:
		return placeForm{at: atPath}
	case TextRegex:
		return placeForm{at: atSelector, optional: true, attribute: true}
	}
	return placeForm{at: atSelector, attribute: true}
}

// place reads where a text stands; the object may have other keys besides.
func (o *object) place(form placeForm) Place {
	var p Place
	switch form.at {
	case atSelector:
		p.At = o.selector("at")
	case atPath:
		p.At = o.path("at", true)
	case atHeading:
		p.At = o.heading("at")
	}
	if form.attribute {
		p.Attribute = o.text("attribute", attributeNameMax)
	}
	if form.column {
		p.Column = o.column("column")
	}
	if pattern := o.pattern("pattern"); pattern != nil {
		p.Pattern = pattern.String()
		if pattern.NumSubexp() > 1 {
			o.wrong("pattern has %d groups, but only the first one counts; write the others as (?:...)", pattern.NumSubexp())
		}
	}
	switch {
	case form.at == atSelector && !form.optional && p.At == "":
		o.wrong("at is missing or empty; say which element is meant, as a CSS selector")
	case form.optional && p == (Place{}):
		o.wrong("says nothing; give at, a pattern, or what else tells where the text stands")
	}
	return p
}

// column takes the heading of a column, normalised; "" when the key is not there.
func (o *object) column(key string) string {
	text := o.text(key, nameMax)
	heading := Normalise(text)
	if text != "" && heading == "" {
		o.wrong("%s has no letters and digits", key)
	}
	return heading
}

func (o *object) requiredSelector(key string) string {
	selector := o.selector(key)
	if selector == "" {
		o.wrong("%s is missing or empty; say which elements are meant, as a CSS selector", key)
	}
	return selector
}

// path takes a path into JSON: names joined by dots, each with any number of [n] behind it.
func (o *object) path(key string, required bool) string {
	path := o.text(key, textMax)
	switch {
	case path == "" && required:
		o.wrong("%s is missing or empty; write a path as d.results[0].rate", key)
	case path != "" && !isPath(path):
		o.wrong("%s %.80q is no path; write names joined by dots, [n] for the entry n of a list and [] for its only one, as d.results[0].rate", key, path)
	}
	return path
}

// isPath reports the form of a path. Names are whatever JSON has, but for the marks of the path itself and blanks.
func isPath(path string) bool {
	step := regexp.MustCompile(`^[^\s.\[\]"]*(\[[0-9]{0,6}\])*$`)
	for part := range strings.SplitSeq(path, ".") {
		if part == "" || !step.MatchString(part) {
			return false
		}
	}
	return true
}
