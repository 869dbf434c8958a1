package contract

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

// Values of headers.
const (
	allowedMethods = "GET, HEAD, OPTIONS"
	// A document changes only with the version of the program, or when keys are announced or required, so a cache may
	// keep it for an hour.
	cacheControl = "public, max-age=3600"
	// contentSecurityPolicy is for a browser that shows a document as a page. The browser must not execute or load
	// anything in it.
	contentSecurityPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
	exposedHeaders        = "ETag, Link, X-Request-Id"
)

type document struct {
	path, mediaType string
	text            string // with the sentences that Config.localText replaces
	config          *Config
	newest          atomic.Pointer[content]
}

// content is a document for one keyState.
type content struct {
	keys             keyState
	body, compressed []byte // compressed with gzip
	etag             string // weak, because both have the same
}

// content returns the content for the present keyState. It makes it once.
func (d *document) content() *content {
	keys := d.config.keyState()
	if newest := d.newest.Load(); newest != nil && newest.keys == keys {
		return newest
	}
	text := []byte(d.config.localText(d.text, keys))
	digest := sha256.Sum256(text)
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	_, writeErr := writer.Write(text)
	if err := errors.Join(writeErr, writer.Close()); err != nil {
		panic("contract: compress " + d.path + ": " + err.Error())
	}
	made := &content{keys, text, compressed.Bytes(), string(fields.AppendETag(nil, digest[:]))}
	d.newest.Store(made)
	return made
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
	if wait, ok := d.config.Admit(r); !ok {
		seconds := int64((wait + time.Second - 1) / time.Second)
		header.Set("Retry-After", strconv.FormatInt(seconds, 10))
		writeError(w, r, http.StatusTooManyRequests, "rate_limited", "Too many requests for pages and documents; Retry-After says how many seconds to wait.")
		return
	}
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
		header.Set("Allow", allowedMethods)
		writeError(w, r, http.StatusMethodNotAllowed, "method_not_allowed", "This document knows the methods "+allowedMethods+".")
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
	header.Set("Vary", "Accept-Encoding")
	body := content.body
	if fields.AcceptsGzip(fields.Lines(r.Header.Values("Accept-Encoding"))) {
		header.Set("Content-Encoding", "gzip")
		body = content.compressed
	}
	_, _ = w.Write(body) // for HEAD too: the server does not send that body
}

// writeError sends an API error. Package httpapi has added X-Request-Id to the request.
func writeError(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"code":"%s","message":"%s","requestId":%s}}`, code, message, encode(r.Header.Get("X-Request-Id")))
}
