package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPostman_IsTheContract checks that postman.json is generated from the OpenAPI document.
func TestPostman_IsTheContract(t *testing.T) {
	want := string(newCollection())
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

// UnmarshalJSON implements json.Unmarshaler.
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

// readOpenAPI reads the embedded document.
func readOpenAPI() *openAPI {
	var document openAPI
	if err := json.Unmarshal([]byte(jsonText), &document); err != nil {
		panic("contract: openapi.json: " + err.Error())
	}
	return &document
}

// resolve follows a reference to a parameter.
func (d *openAPI) resolve(r reference) parameter {
	return d.Components.Parameters[strings.TrimPrefix(r.Ref, "#/components/parameters/")]
}

// schemes returns the names of the security schemes of an operation, the preferred one first.
func (d *openAPI) schemes(op *operation) []string {
	choices := d.Security
	if op.Security != nil {
		choices = *op.Security
	}
	var names []string
	for _, choice := range choices {
		for name := range choice { // at most one
			names = append(names, name)
		}
	}
	return names
}

// collectionSchema is the URL of the format.
const collectionSchema = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"

// A Postman collection, format 2.1.
type (
	collection struct {
		Info     collectionInfo `json:"info"`
		Item     []folder       `json:"item"`
		Auth     auth           `json:"auth"`
		Variable []variable     `json:"variable"`
	}
	collectionInfo struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Version     string `json:"version"`
		Schema      string `json:"schema"`
	}
	folder struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Item        []item `json:"item"`
	}
	item struct {
		Name     string   `json:"name"`
		Request  request  `json:"request"`
		Response []sample `json:"response"`
	}
	request struct {
		Method      string    `json:"method"`
		Header      []pair    `json:"header"`
		URL         address   `json:"url"`
		Auth        *auth     `json:"auth,omitempty"`
		Body        *sentBody `json:"body,omitempty"`
		Description string    `json:"description,omitempty"`
	}
	address struct {
		Raw      string     `json:"raw"`
		Host     []string   `json:"host"`
		Path     []string   `json:"path"`
		Query    []pair     `json:"query,omitempty"`
		Variable []variable `json:"variable,omitempty"`
	}
	pair struct {
		Key         string `json:"key"`
		Value       string `json:"value"`
		Description string `json:"description,omitempty"`
		Disabled    bool   `json:"disabled,omitempty"`
	}
	variable struct {
		Key         string `json:"key"`
		Value       string `json:"value"`
		Description string `json:"description,omitempty"`
		Type        string `json:"type,omitempty"`
	}
	auth struct {
		Type   string     `json:"type"`
		Bearer []variable `json:"bearer,omitempty"`
	}
	sentBody struct {
		Mode    string `json:"mode"`
		Raw     string `json:"raw"`
		Options struct {
			Raw struct {
				Language string `json:"language"`
			} `json:"raw"`
		} `json:"options"`
	}
	sample struct {
		Name            string  `json:"name"`
		OriginalRequest request `json:"originalRequest"`
		Status          string  `json:"status"`
		Code            int     `json:"code"`
		Language        string  `json:"_postman_previewlanguage"`
		Header          []pair  `json:"header"`
		Body            string  `json:"body"`
	}
)

// newCollection makes the collection: a folder for each tag, a request for each operation, with its successful
// examples.
func newCollection() []byte {
	document := readOpenAPI()
	all := collection{
		Info: collectionInfo{document.Info.Title, document.Info.Description, document.Info.Version, collectionSchema},
		Auth: bearer("apiKey"),
		Variable: []variable{
			{Key: "baseUrl", Value: "http://127.0.0.1:8080", Description: "Where the service is, without a slash at the end."},
			{Key: "apiKey", Value: "", Description: "Your key. Keep it out of what you share."},
			{Key: "sessionToken", Value: "", Description: "The token of POST /v1/account/sessions, good for 15 minutes."},
		},
	}
	for _, tag := range document.Tags {
		all.Item = append(all.Item, folder{tag.Name, tag.Description, document.items(tag.Name)})
	}
	return encode(all)
}

// items returns the requests of a folder.
func (d *openAPI) items(tag string) []item {
	var items []item
	for _, path := range d.Paths {
		for _, method := range path.value {
			if op := &method.value; slices.Contains(op.Tags, tag) {
				sent := d.request(path.name, strings.ToUpper(method.name), op)
				items = append(items, item{op.Summary, sent, samples(sent, op)})
			}
		}
	}
	return items
}

// request makes a request with the examples of its parameters. Optional ones are disabled.
func (d *openAPI) request(path, method string, op *operation) request {
	r := request{Method: method, Header: []pair{}, URL: address{Host: []string{"{{baseUrl}}"}}, Auth: d.auth(op), Description: op.Description}
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if name, found := strings.CutPrefix(part, "{"); found {
			part = ":" + strings.TrimSuffix(name, "}")
		}
		r.URL.Path = append(r.URL.Path, part)
	}
	r.URL.Raw = "{{baseUrl}}/" + strings.Join(r.URL.Path, "/")
	mark := "?"
	for _, ref := range op.Parameters {
		switch p := d.resolve(ref); p.In {
		case "path":
			r.URL.Variable = append(r.URL.Variable, variable{Key: p.Name, Value: text(p.Example), Description: p.Description})
		case "query":
			r.URL.Query = append(r.URL.Query, pair{p.Name, text(p.Example), p.Description, !p.Required})
			if p.Required {
				r.URL.Raw += mark + p.Name + "=" + text(p.Example)
				mark = "&"
			}
		}
	}
	if op.RequestBody != nil {
		r.Header = append(r.Header, pair{Key: "Content-Type", Value: typeJSON})
		r.Body = &sentBody{Mode: "raw", Raw: indented(op.RequestBody.Content[typeJSON].Examples[0].value.Value)}
		r.Body.Options.Raw.Language = "json"
	}
	return r
}

// auth returns the authorization of a request; nil = that of the collection, the key.
func (d *openAPI) auth(op *operation) *auth {
	schemes := d.schemes(op)
	switch {
	case len(schemes) == 0:
		return &auth{Type: "noauth"}
	case schemes[0] == "session":
		session := bearer("sessionToken")
		return &session
	}
	return nil
}

func bearer(name string) auth {
	return auth{"bearer", []variable{{Key: "token", Value: "{{" + name + "}}", Type: "string"}}}
}

// samples returns the successful examples.
func samples(sent request, op *operation) []sample {
	all := []sample{}
	for _, answer := range op.Responses {
		code, err := strconv.Atoi(answer.name)
		if err != nil || code >= http.StatusMultipleChoices {
			continue
		}
		for _, example := range answer.value.Content[typeJSON].Examples {
			all = append(all, sample{
				Name: example.value.Summary, OriginalRequest: sent, Status: http.StatusText(code), Code: code, Language: "json",
				Header: []pair{{Key: "Content-Type", Value: "application/json; charset=utf-8"}}, Body: indented(example.value.Value),
			})
		}
	}
	return all
}

// text formats an example for a URL.
func text(example json.RawMessage) string {
	var plain string
	if json.Unmarshal(example, &plain) != nil {
		return string(example) // a number
	}
	return plain
}

// indented formats JSON.
func indented(value json.RawMessage) string {
	var out bytes.Buffer
	if err := json.Indent(&out, value, "", "  "); err != nil {
		panic("contract: an example of openapi.json: " + err.Error())
	}
	return out.String()
}
