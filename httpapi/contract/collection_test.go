package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestPostman_IsTheContract(t *testing.T) {
	want := string(newCollection(t))
	if *update {
		if err := os.WriteFile("postman.json", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != postmanText {
		t.Fatal("postman.json is not what openapi.json says; make it anew: go test ./httpapi/contract -update")
	}
}

// The parts of an OpenAPI document that the collection needs.
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
		Security             *[]map[string][]string // nil = that of the document
		Parameters           []reference
		RequestBody          *struct{ Content mediaTypes }
		Responses            ordered[struct {
			Description string
			Content     mediaTypes
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
	mediaTypes map[string]struct {
		Examples ordered[struct {
			Summary string
			Value   json.RawMessage
		}]
	}
)

// ordered is an object that keeps the order of its fields.
type ordered[T any] []field[T]

type field[T any] struct {
	name  string
	value T
}

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
		*o = append(*o, field[T]{name.(string), value}) // field names are strings
	}
	return nil
}

func readOpenAPI() *openAPI {
	var document openAPI
	if err := json.Unmarshal([]byte(jsonText), &document); err != nil {
		panic("contract: openapi.json: " + err.Error())
	}
	return &document
}

func (d *openAPI) resolve(r reference) parameter {
	return d.Components.Parameters[strings.TrimPrefix(r.Ref, "#/components/parameters/")]
}

const collectionSchema = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"

// object is a JSON object in the order of its names, which alternate with their values. "name?" is left out if its
// value is zero.
type object []any

func (o object) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i := 0; i < len(o); i += 2 {
		name, isOptional := strings.CutSuffix(o[i].(string), "?")
		if isOptional && reflect.ValueOf(o[i+1]).IsZero() {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, encode(name)...), ':'), encode(o[i+1])...)
	}
	return append(out, '}'), nil
}

// newCollection makes a Postman collection, format 2.1: a folder for each tag, a request for each operation, with its
// successful examples.
func newCollection(t *testing.T) []byte {
	document := readOpenAPI()
	folders := []object{}
	requests, operations := 0, 0
	for _, tag := range document.Tags {
		items := document.items(tag.Name)
		requests += len(items)
		folders = append(folders, object{"name", tag.Name, "description", tag.Description, "item", items})
	}
	for _, path := range document.Paths {
		operations += len(path.value)
	}
	if requests != operations || operations < 15 {
		t.Fatalf("%d requests for %d operations: each has one of the tags of the document", requests, operations)
	}
	return encode(object{
		"info", object{"name", document.Info.Title, "description", document.Info.Description, "version", document.Info.Version, "schema", collectionSchema},
		"item", folders,
		"auth", bearer("apiKey"),
		"variable", []object{
			variable("baseUrl", "http://127.0.0.1:8080", "Where the service is, without a slash at the end."),
			variable("apiKey", "", "Your key. Keep it out of what you share."),
			variable("sessionToken", "", "The token of POST /v1/account/sessions, good for 15 minutes."),
		},
	})
}

func variable(name, value, description string) object {
	return object{"key", name, "value", value, "description?", description}
}

func (d *openAPI) items(tag string) []object {
	var items []object
	for _, path := range d.Paths {
		for _, method := range path.value {
			if op := &method.value; slices.Contains(op.Tags, tag) {
				sent := d.request(path.name, strings.ToUpper(method.name), op)
				items = append(items, object{"name", op.Summary, "request", sent, "response", samples(sent, op)})
			}
		}
	}
	return items
}

// request makes a request with the examples of its parameters. Optional ones are disabled.
func (d *openAPI) request(path, method string, op *operation) object {
	path = strings.NewReplacer("{", ":", "}", "").Replace(path)
	raw, mark := "{{baseUrl}}"+path, "?"
	var query, variables []object
	for _, ref := range op.Parameters {
		switch p := d.resolve(ref); p.In {
		case "path":
			variables = append(variables, variable(p.Name, text(p.Example), p.Description))
		case "query":
			query = append(query, object{"key", p.Name, "value", text(p.Example), "description?", p.Description, "disabled?", !p.Required})
			if p.Required {
				raw += mark + p.Name + "=" + text(p.Example)
				mark = "&"
			}
		}
	}
	headers, body := []object{}, object(nil)
	if op.RequestBody != nil {
		headers = append(headers, variable("Content-Type", typeJSON, ""))
		example := indented(op.RequestBody.Content[typeJSON].Examples[0].value.Value)
		body = object{"mode", "raw", "raw", example, "options", object{"raw", object{"language", "json"}}}
	}
	url := object{"raw", raw, "host", []string{"{{baseUrl}}"}, "path", strings.Split(path[1:], "/"), "query?", query, "variable?", variables}
	return object{"method", method, "header", headers, "url", url, "auth?", d.auth(op), "body?", body, "description?", op.Description}
}

// auth returns the authorization of a request; nil = that of the collection, the key.
func (d *openAPI) auth(op *operation) object {
	choices := d.Security
	if op.Security != nil {
		choices = *op.Security
	}
	for _, choice := range choices {
		for scheme := range choice { // at most one; the first is preferred
			if scheme == "session" {
				return bearer("sessionToken")
			}
			return nil
		}
	}
	return object{"type", "noauth"}
}

func bearer(name string) object {
	return object{"type", "bearer", "bearer", []object{{"key", "token", "value", "{{" + name + "}}", "type", "string"}}}
}

func samples(sent object, op *operation) []object {
	all := []object{}
	for _, answer := range op.Responses {
		code, err := strconv.Atoi(answer.name)
		if err != nil || code >= http.StatusMultipleChoices {
			continue
		}
		for _, example := range answer.value.Content[typeJSON].Examples {
			all = append(all, object{
				"name", example.value.Summary, "originalRequest", sent, "status", http.StatusText(code), "code", code, "_postman_previewlanguage", "json",
				"header", []object{variable("Content-Type", "application/json; charset=utf-8", "")}, "body", indented(example.value.Value),
			})
		}
	}
	return all
}

func text(example json.RawMessage) string {
	var plain string
	if json.Unmarshal(example, &plain) != nil {
		return string(example) // a number
	}
	return plain
}

func indented(value json.RawMessage) string {
	var out bytes.Buffer
	if err := json.Indent(&out, value, "", "  "); err != nil {
		panic("contract: an example of openapi.json: " + err.Error())
	}
	return out.String()
}
