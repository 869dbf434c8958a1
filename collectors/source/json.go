package source

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tasard/tasard/collectors/markup"
)

// jsonScope is a JSON value in which a locator searches. It keeps the digits of numbers and repeated keys of objects.
type jsonScope struct{ gjson.Result }

// parseJSON parses exactly one JSON value. encoding/json checks the syntax and bounds the depth. gjson then reads the
// value lazily.
func parseJSON(text string) (jsonScope, *Failure) {
	var whole json.RawMessage
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		return jsonScope{}, &Failure{Kind: WrongContent, Detail: "want JSON, got what begins with " + quoted(text) + ": " + err.Error(), Cause: err}
	}
	return jsonScope{gjson.Parse(text)}, nil
}

// lookup returns the value at a path such as d.results[0].rate. If there is none, Exists of the result is false. The
// path "" means v itself, and [] in a path means the only entry of a list. lookup fails if a key of the path occurs
// twice in an object, because JSON does not say which of the two counts.
func (v jsonScope) lookup(path string) (jsonScope, *Failure) {
	current := v.Result
	for part := range strings.SplitSeq(path, ".") {
		name, indices, isIndexed := strings.Cut(part, "[")
		if name != "" {
			var found gjson.Result
			count := 0
			if current.IsObject() {
				current.ForEach(func(key, value gjson.Result) bool {
					if key.String() == name {
						found = value
						count++
					}
					return count < 2
				})
			}
			if current = found; count > 1 {
				return jsonScope{}, Failf(Value, "the key %s occurs twice in one object, on the path %s", quoted(name), quoted(path))
			}
		}
		if !isIndexed {
			continue
		}
		for index := range strings.SplitSeq(strings.TrimSuffix(indices, "]"), "][") {
			number, err := strconv.Atoi(cmp.Or(index, "0"))
			items := jsonScope{current}.items(max(number, 1) + 1)
			if index == "" && len(items) > 1 {
				return jsonScope{}, Failf(Layout, "%s: want a list of one entry, found more", quoted(path))
			}
			if err != nil || number < 0 || number >= len(items) {
				return jsonScope{}, nil
			}
			current = items[number].Result
		}
	}
	return jsonScope{current}, nil
}

// items returns the first entries of a list, at most limit. A value that is not a list has none.
func (v jsonScope) items(limit int) (items []jsonScope) {
	if v.IsArray() {
		v.ForEach(func(_, item gjson.Result) bool {
			items = append(items, jsonScope{item})
			return len(items) < limit
		})
	}
	return items
}

// describe names a value in a message.
func (v jsonScope) describe() string {
	switch {
	case v.IsArray():
		return "a list"
	case v.IsObject():
		return "an object"
	}
	return quoted(v.text())
}

// text returns the text of a string, or a number, a flag or null as the document writes it.
func (v jsonScope) text() string {
	if v.Type == gjson.String {
		return v.String()
	}
	return v.Raw
}

// texts implements scope. locator.At is a path in v. For null it returns an empty text, which means that there is no
// price. For a list or an object it returns no text.
func (v jsonScope) texts(locator *Locator) ([]sourceText, *Failure) {
	value, failure := v.lookup(locator.At)
	switch {
	case failure != nil || !value.Exists() || value.Type == gjson.JSON:
		return nil, failure
	case value.Type == gjson.Null:
		return []sourceText{{}}, nil
	case value.Type == gjson.Number:
		return []sourceText{{text: value.Raw, kind: numberText}}, nil
	}
	return []sourceText{{text: value.text()}}, nil
}

// extractJSON reads the quotes of a JSON document as its definition says (r.page.Extract).
func (r *parser) extractJSON(text string) {
	whole, failure := parseJSON(text)
	if r.fail(failure) {
		return
	}
	for _, expected := range r.page.Extract.Expect {
		switch value, failure := whole.lookup(expected.Path); {
		case r.fail(failure):
		case !value.Exists():
			r.failf(Layout, "want %s at %s, found nothing", quoted(expected.Value), quoted(expected.Path))
		case value.text() != expected.Value || value.Type == gjson.JSON:
			r.failf(WrongContent, "want %s at %s, found %s", quoted(expected.Value), quoted(expected.Path), value.describe())
		}
	}
	r.readDate(whole)
	switch {
	case r.failure != nil:
	case r.page.Extract.Method == JSONFields:
		r.readFields(whole)
	default:
		r.readGroups([][]scope{r.jsonRows(whole)})
	}
}

func (r *parser) jsonRows(whole jsonScope) []scope {
	path := r.page.Extract.Rows.At
	list := whole
	if path != "" {
		var failure *Failure
		if list, failure = whole.lookup(path); r.fail(failure) {
			return nil
		}
	}
	items := list.items(markup.RowsMax + 1)
	switch {
	case !list.Exists():
		r.failf(Layout, "there is no list at %s", quoted(path))
	case !list.IsArray():
		r.failf(Layout, "want a list at %s, found %s", quoted(path), list.describe())
	case len(items) == 0:
		r.failf(Empty, "the list at %s has no entries", quoted(path))
	case len(items) > markup.RowsMax:
		r.failf(WrongContent, "the list at %s has more than %d entries", quoted(path), markup.RowsMax)
	}
	rows := make([]scope, len(items))
	for i, item := range items {
		rows[i] = item
	}
	return rows
}
