package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// problems collects everything that is wrong with one file.
type problems struct {
	name  string
	found []error
}

// entry is one JSON object whose keys are taken out one by one; what is left at the end is unknown. fields is nil
// when there is no object at all: then every key counts as not given, and nothing more is reported.
type entry struct {
	where  string
	report *problems
	fields map[string]json.RawMessage
	known  []string
}

// object reads the keys of an object; raw is known to be valid JSON.
func (p *problems) object(where string, raw []byte) *entry {
	e := &entry{where: where, report: p}
	e.fields = ReadObject(raw, e.wrong)
	return e
}

func (e *entry) wrong(format string, args ...any) {
	problem := fmt.Errorf("%s: %s: %w", e.report.name, e.where, fmt.Errorf(format, args...))
	e.report.found = append(e.report.found, problem)
}

// label is the text that names the entry, "" when it has none; from here on problems are told with it.
func (e *entry) label(key string) string {
	var label string
	if json.Unmarshal(e.fields[key], &label) != nil || label == "" {
		return ""
	}
	e.where = fmt.Sprintf("%s %.80q", e.where, label)
	return label
}

func (e *entry) take(key string) (json.RawMessage, bool) {
	e.known = append(e.known, key)
	raw, given := e.fields[key]
	delete(e.fields, key)
	return raw, given
}

func (e *entry) refuseOtherKeys() {
	for _, key := range slices.Sorted(maps.Keys(e.fields)) {
		e.wrong("unknown key %.40q; known are %s", key, strings.Join(e.known, ", "))
	}
}

// string takes a text as it is; false when the key is not there. A value that is no text counts as there, and as "".
func (e *entry) string(key string) (string, bool) {
	raw, given := e.take(key)
	if !given {
		return "", false
	}
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil || text == nil {
		e.wrong("%s is no text; write it in quotes", key)
		return "", true
	}
	return *text, true
}

// text takes a text that is shown to people; "" when the key is not there.
func (e *entry) text(key string, charactersMax int) string {
	text, _ := e.string(key)
	if characters := utf8.RuneCountInString(text); characters > charactersMax {
		e.wrong("%s has %d characters; shorten it to %d", key, characters, charactersMax)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }) {
		e.wrong("%s has a control character or a broken one; take it out", key)
	}
	return text
}

func (e *entry) textOr(key, otherwise string, charactersMax int) string {
	if text := e.text(key, charactersMax); text != "" {
		return text
	}
	return otherwise
}

func (e *entry) required(key string, charactersMax int) string {
	text := e.text(key, charactersMax)
	e.need(key, text != "")
	return text
}

func (e *entry) need(key string, given bool) {
	if !given {
		e.wrong("%s is missing or empty; an entry is given as a whole, also when it replaces a known one", key)
	}
}

func (e *entry) flag(key string, otherwise bool) bool {
	raw, given := e.take(key)
	if !given {
		return otherwise
	}
	var value *bool
	if err := json.Unmarshal(raw, &value); err != nil || value == nil {
		e.wrong("%s is neither true nor false; write one of them without quotes", key)
		return otherwise
	}
	return *value
}
