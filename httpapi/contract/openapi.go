package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// What the collection is made of: the part of an OpenAPI document that it needs.
type (
	openAPI struct {
		Info struct {
			Title, Version, Description string
		}
		Tags []struct {
			Name, Description string
		}
		Security   []map[string][]string
		Paths      ordered[ordered[operation]]
		Components struct {
			Parameters map[string]parameter
		}
	}
	operation struct {
		Tags                 []string
		Summary, Description string
		Security             *[]map[string][]string // nil: that of the document
		Parameters           []reference
		RequestBody          *struct{ Content content }
		Responses            ordered[struct {
			Description string
			Content     content
		}]
	}
	parameter struct {
		Name, In, Description string
		Required              bool
		Example               json.RawMessage
	}
	reference struct {
		Ref string `json:"$ref"`
	}
	content map[string]struct {
		Examples ordered[struct {
			Summary string
			Value   json.RawMessage
		}]
	}
)

// ordered is an object whose fields keep the order in which they were written.
type ordered[T any] []field[T]

type field[T any] struct {
	name  string
	value T
}

// UnmarshalJSON is json.Unmarshaler.
func (o *ordered[T]) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return errors.Join(err, errors.New("want an object"))
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		var value T
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		*o = append(*o, field[T]{name.(string), value}) // the name of a field is a text
	}
	return nil
}

// readOpenAPI reads the document that is part of the program.
func readOpenAPI() *openAPI {
	var document openAPI
	if err := json.Unmarshal([]byte(jsonText), &document); err != nil {
		panic("contract: openapi.json: " + err.Error())
	}
	return &document
}

// resolve is the parameter that a reference leads to.
func (d *openAPI) resolve(r reference) parameter {
	return d.Components.Parameters[strings.TrimPrefix(r.Ref, "#/components/parameters/")]
}

// schemes are the names of what opens an operation, the first choice first; none where nothing is needed or taken.
func (d *openAPI) schemes(op *operation) []string {
	choices := d.Security
	if op.Security != nil {
		choices = *op.Security
	}
	var names []string
	for _, choice := range choices {
		for name := range choice { // one at most
			names = append(names, name)
		}
	}
	return names
}
