package rendered

import (
	"errors"
	"net/http"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/encode"
	"github.com/tasard/tasard/httpapi/internal/fields"
)

// Values of headers of all responses with data, of operations and files.
const (
	MethodsAllowed = "GET, HEAD, OPTIONS"
	// ContentPolicy keeps a browser from executing or loading anything if it shows a response as a web page.
	ContentPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
	// PreflightHeaders are the request headers that web pages of other origins may set. Libraries for browsers set some
	// of these headers on a GET; they are harmless.
	PreflightHeaders = "Accept, Content-Type, If-None-Match, X-Request-Id"
	// PreflightSeconds is how long a browser may cache the response to OPTIONS.
	PreflightSeconds = "86400"
)

// File answers requests for one file. Web pages of every origin may read it (CORS). All fields are required.
type File struct {
	MediaType    string
	CacheControl string
	// Admit counts a request for its client. At the client's limit it returns false, and how long to wait.
	Admit func(*http.Request) (wait time.Duration, ok bool)
	// Content returns the present content. If the error is an *engine.Error, the client gets its code and message. Any
	// other error becomes a 500.
	Content func() (*Body, error)
}

// ServeHTTP implements http.Handler.
func (f *File) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Access-Control-Expose-Headers", "ETag, Link, X-Request-Id")
	header.Set("Content-Security-Policy", ContentPolicy)
	header.Set("Cross-Origin-Resource-Policy", "cross-origin")
	header.Set("Referrer-Policy", "no-referrer")
	if wait, ok := f.Admit(r); !ok {
		writeError(w, r, &engine.Error{
			Code: engine.CodeRateLimited, Message: "Too many requests for pages and documents; Retry-After says how many seconds to wait.", RetryAfter: wait,
		})
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		f.send(w, r)
	case http.MethodOptions:
		header.Set("Allow", MethodsAllowed)
		header.Set("Access-Control-Allow-Methods", MethodsAllowed)
		header.Set("Access-Control-Allow-Headers", PreflightHeaders)
		header.Set("Access-Control-Max-Age", PreflightSeconds)
		header.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
	default:
		header.Set("Allow", MethodsAllowed)
		writeError(w, r, &engine.Error{
			Code: engine.CodeMethodNotAllowed, Message: "This document knows the methods " + MethodsAllowed + ".",
		})
	}
}

// send sends the file, or 304 if the client already has it.
func (f *File) send(w http.ResponseWriter, r *http.Request) {
	content, err := f.Content()
	if err != nil {
		var known *engine.Error
		if !errors.As(err, &known) {
			known = &engine.Error{Code: engine.CodeInternalError, Message: "The document can't be made."}
		}
		writeError(w, r, known)
		return
	}
	w.Header().Set("Cache-Control", f.CacheControl)
	w.Header().Set("Content-Type", f.MediaType)
	content.Send(w, r, http.StatusOK)
}

// writeError sends an API error. Package httpapi has added X-Request-Id to the request.
func writeError(w http.ResponseWriter, r *http.Request, err *engine.Error) {
	header := w.Header()
	status, _ := encode.Status(err.Code)
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		header.Set("Retry-After", fields.RetryAfter(err.RetryAfter))
	}
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	body := encode.Field([]byte(`{"error":{`), "code", string(err.Code))
	body = encode.Field(body, "message", err.Message)
	body = encode.Field(body, "requestId", r.Header.Get("X-Request-Id"))
	_, _ = w.Write(append(body, "}}"...)) //nolint:gosec // G705: JSON, which encode has escaped
}
