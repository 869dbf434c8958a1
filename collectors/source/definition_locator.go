package source

// locatorForm is what a place may say, which depends on the kind of document and on what the place is below.
type locatorForm struct {
	at        func(*object, string) string // what the key at is: a selector, a path or a heading
	hint      string                       // the way out where at is missing
	optional  bool                         // at may be left out: the row itself, or the whole text
	column    bool                         // the cell of a column of the row; at is then below the cell
	attribute bool
}

// locatorForms are those of fields and of a date, which stand in the document itself, and those below a row.
type locatorForms struct{ field, row, document locatorForm }

func locatorFormsOf(method Method) locatorForms {
	path := locatorForm{at: (*object).path, hint: hintPath}
	element := locatorForm{at: (*object).selector, hint: hintSelector, attribute: true}
	switch method {
	case JSONFields, JSONRows:
		return locatorForms{path, path, path}
	case XLSXRows:
		return locatorForms{field: locatorForm{at: (*object).heading}}
	case TextRegex:
		return locatorForms{document: locatorForm{at: (*object).selector, optional: true, attribute: true}}
	}
	return locatorForms{element, locatorForm{at: (*object).selector, optional: true, column: true, attribute: true}, element}
}

// locator reads where a text stands; the object may have other keys besides.
func (o *object) locator(form locatorForm) Locator {
	var p Locator
	at := func(key string) string { return form.at(o, key) }
	if form.optional {
		p.At = at("at")
	} else {
		p.At = o.Required("at", form.hint, at)
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
			o.Errorf("pattern has %d groups, but only the first one counts; write the others as (?:...)", pattern.NumSubexp())
		}
	}
	if form.optional && p == (Locator{}) {
		o.Errorf("says nothing; give at, a pattern, or what else tells where the text stands")
	}
	return p
}

func (o *object) attribute(key string) string { return o.Text(key, attributeNameMax) }
