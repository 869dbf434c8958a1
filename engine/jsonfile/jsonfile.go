package jsonfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Read returns the value of a file of at most bytesMax bytes, with numbers as json.Number. Unlike encoding/json, it
// reports repeated keys.
func Read(name string, text []byte, bytesMax int) (value any, err error) {
	switch {
	case len(text) > bytesMax:
		err = fmt.Errorf("the file is longer than %d bytes; shorten it", bytesMax)
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		err = errors.New("the file begins with a byte order mark; save it as UTF-8 without one")
	case !utf8.Valid(text):
		err = errors.New("the file is not UTF-8; save it as UTF-8")
	default:
		value, err = parse(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

func parse(text []byte) (value any, err error) {
	var raw json.RawMessage
	if syntax := (*json.SyntaxError)(nil); errors.As(json.Unmarshal(text, &raw), &syntax) {
		line := 1 + bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n"))
		return nil, fmt.Errorf("line %d: the file is not one JSON object: %w; correct it there", line, syntax)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return value, repeatedKey(json.NewDecoder(bytes.NewReader(text)))
}

// repeatedKey returns an error if the next value contains an object with a repeated key.
func repeatedKey(decoder *json.Decoder) error {
	token, err := decoder.Token()
	if delim, isDelim := token.(json.Delim); err != nil || !isDelim || delim == '}' || delim == ']' {
		return err
	}
	keys := map[string]bool{}
	for decoder.More() {
		if token == json.Delim('{') {
			key, err := decoder.Token()
			if name := fmt.Sprint(key); err != nil || keys[name] {
				return errors.Join(err, fmt.Errorf("an object has the key %.40q twice; keep one", name))
			}
			keys[fmt.Sprint(key)] = true
		}
		if err := repeatedKey(decoder); err != nil {
			return err
		}
	}
	_, err = decoder.Token()
	return err
}

// Problems collects the problems of a file.
type Problems struct {
	File string
	all  []error
}

// Err returns all problems joined, by place, or nil.
func (p *Problems) Err() error {
	slices.SortStableFunc(p.all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(p.all...)
}

// Addf adds a problem. place is the path of the key, such as pages[0].extract; "" = the whole file.
func (p *Problems) Addf(place, format string, args ...any) {
	if place == "" {
		place = "the file"
	}
	problem := fmt.Errorf("%s: %s: %w", p.File, strings.TrimPrefix(place, "."), fmt.Errorf(format, args...))
	isSame := func(other error) bool { return other.Error() == problem.Error() } // of two rules of a schema
	if !slices.ContainsFunc(p.all, isSame) {
		p.all = append(p.all, problem)
	}
}

// CheckTexts reports texts and keys with control characters, or characters that are not Unicode.
func (p *Problems) CheckTexts(place string, value any) {
	isBad := func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }
	switch value := value.(type) {
	case string:
		if strings.ContainsFunc(value, isBad) {
			p.Addf(place, "has a control character or a broken one; take it out")
		}
	case []any:
		for i, item := range value {
			p.CheckTexts(fmt.Sprintf("%s[%d]", place, i), item)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			p.CheckTexts(place+"."+key, key)
			p.CheckTexts(place+"."+key, value[key])
		}
	}
}

// Decode decodes JSON into a struct. For an unknown key or a value of another type it adds a problem and returns false.
func (p *Problems) Decode(place string, text []byte, to any) bool {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(to); err != nil {
		p.Addf(place, "%s", strings.TrimPrefix(err.Error(), "json: "))
		return false
	}
	return true
}
