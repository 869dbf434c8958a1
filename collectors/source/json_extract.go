package source

import "github.com/tasard/tasard/collectors/markup"

// extractJSON reads the quotes of a JSON document as its definition says (r.page.Extract).
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

// expect fails (see failf) unless the document meets the conditions that its definition has in Extract.Expect.
func (r *parser) expect(whole *jsonValue) {
	for _, expected := range r.page.Extract.Expect {
		value := whole.lookup(expected.Path)
		switch {
		case value == nil:
			failf(Layout, "want %s at %s, found nothing", quoted(expected.Value), quoted(expected.Path))
		case value.text != expected.Value || value.kind == jsonArray || value.kind == jsonObject:
			failf(WrongContent, "want %s at %s, found %s", quoted(expected.Value), quoted(expected.Path), value.describe())
		}
	}
}

// describe names a value in a message.
func (v *jsonValue) describe() string {
	if v.kind == jsonArray || v.kind == jsonObject {
		return string(v.kind)
	}
	return quoted(v.text)
}

func (r *parser) jsonRows(whole *jsonValue) []scope {
	path := r.page.Extract.Rows.At
	list := whole.lookup(path)
	switch {
	case list == nil:
		failf(Layout, "there is no list at %s", quoted(path))
	case list.kind != jsonArray:
		failf(Layout, "want a list at %s, found %s", quoted(path), list.describe())
	case len(list.items) == 0:
		failf(Empty, "the list at %s has no entries", quoted(path))
	case len(list.items) > markup.RowsMax:
		failf(WrongContent, "the list at %s has %d entries, at most %d are accepted", quoted(path), len(list.items), markup.RowsMax)
	}
	rows := make([]scope, len(list.items))
	for i, item := range list.items {
		rows[i] = item
	}
	return rows
}

// texts returns the text of the value at locator.At, which is a path in v. A null gives an empty text, which means that
// there is no price. A list or an object gives no text. texts implements scope.
func (v *jsonValue) texts(locator *Locator) []sourceText {
	value := v.lookup(locator.At)
	if value == nil {
		return nil
	}
	switch value.kind {
	case jsonNull:
		return []sourceText{{}}
	case jsonNumber:
		return []sourceText{{text: value.text, kind: numberText}}
	case jsonString, jsonBool:
		return []sourceText{{text: value.text}}
	case jsonArray, jsonObject:
	}
	return nil
}
