package source

import (
	"encoding/json"
	"errors"
	"strings"
)

// Limits of JSON, more than any list of rates needs.
const (
	jsonDepthMax  = 64
	jsonValuesMax = 100_000
)

var (
	errTooDeep = errors.New("nested too deeply")
	errTooMany = errors.New("more values than any list of rates has")
)

// jsonReader reads one text.
type jsonReader struct {
	*json.Decoder
	values int // so far
}

// jsonKind is what a JSON value is.
type jsonKind string

const (
	jsonNull   jsonKind = "null"
	jsonFlag   jsonKind = "a flag"
	jsonNumber jsonKind = "a number"
	jsonText   jsonKind = "a text"
	jsonList   jsonKind = "a list"
	jsonObject jsonKind = "an object"
)

// jsonValue is a JSON value as it was written: numbers keep their digits, objects all keys that stand in them.
type jsonValue struct {
	kind    jsonKind
	text    string // of numbers, texts and flags
	items   []*jsonValue
	members []jsonMember
}

type jsonMember struct {
	key   string
	value *jsonValue
}

// parseJSON reads exactly one JSON value. encoding/json into structs would let a doubled key and a key in other letters pass.
func parseJSON(text string) (*jsonValue, *Failure) {
	var whole json.RawMessage
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		return nil, &Failure{Kind: WrongContent, Detail: "want JSON, got what begins with " + quoted(text) + ": " + err.Error(), Cause: err}
	}
	reader := &jsonReader{Decoder: json.NewDecoder(strings.NewReader(text))}
	reader.UseNumber()
	value, err := reader.value(jsonDepthMax)
	if err != nil {
		return nil, &Failure{Kind: WrongContent, Detail: "the JSON can't be read: " + err.Error(), Cause: err}
	}
	return value, nil
}

func (r *jsonReader) value(depth int) (*jsonValue, error) {
	if depth == 0 {
		return nil, errTooDeep
	}
	if r.values++; r.values > jsonValuesMax {
		return nil, errTooMany
	}
	token, err := r.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			return r.list(depth)
		}
		return r.object(depth)
	case json.Number:
		return &jsonValue{kind: jsonNumber, text: token.String()}, nil
	case string:
		return &jsonValue{kind: jsonText, text: token}, nil
	case bool:
		if token {
			return &jsonValue{kind: jsonFlag, text: "true"}, nil
		}
		return &jsonValue{kind: jsonFlag, text: "false"}, nil
	}
	return &jsonValue{kind: jsonNull, text: "null"}, nil
}

func (r *jsonReader) list(depth int) (*jsonValue, error) {
	list := &jsonValue{kind: jsonList}
	for r.More() {
		item, err := r.value(depth - 1)
		if err != nil {
			return nil, err
		}
		list.items = append(list.items, item)
	}
	return list, r.end()
}

func (r *jsonReader) object(depth int) (*jsonValue, error) {
	object := &jsonValue{kind: jsonObject}
	for r.More() {
		token, err := r.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string)
		value, err := r.value(depth - 1)
		if err != nil {
			return nil, err
		}
		object.members = append(object.members, jsonMember{key: key, value: value})
	}
	return object, r.end()
}

// end takes the bracket at the end. The text is known to be valid, so it is there.
func (r *jsonReader) end() error {
	_, err := r.Token()
	return err
}
