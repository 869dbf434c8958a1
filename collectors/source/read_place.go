package source

// placeForm is what a place may say, which depends on the kind of document and on what the place is below.
type placeForm struct {
	at        func(*object, string) string // what the key at is: a selector, a path or a heading
	hint      string                       // the way out where at is missing
	optional  bool                         // at may be left out: the row itself, or the whole text
	column    bool                         // the cell of a column of the row; at is then below the cell
	attribute bool
}

// places are those of fields and of a date, which stand in the document itself, and those below a row.
type places struct{ field, row, document placeForm }

func placesOf(method Method) places {
	path := placeForm{at: (*object).path, hint: hintPath}
	element := placeForm{at: (*object).selector, hint: hintSelector, attribute: true}
	switch method {
	case JSONFields, JSONRows:
		return places{path, path, path}
	case XLSXRows:
		return places{field: placeForm{at: (*object).heading}}
	case TextRegex:
		return places{document: placeForm{at: (*object).selector, optional: true, attribute: true}}
	}
	return places{element, placeForm{at: (*object).selector, optional: true, column: true, attribute: true}, element}
}

// place reads where a text stands; the object may have other keys besides.
func (o *object) place(form placeForm) Place {
	var p Place
	at := func(key string) string { return form.at(o, key) }
	if form.optional {
		p.At = at("at")
	} else {
		p.At = o.Needed("at", form.hint, at)
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
			o.Wrong("pattern has %d groups, but only the first one counts; write the others as (?:...)", pattern.NumSubexp())
		}
	}
	if form.optional && p == (Place{}) {
		o.Wrong("says nothing; give at, a pattern, or what else tells where the text stands")
	}
	return p
}

func (o *object) attribute(key string) string { return o.Text(key, attributeNameMax) }
