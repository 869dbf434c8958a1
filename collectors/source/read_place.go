package source

// placeForm is what a place may say, which depends on the kind of document and on what the place is below.
type placeForm struct {
	at        func(*object, string) string // what the key at is: a selector, a path or a heading
	hint      string                       // the way out where at is missing
	optional  bool                         // at may be left out: the row itself, or the whole text
	column    bool                         // the cell of a column of the row; at is then below the cell
	attribute bool
}

var (
	pathPlace    = placeForm{at: (*object).path, hint: hintPath}
	headingPlace = placeForm{at: (*object).heading}
	elementPlace = placeForm{at: (*object).selector, hint: hintSelector, attribute: true}
	textPlace    = placeForm{at: (*object).selector, optional: true, attribute: true}
	cellPlace    = placeForm{at: (*object).selector, optional: true, column: true, attribute: true}
)

// fieldPlaces are the places of fields, which stand in the document itself.
func fieldPlaces(method Method) placeForm {
	switch method {
	case JSONFields:
		return pathPlace
	case XLSXRows:
		return headingPlace
	}
	return elementPlace
}

// rowPlaces are the places below a row.
func rowPlaces(method Method) placeForm {
	if method == JSONRows {
		return pathPlace
	}
	return cellPlace
}

// documentPlaces are the places of a date of the whole document.
func documentPlaces(method Method) placeForm {
	switch method {
	case JSONFields, JSONRows:
		return pathPlace
	case TextRegex:
		return textPlace
	}
	return elementPlace
}

// place reads where a text stands; the object may have other keys besides.
func (o *object) place(form placeForm) Place {
	var p Place
	at := func(key string) string { return form.at(o, key) }
	if form.optional {
		p.At = at("at")
	} else {
		p.At = o.needed("at", form.hint, at)
	}
	if form.attribute {
		p.Attribute = o.attribute("attribute")
	}
	if form.column {
		p.Column = o.heading("column")
	}
	if pattern := o.pattern("pattern"); pattern != nil {
		p.Pattern = pattern.String()
		if pattern.NumSubexp() > 1 {
			o.wrong("pattern has %d groups, but only the first one counts; write the others as (?:...)", pattern.NumSubexp())
		}
	}
	if form.optional && p == (Place{}) {
		o.wrong("says nothing; give at, a pattern, or what else tells where the text stands")
	}
	return p
}

func (o *object) attribute(key string) string { return o.text(key, attributeNameMax) }
