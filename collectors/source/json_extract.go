package source

// extractJSON reads JSON: a path for each value, or a list of objects with labels.
func (r *parser) extractJSON(text string) {
	whole := parseJSON(text)
	r.expect(whole)
	r.readDate(whole)
	if r.page.Extract.Method == JSONFields {
		r.readFields(whole)
		return
	}
	r.readGroups([][]scope{r.jsonRows(whole)})
}

// expect checks what a valid document contains.
func (r *parser) expect(whole *jsonValue) {
	for _, want := range r.page.Extract.Expect {
		value := whole.lookup(want.Path)
		switch {
		case value == nil:
			failf(Layout, "want %s at %s, found nothing", quoted(want.Value), quoted(want.Path))
		case value.text != want.Value || value.kind == jsonArray || value.kind == jsonObject:
			failf(WrongContent, "want %s at %s, found %s", quoted(want.Value), quoted(want.Path), value.describe())
		}
	}
}

// describe returns a value for a message.
func (v *jsonValue) describe() string {
	if v.kind == jsonArray || v.kind == jsonObject {
		return string(v.kind)
	}
	return quoted(v.text)
}

func (r *parser) jsonRows(whole *jsonValue) []scope {
	at := r.page.Extract.Rows.At
	list := whole.lookup(at)
	switch {
	case list == nil:
		failf(Layout, "there is no list at %s", quoted(at))
	case list.kind != jsonArray:
		failf(Layout, "want a list at %s, found %s", quoted(at), list.describe())
	case len(list.items) == 0:
		failf(Empty, "the list at %s has no entries", quoted(at))
	case len(list.items) > tableRowsMax:
		failf(WrongContent, "the list at %s has %d entries, at most %d are accepted", quoted(at), len(list.items), tableRowsMax)
	}
	rows := make([]scope, len(list.items))
	for i, item := range list.items {
		rows[i] = item
	}
	return rows
}

// texts returns a number with its digits as written, or a string, which is read like text for people. null means no
// value; lists and objects are ignored.
func (v *jsonValue) texts(locator *Locator) []foundText {
	value := v.lookup(locator.At)
	if value == nil {
		return nil
	}
	switch value.kind {
	case jsonNull:
		return []foundText{{}}
	case jsonNumber:
		return []foundText{{text: value.text, kind: numberText}}
	case jsonString, jsonBool:
		return []foundText{{text: value.text}}
	case jsonArray, jsonObject:
	}
	return nil
}
