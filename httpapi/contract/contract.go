package contract

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/httpapi/internal/rendered"
)

const (
	pathJSON     = "/openapi.json"
	pathYAML     = "/openapi.yaml"
	pathCatalog  = "/.well-known/api-catalog"
	pathLLMs     = "/llms.txt"
	typeJSON     = "application/json"
	typeYAML     = "application/yaml"
	typeLinkset  = `application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"`
	typeMarkdown = "text/plain; charset=utf-8" // browsers show Markdown of this type
)

//go:embed openapi.yaml
var yamlText string

//go:embed openapi.json
var jsonText string

//go:embed llms.txt
var llmsText string

//go:embed api-catalog.json
var catalogText string

// Placeholders for the node's URL in the documents, which Config.PublicURL replaces. Without a PublicURL, baseServer is
// removed and the others stay.
const (
	yamlServer = "  - url: /"
	jsonServer = `"url": "/"`
	baseServer = "{base}"
)

// Config describes the node for the documents.
type Config struct {
	// PublicURL is the origin of the node, such as https://api.example.com. "" makes links in the documents relative.
	PublicURL string
	Limits    Limits
	// KeysRequired returns the time from which every request needs an API key; zero = not announced. Clock returns the
	// present time.
	KeysRequired func() time.Time
	Clock        func() time.Time
	// Admit counts a request for its client. At the client's limit it returns false, and how long to wait.
	Admit func(*http.Request) (wait time.Duration, ok bool)
}

// Limits are the node's default quotas.
type Limits struct {
	On          bool // false: the node has no limits
	Day, Minute int  // requests of a caller
}

// Register adds the documents of the API specification to a mux.
func Register(mux *http.ServeMux, c Config) {
	for _, d := range c.documents() {
		mux.Handle(d.path, d)
	}
}

func (c *Config) documents() []*document {
	origin := strings.TrimSuffix(c.PublicURL, "/")
	withServer := func(text, placeholder, name string) string {
		if origin == "" {
			return text
		}
		return strings.Replace(text, placeholder, name+string(encode(origin)), 1)
	}
	withBase := func(text string) string { return strings.ReplaceAll(text, baseServer, origin) }
	return []*document{
		{path: pathJSON, mediaType: typeJSON, text: withServer(jsonText, jsonServer, `"url": `), config: c},
		{path: pathYAML, mediaType: typeYAML, text: withServer(yamlText, yamlServer, "  - url: "), config: c},
		{path: pathCatalog, mediaType: typeLinkset, text: withBase(catalogText), config: c},
		{path: pathLLMs, mediaType: typeMarkdown, text: withBase(llmsText), config: c},
	}
}

// Sentences in the documents, for a node with the default quotas and without required keys. localText replaces them.
const (
	keySentence     = "No key is needed today."
	limitsSentence  = "1,000 requests a day, which begins at midnight in Santo Domingo, and 60 in any 60 seconds."
	llmsKeyPhrase   = "no key needed today."
	llmsLimitPhrase = "1,000 requests a day and 60 in any 60 seconds."
)

// localText replaces the sentences about keys and limits by sentences about this node at present.
func (c *Config) localText(text, keysFrom string) string {
	var pairs []string
	switch keysFrom {
	case "":
	case "now":
		pairs = append(pairs, keySentence, "Every request needs a key; /account makes one, for free.", llmsKeyPhrase, "every request needs a key.")
	default:
		pairs = append(pairs, keySentence, "No key is needed until "+keysFrom+"; from then on every request needs one.", llmsKeyPhrase, "no key needed until "+keysFrom+".")
	}
	if !c.Limits.On {
		pairs = append(pairs, limitsSentence, "This node has no limits. Where there are limits, the following holds.", llmsLimitPhrase, "This node has no limits.")
	} else {
		day, minute := thousands(c.Limits.Day), thousands(c.Limits.Minute)
		pairs = append(pairs, limitsSentence, day+" requests a day, which begins at midnight in Santo Domingo, and "+minute+" in any 60 seconds.",
			llmsLimitPhrase, day+" requests a day and "+minute+" in any 60 seconds.")
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// thousands formats a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// keysFrom returns the time from which API keys are required: "" = not announced, "now" = it has passed.
func (c *Config) keysFrom() string {
	from := c.KeysRequired()
	switch {
	case from.IsZero():
		return ""
	case !c.Clock().Before(from):
		return "now"
	}
	return from.UTC().Format(time.RFC3339)
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

type document struct {
	path, mediaType string
	text            string // includes the sentences that Config.localText replaces
	config          *Config
	newest          atomic.Pointer[content]
}

// content is a document for a result of Config.keysFrom.
type content struct {
	keysFrom string
	body     *rendered.Body
}

// content returns the cached content for the present keysFrom, or creates it.
func (d *document) content() *content {
	keysFrom := d.config.keysFrom()
	if newest := d.newest.Load(); newest != nil && newest.keysFrom == keysFrom {
		return newest
	}
	made := &content{keysFrom, rendered.Undated([]byte(d.config.localText(d.text, keysFrom)))}
	d.newest.Store(made)
	return made
}

// ServeHTTP implements http.Handler.
func (d *document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	AddLinks(w.Header())
	w.Header().Add("Link", "<"+pathCatalog+`>; rel="api-catalog"`)
	(&rendered.File{
		// A document changes only with the version of the program and when Config.KeysRequired changes.
		MediaType: d.mediaType, CacheControl: "public, max-age=3600", Admit: d.config.Admit,
		Content: func() (*rendered.Body, error) { return d.content().body, nil },
	}).ServeHTTP(w, r)
}

// AddLinks adds the Link headers of RFC 8631 for the API specification and its documentation to a response, unless it
// has them.
func AddLinks(header http.Header) {
	for _, link := range []string{
		"<" + pathJSON + `>; rel="service-desc"; type="` + typeJSON + `"`,
		`</docs>; rel="service-doc"; type="text/html"`,
	} {
		if !slices.Contains(header.Values("Link"), link) {
			header.Add("Link", link)
		}
	}
}
