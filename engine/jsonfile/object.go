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

// file collects the problems of one file.
type file struct {
	name     string
	problems []error
}

// Object is one JSON object, whose keys are taken one by one. In place of a value that is not an object it has no keys.
type Object struct {
	where  string // "" = the whole file
	file   *file
	fields map[string]json.RawMessage
	known  []string
}

// Read visits the object of a file. The error joins all problems (errors.Join). name is the file's name; shorten says
// what to do with a file of more than bytesMax.
func Read(name string, data []byte, bytesMax int, shorten string, visit func(top *Object)) error {
	if err := validate(data, bytesMax, shorten); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	f := &file{name: name}
	f.object("", data, visit)
	return errors.Join(f.problems...)
}

// validate refuses what is not one JSON text.
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
		return fmt.Errorf("line %d: the file is not one JSON object: %w; correct it there", line, err)
	}
	return err
}

// object visits an object and reports the keys that the visit left. raw is valid JSON.
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
		o.Errorf("is not a JSON object; write { ... }")
		return
	}
	o.fields = map[string]json.RawMessage{}
	for decoder.More() {
		token, err := decoder.Token()
		key, isText := token.(string)
		var value json.RawMessage
		if err != nil || !isText || decoder.Decode(&value) != nil {
			o.Errorf("is not valid JSON; check its commas and quotes")
			return
		}
		if _, twice := o.fields[key]; twice {
			o.Errorf("has the key %.40q twice; keep one", key)
		}
		o.fields[key] = value
	}
}

// Path returns the place of the object in its file, as pages[0].extract.
func (o *Object) Path() string { return cmp.Or(o.where, "the file") }

// Errorf reports a problem of the object.
func (o *Object) Errorf(format string, args ...any) {
	o.file.problems = append(o.file.problems, fmt.Errorf("%s: %s: %w", o.file.name, o.Path(), fmt.Errorf(format, args...)))
}

// Failed reports that the file has a problem.
func (o *Object) Failed() bool { return len(o.file.problems) > 0 }

// Has reports that a key is given and not taken yet.
func (o *Object) Has(key string) bool {
	_, given := o.fields[key]
	return given
}

// Empty reports that no key is left.
func (o *Object) Empty() bool { return len(o.fields) == 0 }

// DiscardRest takes all keys that are left, so that they are not reported as unknown.
func (o *Object) DiscardRest() { clear(o.fields) }

// UseLabel returns the text under a key, "" when there is none, and adds it to the object's place in later problems. It
// does not take the key.
func (o *Object) UseLabel(key string) string {
	var label string
	if json.Unmarshal(o.fields[key], &label) != nil || label == "" {
		return ""
	}
	o.where = fmt.Sprintf("%s %.80q", o.where, label)
	return label
}

// Take takes the JSON text of a value.
func (o *Object) Take(key string) (json.RawMessage, bool) {
	o.known = append(o.known, key)
	raw, given := o.fields[key]
	delete(o.fields, key)
	return raw, given
}

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

// EachKey visits the keys of a child object that is a map, sorted; each visit must take its key. It reports whether the
// child is given.
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

// List takes a list, nil when the key is not given.
func List[T any](o *Object, key string, entriesMax int) []T {
	items, _ := decode[[]T](o, key, "a list; write [ ... ] around its entries")
	if len(items) > entriesMax {
		o.Errorf("%s has %d entries; at most %d can be right", key, len(items), entriesMax)
		return nil
	}
	return items
}

// decode takes and decodes a value. A value of another type, or null, is reported and counts as not given.
func decode[T any](o *Object, key, want string) (decoded T, given bool) {
	raw, given := o.Take(key)
	if !given {
		return decoded, false
	}
	if err := json.Unmarshal(raw, &decoded); err != nil || string(raw) == "null" {
		o.Errorf("%s is not %s", key, want)
		var zero T
		return zero, false
	}
	return decoded, true
}
