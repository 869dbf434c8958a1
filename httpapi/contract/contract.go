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
	pathModels   = "/llms.txt"
	pathDocs     = "/docs"
	pathHealth   = "/readyz"
	pathData     = "/v1"
	typeJSON     = "application/json"
	typeYAML     = "application/yaml"
	typeLinkset  = `application/linkset+json; profile="` + catalogProfile + `"`
	typeMarkdown = "text/plain; charset=utf-8" // Markdown, which browsers show as it is under this type
)

// The documents as they lie beside the code.
//
//go:embed openapi.yaml
var yamlText string

//go:embed openapi.json
var jsonText string

//go:embed llms.txt
var modelsText string

// What stands for the address of the node in the files.
const (
	yamlServer   = "  - url: /"
	jsonServer   = `"url": "/"`
	modelsServer = "{base}"
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
	return &Documents{[]*document{
		newDocument(pathJSON, typeJSON, func() []byte { return serverIn(jsonText, jsonServer, `"url": `, base) }),
		newDocument(pathYAML, typeYAML, func() []byte { return serverIn(yamlText, yamlServer, "  - url: ", base) }),
		newDocument(pathCatalog, typeLinkset, func() []byte { return newCatalog(base) }),
		newDocument(pathPostman, typeJSON, func() []byte { return newCollection(base) }),
		newDocument(pathModels, typeMarkdown, func() []byte { return []byte(strings.ReplaceAll(modelsText, modelsServer, base)) }),
	}}
}

// serverIn is the OpenAPI document with the address of the node, where it is known, instead of what stands for it.
func serverIn(text, placeholder, name, base string) []byte {
	if base != "" {
		text = strings.Replace(text, placeholder, name+string(encode(base)), 1)
	}
	return []byte(text)
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
