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
	yamlServer   = "  - url: /\n"
	jsonServer   = `"url": "/"`
	modelsServer = "{base}"
)

// Config is what Documents need. The zero Config is good.
type Config struct {
	// PublicURL is the origin under which the public reaches the node, such as https://api.example.com, without a slash at the end. ""
	// means that it is not known: links are relative then.
	PublicURL string
}

// Documents are all documents, ready to be sent. They are immutable and safe for concurrent use.
type Documents struct{ all []*document }

// New makes the documents.
func New(c Config) *Documents {
	base := strings.TrimSuffix(c.PublicURL, "/")
	yaml, asJSON := yamlText, jsonText
	if base != "" {
		quoted := string(encode(base))
		yaml = strings.Replace(yaml, yamlServer, "  - url: "+quoted+"\n", 1)
		asJSON = strings.Replace(asJSON, jsonServer, `"url": `+quoted, 1)
	}
	return &Documents{[]*document{
		newDocument(pathJSON, typeJSON, []byte(asJSON)),
		newDocument(pathYAML, typeYAML, []byte(yaml)),
		newDocument(pathCatalog, typeLinkset, newCatalog(base)),
		newDocument(pathPostman, typeJSON, newCollection(base)),
		newDocument(pathModels, typeMarkdown, []byte(strings.ReplaceAll(modelsText, modelsServer, base))),
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
