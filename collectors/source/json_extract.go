package source

// extractJSON reads JSON: one path for each value, or a list of objects with labels.
func (r *reading) extractJSON(text string) {
	whole := parseJSON(text)
	r.expect(whole)
	r.readDate(whole)
	if r.page.Extract.Method == JSONFields {
		r.readFields(whole)
		return
	}
	r.readGroups([][]scope{r.jsonRows(whole)})
}

// expect holds the document to what must be true before anything in it is believed.
func (r *reading) expect(whole *jsonValue) {
	for _, want := range r.page.Extract.Expect {
		value := whole.follow(want.Path)
		switch {
		case value == nil:
			fail(Layout, "want %s at %s, found nothing", quoted(want.Value), quoted(want.Path))
		case value.text != want.Value || value.kind == jsonList || value.kind == jsonObject:
			fail(WrongContent, "want %s at %s, found %s", quoted(want.Value), quoted(want.Path), value.inWords())
		}
	}
}

// inWords tells a value in a message.
func (v *jsonValue) inWords() string {
	if v.kind == jsonList || v.kind == jsonObject {
		return string(v.kind)
	}
	return quoted(v.text)
}

func (r *reading) jsonRows(whole *jsonValue) []scope {
	at := r.page.Extract.Rows.At
	list := whole.follow(at)
	switch {
	case list == nil:
		fail(Layout, "no list stands at %s", quoted(at))
	case list.kind != jsonList:
		fail(Layout, "want a list at %s, found %s", quoted(at), list.inWords())
	case len(list.items) == 0:
		fail(Empty, "the list at %s has no entries", quoted(at))
	case len(list.items) > tableRowsMost:
		fail(WrongContent, "the list at %s has %d entries; at most %d can be rates", quoted(at), len(list.items), tableRowsMost)
	}
	rows := make([]scope, len(list.items))
	for i, item := range list.items {
		rows[i] = item
	}
	return rows
}

// texts gives a number with its digits as they are written, and a text for people to be read as one. null says that there
// is no value; lists and objects are none.
func (v *jsonValue) texts(place *Place) []found {
	value := v.follow(place.At)
	if value == nil {
		return nil
	}
	switch value.kind {
	case jsonNull:
		return []found{{}}
	case jsonNumber:
		return []found{{text: value.text, form: number}}
	case jsonText, jsonFlag:
		return []found{{text: value.text}}
	case jsonList, jsonObject:
	}
	return nil
}
