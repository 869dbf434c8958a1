package engine

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

// jsonFile collects the problems of one file.
type jsonFile struct {
	name     string
	problems []error
}

// jsonObject is a JSON object. Its methods take one key after the other: they read its value and remove it from the
// object. If the JSON value is not an object, jsonObject has no keys.
type jsonObject struct {
	path   string // "" = the whole file
	file   *jsonFile
	fields map[string]json.RawMessage
	known  []string // keys that were taken: read and removed
}

// readJSONFile calls visit with the object of a file. The error joins all problems (errors.Join). name is the file's
// name, for errors. shorten is the advice in the error for a file of more than bytesMax bytes.
func readJSONFile(name string, data []byte, bytesMax int, shorten string, visit func(top *jsonObject)) error {
	if err := validate(data, bytesMax, shorten); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	f := &jsonFile{name: name}
	f.object("", data, visit)
	return errors.Join(f.problems...)
}

// validate checks the size, the encoding and the JSON syntax of a file.
func validate(data []byte, bytesMax int, shorten string) error {
	switch {
	case len(data) > bytesMax:
		return fmt.Errorf("the file is longer than %d bytes; %s", bytesMax, shorten)
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return errors.New("the file begins with a byte order mark; save it as UTF-8 without one")
	case !utf8.Valid(data):
		return errors.New("the file is not UTF-8; save it as UTF-8")
	}
	var value json.RawMessage
	err := json.Unmarshal(data, &value)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		line := 1 + bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n"))
		return fmt.Errorf("line %d: the file is not one JSON object: %w; correct it there", line, err)
	}
	return err
}

// object calls visit with an object and reports the keys that visit has not taken. raw is valid JSON.
func (f *jsonFile) object(path string, raw []byte, visit func(*jsonObject)) {
	o := &jsonObject{path: path, file: f}
	o.read(raw)
	visit(o)
	for _, key := range slices.Sorted(maps.Keys(o.fields)) {
		o.errorf("unknown key %.40q; known are %s", key, strings.Join(o.known, ", "))
	}
}

func (o *jsonObject) read(raw []byte) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		o.errorf("is not a JSON object; write { ... }")
		return
	}
	o.fields = map[string]json.RawMessage{}
	for decoder.More() {
		token, err := decoder.Token()
		key, isText := token.(string)
		var value json.RawMessage
		if err != nil || !isText || decoder.Decode(&value) != nil {
			o.errorf("is not valid JSON; check its commas and quotes")
			return
		}
		if _, repeated := o.fields[key]; repeated {
			o.errorf("has the key %.40q twice; keep one", key)
		}
		o.fields[key] = value
	}
}

// place returns the path of the object in its file, such as pages[0].extract.
func (o *jsonObject) place() string { return cmp.Or(o.path, "the file") }

// errorf adds a problem of the object to the error of readJSONFile.
func (o *jsonObject) errorf(format string, args ...any) {
	o.file.problems = append(o.file.problems, fmt.Errorf("%s: %s: %w", o.file.name, o.place(), fmt.Errorf(format, args...)))
}

// useLabel returns the text of a key, or "". It adds the text to the object's path, so that later problems name the
// object by this text. useLabel does not take the key.
func (o *jsonObject) useLabel(key string) string {
	var label string
	if json.Unmarshal(o.fields[key], &label) != nil || label == "" {
		return ""
	}
	o.path = fmt.Sprintf("%s %.80q", o.path, label)
	return label
}

// take takes a key and returns the JSON text of its value, or false if the object does not have the key.
func (o *jsonObject) take(key string) (json.RawMessage, bool) {
	o.known = append(o.known, key)
	raw, ok := o.fields[key]
	delete(o.fields, key)
	return raw, ok
}

func (o *jsonObject) childPath(key string) string { return strings.TrimPrefix(o.path+"."+key, ".") }

// each takes a key whose value is a list of objects, and calls visit with each object.
func (o *jsonObject) each(key string, entriesMax int, visit func(*jsonObject)) {
	for i, raw := range list[json.RawMessage](o, key, entriesMax) {
		o.file.object(fmt.Sprintf("%s[%d]", o.childPath(key), i), raw, func(item *jsonObject) {
			if item.fields != nil {
				visit(item)
			}
		})
	}
}

// list takes a key whose value is a list. It returns nil if the key is missing.
func list[T any](o *jsonObject, key string, entriesMax int) []T {
	items, _ := decode[[]T](o, key, "a list; write [ ... ] around its entries")
	if len(items) > entriesMax {
		o.errorf("%s has %d entries; at most %d can be right", key, len(items), entriesMax)
		return nil
	}
	return items
}

// decode takes a key and decodes its value. It returns false if the key is missing. For null and values of another type
// it reports a problem and returns false. want describes the expected type in the problem.
func decode[T any](o *jsonObject, key, want string) (decoded T, ok bool) {
	raw, ok := o.take(key)
	if !ok {
		return decoded, false
	}
	if err := json.Unmarshal(raw, &decoded); err != nil || string(raw) == "null" {
		o.errorf("%s is not %s", key, want)
		var zero T
		return zero, false
	}
	return decoded, true
}
