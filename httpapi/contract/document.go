package contract

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

// Values of headers.
const (
	allowedMethods = "GET, HEAD, OPTIONS"
	// A document changes only with the version of the program, so a cache may keep it for an hour.
	cacheControl = "public, max-age=3600"
	// contentSecurityPolicy is for a browser that shows a document as a page. The browser must not execute or load
	// anything in it.
	contentSecurityPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
	exposedHeaders        = "ETag, Link, X-Request-Id"
)

type document struct {
	path, mediaType string
	content         func() content // creates the content at the first call and then returns the same
}

type content struct {
	body []byte
	etag string // weak, because the server may compress the body
}

func newDocument(path, mediaType string, body func() string) *document {
	return &document{path, mediaType, sync.OnceValue(func() content {
		text := []byte(body())
		digest := sha256.Sum256(text)
		return content{text, string(fields.AppendETag(nil, digest[:]))}
	})}
}

// ServeHTTP implements http.Handler.
func (d *document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	AddLinks(header)
	header.Add("Link", "<"+pathCatalog+`>; rel="api-catalog"`)
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Access-Control-Expose-Headers", exposedHeaders)
	header.Set("Content-Security-Policy", contentSecurityPolicy)
	header.Set("Cross-Origin-Resource-Policy", "cross-origin")
	header.Set("Referrer-Policy", "no-referrer")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		d.send(w, r)
	case http.MethodOptions:
		header.Set("Allow", allowedMethods)
		header.Set("Access-Control-Allow-Methods", allowedMethods)
		header.Set("Access-Control-Allow-Headers", "Accept, Content-Type, If-None-Match, X-Request-Id")
		header.Set("Access-Control-Max-Age", "86400")
		header.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
	default:
		methodNotAllowed(w, r)
	}
}

// send sends the document, or 304 if the client has it.
func (d *document) send(w http.ResponseWriter, r *http.Request) {
	content, header := d.content(), w.Header()
	header.Set("Cache-Control", cacheControl)
	header.Set("ETag", content.etag)
	if fields.IfNoneMatchHits(fields.Lines(r.Header.Values("If-None-Match")), []byte(content.etag)) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", d.mediaType)
	_, _ = w.Write(content.body) // for HEAD too: the server does not send that body
}

// methodNotAllowed sends 405 with an API error. Package httpapi has added X-Request-Id to the request.
func methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Allow", allowedMethods)
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusMethodNotAllowed)
	_, _ = fmt.Fprintf(w, `{"error":{"code":"method_not_allowed","message":"This document knows the methods %s.","requestId":%s}}`,
		allowedMethods, encode(r.Header.Get("X-Request-Id")))
}
