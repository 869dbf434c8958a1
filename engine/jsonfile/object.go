package jsonfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// file collects everything that is wrong with one file.
type file struct {
	name     string
	problems []error
}

// Object is one JSON object whose keys are taken out one by one. Where there is none, every key counts as not given.
type Object struct {
	where  string // "" = the whole file
	file   *file
	fields map[string]json.RawMessage
	known  []string
}

// Read visits the object that a file consists of. The error tells every problem; it unwraps to one error for each (errors.Join).
// name is the file's, shorten says what to do with one of more than bytesMax.
func Read(name string, data []byte, bytesMax int, shorten string, visit func(top *Object)) error {
	if err := validate(data, bytesMax, shorten); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	f := &file{name: name}
	f.object("", data, visit)
	return errors.Join(f.problems...)
}

// validate refuses what cannot be read as one JSON text at all.
func validate(data []byte, bytesMax int, shorten string) error {
	switch {
	case len(data) > bytesMax:
		return fmt.Errorf("the file is longer than %d bytes; %s", bytesMax, shorten)
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return errors.New("the file begins with a byte order mark; save it as UTF-8 without one")
	case !utf8.Valid(data):
		return errors.New("the file is not UTF-8; save it as UTF-8")
	}
	var whole json.RawMessage
	err := json.Unmarshal(data, &whole)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		line := 1 + bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n"))
		return fmt.Errorf("line %d: the file is not one JSON object: %w; mend it there", line, err)
	}
	return err
}

// object visits an object, and refuses the keys that the visit left; raw is known to be valid JSON.
func (f *file) object(where string, raw []byte, visit func(*Object)) {
	o := &Object{where: where, file: f}
	o.read(raw)
	visit(o)
	for _, key := range slices.Sorted(maps.Keys(o.fields)) {
		o.Errorf("unknown key %.40q; known are %s", key, strings.Join(o.known, ", "))
	}
}

func (o *Object) read(raw []byte) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		o.Errorf("is no JSON object; write { ... }")
		return
	}
	o.fields = map[string]json.RawMessage{}
	for decoder.More() {
		token, err := decoder.Token()
		key, isText := token.(string)
		var value json.RawMessage
		if err != nil || !isText || decoder.Decode(&value) != nil {
			o.Errorf("cannot be read; check its commas and quotes")
			return
		}
		if _, twice := o.fields[key]; twice {
			o.Errorf("the key %.40q stands twice; keep one", key)
		}
		o.fields[key] = value
	}
}

// Path names the object in its file, as pages[0].extract.
func (o *Object) Path() string { return cmp.Or(o.where, "the file") }

// Errorf tells a problem of the object.
func (o *Object) Errorf(format string, args ...any) {
	o.file.problems = append(o.file.problems, fmt.Errorf("%s: %s: %w", o.file.name, o.Path(), fmt.Errorf(format, args...)))
}

// Failed reports that the file has a problem.
func (o *Object) Failed() bool { return len(o.file.problems) > 0 }

// Has reports that a key is given, and has not been taken.
func (o *Object) Has(key string) bool {
	_, given := o.fields[key]
	return given
}

// Empty reports that no key is left, or that there is no object.
func (o *Object) Empty() bool { return len(o.fields) == 0 }

// DiscardRest takes all keys that are left, so that they are not told as unknown.
func (o *Object) DiscardRest() { clear(o.fields) }

// UseLabel is the text that names the object, "" when it has none; from here on problems are told with it. The key is not taken.
func (o *Object) UseLabel(key string) string {
	var label string
	if json.Unmarshal(o.fields[key], &label) != nil || label == "" {
		return ""
	}
	o.where = fmt.Sprintf("%s %.80q", o.where, label)
	return label
}

// Take takes a value as it is written.
func (o *Object) Take(key string) (json.RawMessage, bool) {
	o.known = append(o.known, key)
	raw, given := o.fields[key]
	delete(o.fields, key)
	return raw, given
}

// childPath names the place of a key, for problems of what lies below it.
func (o *Object) childPath(key string) string { return strings.TrimPrefix(o.where+"."+key, ".") }

// Child visits the object under a key. It reports whether the key is given.
func (o *Object) Child(key string, visit func(*Object)) bool {
	raw, given := o.Take(key)
	if given {
		o.file.object(o.childPath(key), raw, visit)
	}
	return given
}

// Each visits the objects of a list.
func (o *Object) Each(key string, entriesMax int, visit func(*Object)) {
	for i, raw := range List[json.RawMessage](o, key, entriesMax) {
		o.file.object(fmt.Sprintf("%s[%d]", o.childPath(key), i), raw, func(item *Object) {
			if item.fields != nil {
				visit(item)
			}
		})
	}
}

// EachKey visits the keys of an object that is a map, in their order; the visit takes the key. It reports whether the map is given.
func (o *Object) EachKey(key string, entriesMax int, visit func(part *Object, name string)) bool {
	return o.Child(key, func(part *Object) {
		if len(part.fields) > entriesMax {
			part.Errorf("has %d entries; at most %d can be right", len(part.fields), entriesMax)
			part.DiscardRest()
		}
		for _, name := range slices.Sorted(maps.Keys(part.fields)) {
			visit(part, name)
		}
	})
}

// List is the list under a key, nil when there is none.
func List[T any](o *Object, key string, entriesMax int) []T {
	items, _ := decode[[]T](o, key, "list; write [ ... ] around its entries")
	if len(items) > entriesMax {
		o.Errorf("%s has %d entries; at most %d can be right", key, len(items), entriesMax)
		return nil
	}
	return items
}

// decode decodes what stands under a key. What is of another type, or null, is told and counts as not given.
func decode[T any](o *Object, key, want string) (decoded T, given bool) {
	raw, given := o.Take(key)
	if !given {
		return decoded, false
	}
	if err := json.Unmarshal(raw, &decoded); err != nil || string(raw) == "null" {
		o.Errorf("%s is no %s", key, want)
		var zero T
		return zero, false
	}
	return decoded, true
}
