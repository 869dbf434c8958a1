package source

// locatorForm says which keys a locator may have in a definition file. A locator says where a text is in a document.
type locatorForm struct {
	at        func(*object, string) string // reads the key "at": a selector, a path or a heading
	hint      string                       // advice in the error if "at" is missing
	optional  bool                         // "at" may be missing; the locator then means the whole row or text
	column    bool                         // the key "column" is allowed
	attribute bool                         // the key "attribute" is allowed
}

// locatorForms has the forms of locators for one method, which is a way to read documents, such as HTMLRows. field is
// for the price of one quote, row for a text in a row, document for the date of the whole document.
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

// locator reads those keys of o that make up a locator. It leaves other keys to the caller.
func (o *object) locator(form locatorForm) Locator {
	var p Locator
	readAt := func(key string) string { return form.at(o, key) }
	if form.optional {
		p.At = readAt("at")
	} else {
		p.At = o.Required("at", form.hint, readAt)
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
		o.Errorf("is empty; give at, a pattern or another key")
	}
	return p
}

func (o *object) attribute(key string) string { return o.Text(key, attributeNameMax) }
