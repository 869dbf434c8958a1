package jsonfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Formats are the formats that a schema names, which check texts that need a parser. Empty texts are not checked.
type Formats map[string]func(text string) error

// Schema is a compiled schema.
type Schema struct{ compiled *jsonschema.Schema }

// MustCompile compiles a schema that is embedded in the program.
func MustCompile(text []byte, formats Formats) *Schema {
	// It must be absolute: the library makes a file URL of a relative one, and does not find it again if the working
	// directory has a blank or a character outside ASCII.
	const address = "https://tasard.example/file.schema.json"
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for name, check := range formats {
		compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(value any) error {
			if text, isText := value.(string); isText && text != "" {
				return check(text)
			}
			return nil
		}})
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = compiler.AddResource(address, value)
	}
	if err != nil {
		panic("jsonfile: " + err.Error()) // impossible: it is embedded, and tested
	}
	return &Schema{compiler.MustCompile(address)}
}

// Check returns all problems of a file of at most bytesMax bytes.
func (s *Schema) Check(name string, text []byte, bytesMax int) error {
	value, err := read(text, bytesMax)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p := Problems{File: name}
	p.checkTexts("", value)
	if invalid := (*jsonschema.ValidationError)(nil); errors.As(s.compiled.Validate(value), &invalid) {
		p.addInvalid(invalid)
	}
	slices.SortFunc(p.all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) }) // the library has no order
	return p.Err()
}

// read returns the value of a JSON text. Unlike encoding/json, it reports repeated keys.
func read(text []byte, bytesMax int) (any, error) {
	switch {
	case len(text) > bytesMax:
		return nil, fmt.Errorf("the file is longer than %d bytes; shorten it", bytesMax)
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		return nil, errors.New("the file begins with a byte order mark; save it as UTF-8 without one")
	case !utf8.Valid(text):
		return nil, errors.New("the file is not UTF-8; save it as UTF-8")
	}
	var raw json.RawMessage
	if syntax := (*json.SyntaxError)(nil); errors.As(json.Unmarshal(text, &raw), &syntax) {
		line := 1 + bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n"))
		return nil, fmt.Errorf("line %d: the file is not one JSON object: %w; correct it there", line, syntax)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return value, repeatedKey(json.NewDecoder(bytes.NewReader(text)))
}

// repeatedKey returns an error if an object of the next value has a key twice.
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

// Err returns all problems joined, or nil.
func (p *Problems) Err() error { return errors.Join(p.all...) }

// Addf adds a problem. place is the path of the key, such as pages[0].extract; "" = the whole file.
func (p *Problems) Addf(place, format string, args ...any) {
	if place == "" {
		place = "the file"
	}
	problem := fmt.Errorf("%s: %s: %w", p.File, strings.TrimPrefix(place, "."), fmt.Errorf(format, args...))
	isSame := func(other error) bool { return other.Error() == problem.Error() } // of two rules of the schema
	if !slices.ContainsFunc(p.all, isSame) {
		p.all = append(p.all, problem)
	}
}

// addInvalid adds the problems that the schema has found.
func (p *Problems) addInvalid(invalid *jsonschema.ValidationError) {
	names, isName := invalid.ErrorKind.(*kind.PropertyNames)
	for _, cause := range invalid.Causes {
		if !isName {
			p.addInvalid(cause)
		}
	}
	if len(invalid.Causes) > 0 && !isName {
		return
	}
	place := ""
	for _, step := range invalid.InstanceLocation {
		if _, err := strconv.Atoi(step); err == nil {
			place += "[" + step + "]"
		} else {
			place += "." + step
		}
	}
	switch problem := invalid.ErrorKind.(type) {
	case *kind.Required:
		for _, key := range problem.Missing {
			p.Addf(place, "%s is missing", key)
		}
	case *kind.AdditionalProperties:
		p.Addf(place, "unknown key %q", strings.Join(problem.Properties, ", "))
	case *kind.PropertyNames:
		// The library says no place of names.
		if _, isKey := invalid.Causes[0].ErrorKind.(*kind.Enum); isKey {
			p.Addf("", "unknown key %q", names.Property)
		} else {
			p.Addf("", "the name of a header, %.40q, has other characters than letters, digits and hyphens", names.Property)
		}
	case *kind.Format:
		p.Addf(place, "%w", problem.Err)
	default:
		p.Addf(place, "%s", problem.LocalizedString(message.NewPrinter(language.English)))
	}
}

// checkTexts reports texts and keys with control characters, or characters that are not Unicode.
func (p *Problems) checkTexts(place string, value any) {
	isBad := func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }
	switch value := value.(type) {
	case string:
		if strings.ContainsFunc(value, isBad) {
			p.Addf(place, "has a control character or a broken one; take it out")
		}
	case []any:
		for i, item := range value {
			p.checkTexts(fmt.Sprintf("%s[%d]", place, i), item)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			p.checkTexts(place+"."+key, key)
			p.checkTexts(place+"."+key, value[key])
		}
	}
}
