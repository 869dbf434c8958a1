package contract

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"net/http"
	"strings"
)

// Where the documents are, and the pages that explain them.
const (
	pathJSON     = "/openapi.json"
	pathYAML     = "/openapi.yaml"
	pathCatalog  = "/.well-known/api-catalog"
	pathPostman  = "/postman.json"
	pathLLMs     = "/llms.txt"
	pathDocs     = "/docs"
	typeJSON     = "application/json"
	typeYAML     = "application/yaml"
	typeLinkset  = `application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"`
	typeMarkdown = "text/plain; charset=utf-8" // Markdown, which browsers show as it is under this type
)

// The documents as they lie beside the code.
//
//go:embed openapi.yaml
var yamlText string

//go:embed openapi.json
var jsonText string

//go:embed llms.txt
var llmsText string

//go:embed postman.json
var postmanText string

//go:embed api-catalog.json
var catalogText string

// What stands for the address of the node in the files. Where the address is not known it stays in those that can't be without one.
const (
	yamlServer    = "  - url: /"
	jsonServer    = `"url": "/"`
	postmanServer = `"key":"baseUrl","value":"http://127.0.0.1:8080"`
	baseServer    = "{base}"
)

// Config is what Documents need. The zero Config is good.
type Config struct {
	// PublicURL is the origin under which the public reaches the node, such as https://api.example.com, without a slash at the end. ""
	// means that it is not known: links are relative then.
	PublicURL string
}

// Documents are all documents. They never change and are safe for concurrent use.
type Documents struct{ all []*document }

// New is the documents for a node.
func New(c Config) *Documents {
	base := strings.TrimSuffix(c.PublicURL, "/")
	with := func(text, placeholder, name string) func() string {
		return func() string {
			if base == "" {
				return text
			}
			return strings.Replace(text, placeholder, name+string(encode(base)), 1)
		}
	}
	based := func(text string) func() string {
		return func() string { return strings.ReplaceAll(text, baseServer, base) }
	}
	return &Documents{[]*document{
		newDocument(pathJSON, typeJSON, with(jsonText, jsonServer, `"url": `)),
		newDocument(pathYAML, typeYAML, with(yamlText, yamlServer, "  - url: ")),
		newDocument(pathCatalog, typeLinkset, based(catalogText)),
		newDocument(pathPostman, typeJSON, with(postmanText, postmanServer, `"key":"baseUrl","value":`)),
		newDocument(pathLLMs, typeMarkdown, based(llmsText)),
	}}
}

// Register puts the documents at their paths. Each answers all methods of its path.
func (d *Documents) Register(mux *http.ServeMux) {
	for _, document := range d.all {
		mux.Handle(document.path, document)
	}
}

// encode is JSON without HTML's escapes, on one line. What is in here can always be encoded.
func encode(value any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic("contract: " + err.Error())
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
