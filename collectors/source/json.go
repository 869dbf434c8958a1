package source

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
)

// Limits of JSON. No list of rates comes near them.
const (
	jsonDepthMax  = 64
	jsonValuesMax = 100_000
)

type jsonKind string

const (
	jsonNull   jsonKind = "null"
	jsonBool   jsonKind = "a flag"
	jsonNumber jsonKind = "a number"
	jsonString jsonKind = "a text"
	jsonArray  jsonKind = "a list"
	jsonObject jsonKind = "an object"
)

// jsonValue is a JSON value. Unlike encoding/json, it keeps the digits of numbers and repeated keys of objects.
type jsonValue struct {
	kind    jsonKind
	text    string // only numbers, strings, booleans and null have one
	items   []*jsonValue
	members []jsonMember
}

type jsonMember struct {
	key   string
	value *jsonValue
}

// parseJSON parses exactly one JSON value. Decoding into structs would accept repeated keys, and keys in another case.
func parseJSON(text string) *jsonValue {
	var whole json.RawMessage
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		panic(&Failure{Kind: WrongContent, Detail: "want JSON, got what begins with " + quoted(text) + ": " + err.Error(), Cause: err})
	}
	reader := &jsonReader{Decoder: json.NewDecoder(strings.NewReader(text))}
	reader.UseNumber()
	return reader.value(jsonDepthMax)
}

// jsonReader reads a text that is valid JSON.
type jsonReader struct {
	*json.Decoder
	values int // number of values so far
}

func (r *jsonReader) value(depth int) *jsonValue {
	r.values++
	switch {
	case depth == 0:
		failf(WrongContent, "the JSON can't be read: nested too deeply")
	case r.values > jsonValuesMax:
		failf(WrongContent, "the JSON can't be read: more values than any list of rates has")
	}
	switch token := r.token().(type) {
	case json.Delim:
		value := &jsonValue{kind: jsonArray}
		if token == '{' {
			value.kind = jsonObject
		}
		for r.More() {
			if value.kind == jsonArray {
				value.items = append(value.items, r.value(depth-1))
				continue
			}
			key, _ := r.token().(string)
			value.members = append(value.members, jsonMember{key: key, value: r.value(depth - 1)})
		}
		r.token() // the closing bracket
		return value
	case json.Number:
		return &jsonValue{kind: jsonNumber, text: token.String()}
	case string:
		return &jsonValue{kind: jsonString, text: token}
	case bool:
		return &jsonValue{kind: jsonBool, text: strconv.FormatBool(token)}
	}
	return &jsonValue{kind: jsonNull, text: "null"}
}

func (r *jsonReader) token() json.Token {
	token, err := r.Token()
	if err != nil {
		panic(&Failure{Kind: WrongContent, Detail: "the JSON can't be read: " + err.Error(), Cause: err})
	}
	return token
}

// lookup returns the value at a path such as d.results[0].rate, or nil if there is none. The path "" means v itself,
// and [] in a path means the only entry of a list. lookup ends the parsing (see failf) if a key of the path occurs
// twice in an object: JSON does not say which of the two counts.
func (v *jsonValue) lookup(path string) *jsonValue {
	if path == "" {
		return v
	}
	current := v
	for part := range strings.SplitSeq(path, ".") {
		name, indices, _ := strings.Cut(part, "[")
		if name != "" {
			if current = current.member(name, path); current == nil {
				return nil
			}
		}
		if indices == "" {
			continue
		}
		for index := range strings.SplitSeq(strings.TrimSuffix(indices, "]"), "][") {
			if index == "" && current.kind == jsonArray && len(current.items) > 1 {
				failf(Layout, "%s: want a list of one entry, found %d", quoted(path), len(current.items))
			}
			number, err := strconv.Atoi(cmp.Or(index, "0"))
			if err != nil || number < 0 || current.kind != jsonArray || number >= len(current.items) {
				return nil
			}
			current = current.items[number]
		}
	}
	return current
}

func (v *jsonValue) member(name, path string) *jsonValue {
	var value *jsonValue
	for _, member := range v.members {
		if member.key != name {
			continue
		}
		if value != nil {
			failf(Value, "the key %s occurs twice in one object, on the path %s", quoted(name), quoted(path))
		}
		value = member.value
	}
	return value
}
