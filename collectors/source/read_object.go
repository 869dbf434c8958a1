package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tasard/tasard/engine"
)

// problems collects everything that is wrong with one file.
type problems struct {
	name  string
	found []error
}

// object is one JSON object whose keys are taken out one by one; what is left at the end is unknown. fields is nil
// when there is no object at all: then every key counts as not given.
type object struct {
	where  string
	report *problems
	fields map[string]json.RawMessage
	known  []string
}

// object reads the keys of an object; raw is known to be valid JSON.
func (p *problems) object(where string, raw []byte) *object {
	o := &object{where: where, report: p}
	o.fields = engine.ReadObject(raw, o.wrong)
	return o
}

func (o *object) wrong(format string, args ...any) {
	o.report.found = append(o.report.found, fmt.Errorf("%s: %s: %w", o.report.name, o.where, fmt.Errorf(format, args...)))
}

// inside names the place of a key, for problems of what lies below it.
func (o *object) inside(key string) string {
	if o.where == "the file" {
		return key
	}
	return o.where + "." + key
}

func (o *object) take(key string) (json.RawMessage, bool) {
	o.known = append(o.known, key)
	raw, given := o.fields[key]
	delete(o.fields, key)
	return raw, given
}

// refuseOtherKeys reports what nobody took. Every object ends with it.
func (o *object) refuseOtherKeys() {
	for _, key := range slices.Sorted(maps.Keys(o.fields)) {
		o.wrong("unknown key %.40q; known are %s", key, strings.Join(o.known, ", "))
	}
}

// part visits the object under a key, and refuses the keys that the visit left. It reports whether the key is given.
func (o *object) part(key string, visit func(*object)) bool {
	raw, given := o.take(key)
	if given {
		part := o.report.object(o.inside(key), raw)
		visit(part)
		part.refuseOtherKeys()
	}
	return given
}

// needPart is part for a key that must be there.
func (o *object) needPart(key string, visit func(*object)) {
	if !o.part(key, visit) {
		o.wrong("%s is missing; the method needs it", key)
	}
}

func (o *object) has(key string) bool {
	_, given := o.fields[key]
	return given
}

// eachObject visits the objects of a list, and refuses the keys that the visit left.
func eachObject(o *object, key string, entries int, visit func(*object)) {
	items := list[json.RawMessage](o, key, entries)
	for i, raw := range items {
		item := o.report.object(fmt.Sprintf("%s[%d]", o.inside(key), i), raw)
		if item.fields == nil {
			continue
		}
		visit(item)
		item.refuseOtherKeys()
	}
}

// eachKey visits the keys of an object that is a map, in order of the keys; the visit takes the key. It reports whether the map is
// given.
func eachKey(o *object, key string, visit func(part *object, name string)) bool {
	return o.part(key, func(part *object) {
		if len(part.fields) > entriesMax {
			part.wrong("has %d entries; at most %d can be right", len(part.fields), entriesMax)
			clear(part.fields)
		}
		for _, name := range slices.Sorted(maps.Keys(part.fields)) {
			visit(part, name)
		}
	})
}

// list is the list under a key, nil when there is none.
func list[T any](o *object, key string, entries int) []T {
	items, given := value[[]T](o, key, "list; write [ ... ] around its entries")
	if given && len(items) > entries {
		o.wrong("%s has %d entries; at most %d can be right", key, len(items), entries)
		return nil
	}
	return items
}

// value decodes what stands under a key; what is there but of another type, or null, is reported and counts as given.
func value[T any](o *object, key, want string) (T, bool) {
	var decoded T
	raw, given := o.take(key)
	if !given {
		return decoded, false
	}
	if string(raw) == "null" {
		o.wrong("%s is null; leave the key out", key)
		return decoded, true
	}
	if err := json.Unmarshal(raw, &decoded); err != nil {
		o.wrong("%s is no %s", key, want)
		var zero T
		return zero, true
	}
	return decoded, true
}
