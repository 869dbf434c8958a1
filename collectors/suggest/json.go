package suggest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/tasard/tasard/collectors/values"
)

// value is a JSON value.
type value struct {
	gjson.Result
	members []member // of an object
	items   []*value // of a list
}

type member struct {
	key   string
	value *value
}

// step is one step to a value: a key, or a place in a list.
type step struct {
	key    string
	index  int
	length int    // of the list; 0 = the step is a key
	value  *value // to which it leads
}

type path []step

// String returns the path as definitions write it. [] is the only entry of a list.
func (p path) String() string {
	var b strings.Builder
	for _, s := range p {
		switch {
		case s.length == 1:
			b.WriteString("[]")
		case s.length > 1:
			fmt.Fprintf(&b, "[%d]", s.index)
		default:
			b.WriteString("." + s.key)
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}

// depthMax bounds the depth of a JSON document; a value is read once for each value around it.
const depthMax = 64

var errDeep = fmt.Errorf("the JSON is nested deeper than %d", depthMax)

// readJSON adds the prices of a JSON document.
func (f *finder) readJSON(text string) error {
	var whole json.RawMessage
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		return fmt.Errorf("the JSON can't be read: %w", err)
	}
	var err error
	f.json, _, err = f.addJSON(text)
	return err
}

// addJSON adds the prices of a JSON text, with their words.
func (f *finder) addJSON(text string) (root *value, added []*spot, err error) {
	if root = newValue(gjson.Parse(text), depthMax); root == nil {
		return nil, nil, errDeep
	}
	before := len(f.spots)
	err = f.addValues(root, nil)
	for _, s := range f.spots[before:] {
		labelJSON(s, root)
	}
	return root, f.spots[before:], err
}

// newValue returns nil if the value is too deep.
func newValue(result gjson.Result, depth int) *value {
	v, isDeep := &value{Result: result}, depth == 0
	result.ForEach(func(key, item gjson.Result) bool {
		if !result.IsObject() && !result.IsArray() {
			return false
		}
		inner := newValue(item, depth-1)
		if isDeep = isDeep || inner == nil; isDeep {
			return false
		}
		if result.IsObject() {
			v.members = append(v.members, member{key.String(), inner})
		} else {
			v.items = append(v.items, inner)
		}
		return true
	})
	if isDeep {
		return nil
	}
	return v
}

// text returns the text of a string or a number, otherwise "".
func (v *value) text() string {
	switch v.Type {
	case gjson.String:
		return v.String()
	case gjson.Number:
		return v.Raw
	}
	return ""
}

func (f *finder) addValues(v *value, at path) (err error) {
	next := func(s step) {
		if err == nil {
			err = f.addValues(s.value, append(at[:len(at):len(at)], s))
		}
	}
	for i, item := range v.items {
		next(step{index: i, length: len(v.items), value: item})
	}
	for _, m := range v.members {
		next(step{key: m.key, value: m.value})
	}
	if err == nil && strings.ContainsAny(v.text(), "0123456789") {
		_, err = f.add(&spot{text: v.text(), path: at}, v.Type == gjson.Number)
	}
	return err
}

// jsonLabels are the words that were found for one price, from the nearest to the farthest.
type jsonLabels struct {
	*spot
	stopped map[values.Topic]bool // two words contradict each other: farther ones do not count
}

// labelJSON finds the words of a price of root: its key, then the texts beside it, then the keys around it.
func labelJSON(s *spot, root *value) {
	if len(s.path) == 0 {
		return
	}
	l := jsonLabels{s, map[values.Topic]bool{}}
	for i := len(s.path) - 1; i >= 0; i-- {
		at := s.path[i]
		if at.length == 0 {
			l.takeWords(values.Words(at.key), "the key", values.AboutSide, values.AboutCurrency)
			continue
		}
		l.takeMembers(at.value)
		if s.lacks(values.AboutCurrency) && at.length > 1 {
			l.stopped[values.AboutCurrency] = true // an entry of a list without a word
		}
	}
	if s.path[0].length == 0 {
		l.takeMembers(root)
	}
	for _, at := range s.path[:len(s.path)-1] {
		if at.length == 0 {
			l.takeMembers(at.value)
		}
	}
	if s.isNoise {
		delete(s.words, values.AboutSide)
	}
}

// takeWords gives the price the words of topics that it does not have yet.
func (l *jsonLabels) takeWords(words []values.Word, where string, topics ...values.Topic) {
	l.isNoise = l.isNoise || has(words, values.AboutOther)
	for _, about := range topics {
		if !l.lacks(about) || l.stopped[about] {
			continue
		}
		found, several := only(words, about)
		if l.stopped[about] = several; found.Meaning != "" {
			l.take(where, found)
		}
	}
}

// memberMax is the size of a text beside a price that may be a label.
const memberMax = 200

// takeMembers takes words from the texts of an object.
func (l *jsonLabels) takeMembers(object *value) {
	for _, m := range object.members {
		text := m.value.text()
		if code := codesOfNumbers[text]; code != "" {
			l.takeWords([]values.Word{{Topic: values.AboutCurrency, Meaning: code, Text: text}}, "the code", values.AboutCurrency)
			continue
		}
		if m.value.Type != gjson.String || len(text) > memberMax {
			continue
		}
		wasNoise := l.isNoise
		l.takeWords(values.Words(text), "the text", values.AboutSide, values.AboutCurrency, values.AboutChannel)
		l.isNoise = wasNoise || l.isNoise && !strings.Contains(text, ":")
	}
}
