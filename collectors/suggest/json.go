package suggest

import (
	"encoding/json"
	"fmt"
	"github.com/tasard/tasard/collectors/values"
	"strings"

	"github.com/tidwall/gjson"
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
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.key)
		}
	}
	return b.String()
}

// readJSON adds the prices of a JSON document. encoding/json bounds its depth.
func (f *finder) readJSON(text string) error {
	var whole json.RawMessage
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		return fmt.Errorf("the JSON can't be read: %w", err)
	}
	f.json = newValue(gjson.Parse(text))
	if err := f.addJSON(f.json, nil); err != nil {
		return err
	}
	for _, s := range f.spots {
		labelJSON(s, f.json)
	}
	return nil
}

func newValue(result gjson.Result) *value {
	v := &value{Result: result}
	switch {
	case result.IsObject():
		result.ForEach(func(key, inner gjson.Result) bool {
			v.members = append(v.members, member{key.String(), newValue(inner)})
			return true
		})
	case result.IsArray():
		result.ForEach(func(_, inner gjson.Result) bool {
			v.items = append(v.items, newValue(inner))
			return true
		})
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

func (f *finder) addJSON(v *value, at path) error {
	for i, item := range v.items {
		if err := f.addJSON(item, append(at[:len(at):len(at)], step{index: i, length: len(v.items), value: item})); err != nil {
			return err
		}
	}
	for _, m := range v.members {
		if err := f.addJSON(m.value, append(at[:len(at):len(at)], step{key: m.key, value: m.value})); err != nil {
			return err
		}
	}
	if !strings.ContainsAny(v.text(), "0123456789") {
		return nil
	}
	_, err := f.add(&spot{text: v.text(), path: at}, v.Type == gjson.Number)
	return err
}

// jsonLabels are the words that were found for one price, from the nearest to the farthest.
type jsonLabels struct {
	spot    *spot
	stopped map[values.Topic]bool // two words contradict each other: farther ones do not count
	isNoise bool
}

// labelJSON finds the words of a price of root: its key, then the texts beside it, then the keys around it.
func labelJSON(s *spot, root *value) {
	if len(s.path) == 0 {
		return
	}
	l := jsonLabels{s, map[values.Topic]bool{}, false}
	for i := len(s.path) - 1; i >= 0; i-- {
		at := s.path[i]
		if at.length == 0 {
			words := values.Words(at.key)
			l.isNoise = l.isNoise || has(words, values.AboutOther)
			l.take(values.AboutSide, words, "the key")
			l.take(values.AboutCurrency, words, "the key")
			continue
		}
		l.takeMembers(at.value)
		if s.currency.Meaning == "" && at.length > 1 {
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
	if l.isNoise {
		s.side, s.isNoise = values.Word{}, true
	}
}

// take gives the price the word of a topic, if it has none yet.
func (l *jsonLabels) take(about values.Topic, words []values.Word, where string) {
	target := map[values.Topic]*values.Word{values.AboutSide: &l.spot.side, values.AboutCurrency: &l.spot.currency, values.AboutChannel: &l.spot.channel}[about]
	if target.Meaning != "" || l.stopped[about] {
		return
	}
	found, several := only(words, about)
	l.stopped[about] = several
	if found.Meaning != "" {
		*target = found
		l.spot.because(about, where, found)
	}
}

// memberMax is the size of a text beside a price that may be a label.
const memberMax = 200

// takeMembers takes words from the texts of an object.
func (l *jsonLabels) takeMembers(object *value) {
	for _, m := range object.members {
		text := m.value.text()
		if code := codesOfNumbers[text]; code != "" {
			l.take(values.AboutCurrency, []values.Word{{Topic: values.AboutCurrency, Meaning: code, Text: text}}, "the code")
			continue
		}
		if m.value.Type != gjson.String || len(text) > memberMax {
			continue
		}
		words := values.Words(text)
		l.isNoise = l.isNoise || has(words, values.AboutOther) && !strings.Contains(text, ":")
		for _, about := range []values.Topic{values.AboutSide, values.AboutCurrency, values.AboutChannel} {
			l.take(about, words, "the text")
		}
	}
}
