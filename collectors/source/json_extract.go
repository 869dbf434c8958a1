package source

// extractJSON reads JSON: one path for each value, or a list of objects with labels.
func (r *reading) extractJSON(text string) *Failure {
	whole, failure := parseJSON(text)
	if failure != nil {
		return failure
	}
	if failure := r.expect(whole); failure != nil {
		return failure
	}
	document := (*jsonScope)(whole)
	if failure := r.readDate(document); failure != nil {
		return failure
	}
	if r.page.Extract.Method == JSONFields {
		return r.readFields(document)
	}
	rows, failure := r.jsonRows(whole)
	if failure != nil {
		return failure
	}
	return r.readGroups([][]scope{rows})
}

// expect holds the document to what must be true before anything in it is believed.
func (r *reading) expect(whole *jsonValue) *Failure {
	for _, want := range r.page.Extract.Expect {
		value, failure := whole.follow(want.Path)
		switch {
		case failure != nil:
			return failure
		case value == nil:
			return Fail(Layout, "want %s at %s, found nothing", quoted(want.Value), quoted(want.Path))
		case value.text != want.Value || value.kind == jsonList || value.kind == jsonObject:
			return Fail(WrongContent, "want %s at %s, found %s", quoted(want.Value), quoted(want.Path), value.inWords())
		}
	}
	return nil
}

// inWords tells a value in a message.
func (v *jsonValue) inWords() string {
	if v.kind == jsonList || v.kind == jsonObject {
		return string(v.kind)
	}
	return quoted(v.text)
}

func (r *reading) jsonRows(whole *jsonValue) ([]scope, *Failure) {
	at := r.page.Extract.Rows.At
	list, failure := whole.follow(at)
	switch {
	case failure != nil:
		return nil, failure
	case list == nil:
		return nil, Fail(Layout, "no list stands at %s", quoted(at))
	case list.kind != jsonList:
		return nil, Fail(Layout, "want a list at %s, found %s", quoted(at), list.inWords())
	case len(list.items) == 0:
		return nil, Fail(Empty, "the list at %s has no entries", quoted(at))
	case len(list.items) > tableRowsMost:
		return nil, Fail(WrongContent, "the list at %s has %d entries; at most %d can be rates", quoted(at), len(list.items), tableRowsMost)
	}
	rows := make([]scope, len(list.items))
	for i, item := range list.items {
		rows[i] = (*jsonScope)(item)
	}
	return rows, nil
}

// jsonScope is a document of JSON, or one entry of its list.
type jsonScope jsonValue

// texts gives a number with its digits as they are written, and a text for people to be read as one. null says that there
// is no value; lists and objects are none.
func (s *jsonScope) texts(place *Place) ([]found, *Failure) {
	value, failure := (*jsonValue)(s).follow(place.At)
	if value == nil || failure != nil {
		return nil, failure
	}
	switch value.kind {
	case jsonNull:
		return []found{{}}, nil
	case jsonNumber:
		return []found{{text: value.text, form: number}}, nil
	case jsonText, jsonFlag:
		return []found{{text: value.text}}, nil
	}
	return nil, nil
}
