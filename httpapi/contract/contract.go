package contract

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

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
	typeMarkdown = "text/plain; charset=utf-8" // for Markdown: browsers show a document of this type
)

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

// Texts in the documents that stand for the URL of the node. Register replaces them by its parameter publicURL. If
// publicURL is "", Register removes baseServer and leaves the others as they are.
const (
	yamlServer    = "  - url: /"
	jsonServer    = `"url": "/"`
	postmanServer = `"key":"baseUrl","value":"http://127.0.0.1:8080"`
	baseServer    = "{base}"
)

// Register adds the documents of the API specification to a mux. publicURL is the origin of the node, such as
// https://api.example.com. If publicURL is "", links in the documents are relative. admit counts a request for its
// client. If it returns false, the client is at a limit and must wait.
func Register(mux *http.ServeMux, publicURL string, admit func(*http.Request) (wait time.Duration, ok bool)) {
	for _, d := range documents(publicURL) {
		d.admit = admit
		mux.Handle(d.path, d)
	}
}

func documents(publicURL string) []*document {
	origin := strings.TrimSuffix(publicURL, "/")
	replacingServer := func(text, placeholder, name string) func() string {
		return func() string {
			if origin == "" {
				return text
			}
			return strings.Replace(text, placeholder, name+string(encode(origin)), 1)
		}
	}
	replacingBase := func(text string) func() string {
		return func() string { return strings.ReplaceAll(text, baseServer, origin) }
	}
	return []*document{
		newDocument(pathJSON, typeJSON, replacingServer(jsonText, jsonServer, `"url": `)),
		newDocument(pathYAML, typeYAML, replacingServer(yamlText, yamlServer, "  - url: ")),
		newDocument(pathCatalog, typeLinkset, replacingBase(catalogText)),
		newDocument(pathPostman, typeJSON, replacingServer(postmanText, postmanServer, `"key":"baseUrl","value":`)),
		newDocument(pathLLMs, typeMarkdown, replacingBase(llmsText)),
	}
}

// encode encodes a value as JSON without HTML escapes. It panics if the value cannot be encoded.
func encode(value any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic("contract: " + err.Error())
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
