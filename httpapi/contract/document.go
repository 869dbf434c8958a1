package contract

import (
	"net/http"
	"sync/atomic"

	"github.com/tasard/tasard/httpapi/internal/file"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// A document changes only with the version of the program and when Config.KeysRequired changes.
const cacheControl = "public, max-age=3600"

type document struct {
	path, mediaType string
	text            string // includes the sentences that Config.localText replaces
	config          *Config
	newest          atomic.Pointer[content]
}

// content is a document for one keyState.
type content struct {
	keys keyState
	body *rendered.Body
}

// content returns the cached content for the present keyState, or creates it.
func (d *document) content() *content {
	keys := d.config.keyState()
	if newest := d.newest.Load(); newest != nil && newest.keys == keys {
		return newest
	}
	made := &content{keys, rendered.Undated([]byte(d.config.localText(d.text, keys)))}
	d.newest.Store(made)
	return made
}

// ServeHTTP implements http.Handler.
func (d *document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	AddLinks(w.Header())
	w.Header().Add("Link", "<"+pathCatalog+`>; rel="api-catalog"`)
	(&file.File{
		MediaType: d.mediaType, CacheControl: cacheControl, Admit: d.config.Admit,
		Content: func() (*rendered.Body, error) { return d.content().body, nil },
	}).ServeHTTP(w, r)
}
