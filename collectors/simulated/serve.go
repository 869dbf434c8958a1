package simulated

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

const (
	formBytesMax = 64 << 10
	gzipBytesMin = 512
	retryAfter   = 2 // seconds, of TooMany and of silent sites
	contentHTML  = "text/html; charset=utf-8"
	contentJSON  = "application/json; charset=utf-8"
	acceptPage   = "text/html,application/xhtml+xml,*/*;q=0.8"
	formContent  = "application/x-www-form-urlencoded"
)

// route is one address of one site with its response.
type route struct {
	method, host, path string
	query              string                   // name=value that must be in the query; "" = any query
	cookies            []string                 // Set-Cookie values, in order
	accepts            func(*http.Request) bool // reports a valid request; others get 200 with an empty body. nil = all are valid
	nextPath           string                   // path of the second step, which the page names
	render             func(*pageData) document
	institution        string   // of the site, which is silent when the institution is; "" = none
	sources            []string // ids of the definitions whose document it is
}

// targets returns the keys of faults that affect the route.
func (r *route) targets() []string { return append(append([]string{}, r.sources...), r.host) }

// document is a response before it is sent.
type document struct {
	contentType string
	body        []byte
	modified    time.Time // zero = without validators
	status      int       // 0 = 200
	latin       bool      // sent in windows-1252
}

// ServeHTTP answers as the requested host.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := hostName(r.Host)
	if s.faults.find(Fault.ofHandshake, name).fault != "" {
		panic(http.ErrAbortHandler) // a connection from before the fault: forces a new handshake
	}
	r.Body = http.MaxBytesReader(w, r.Body, formBytesMax)
	r.URL.Host = name
	at := s.find(r.Method, r.URL)
	targets := []string{name}
	if at != nil {
		targets = at.targets()
	}
	on := s.faults.find(Fault.ofAnswer, targets...)
	if r.Method == http.MethodPost && !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		_ = r.ParseForm() // any other body has no fields
	} else {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices when the client disconnects
	}
	if at == nil {
		at = &route{method: r.Method, host: name, path: r.URL.Path, render: notFoundPage}
		if r.URL.Path == "/robots.txt" {
			at.render = robotsTXT
		}
	}
	s.answer(w, r, at, on)
}

func (s *Site) answer(w http.ResponseWriter, r *http.Request, at *route, on activeFault) {
	v := s.pageData(r, on)
	for _, cookie := range at.cookies {
		w.Header().Add("Set-Cookie", cookie)
	}
	switch {
	case s.applyResponseFault(w, r, at, v):
	case v.silent[at.institution] || v.at.IsZero():
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		send(w, r, errorPage(v, http.StatusServiceUnavailable, "Estamos en mantenimiento"))
	case at.accepts != nil && !at.accepts(r):
		w.Header().Set("Content-Type", contentJSON)
		w.WriteHeader(http.StatusOK)
	default:
		send(w, r, v.document(at))
	}
}

// document returns the document of a route with the faults that change documents.
func (v *pageData) document(at *route) document {
	d := v.applyDocumentFault(at.render(v))
	if d.latin {
		d.body = latin(d.body)
	}
	return d
}

// send sends a document with validators, compressed if the client accepts it.
func send(w http.ResponseWriter, r *http.Request, d document) {
	header := w.Header()
	header.Set("Content-Type", d.contentType)
	header.Set("Vary", "Accept-Encoding")
	if d.status != 0 {
		w.WriteHeader(d.status)
		_, _ = w.Write(d.body) // the client may be gone
		return
	}
	if !d.modified.IsZero() { // only workbooks, which are not compressed
		sum := sha256.Sum256(d.body)
		header.Set("ETag", `"0x`+hex.EncodeToString(sum[:8])+`"`)
		http.ServeContent(w, r, "", d.modified, bytes.NewReader(d.body))
		return
	}
	body := d.body
	if len(body) >= gzipBytesMin && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body = gzipped(body)
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client may be gone
}

func gzipped(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // into memory
	_ = w.Close()
	return out.Bytes()
}

// redirectToHTTPS is the handler of port 80.
func redirectToHTTPS(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "https://"+hostName(r.Host)+r.URL.RequestURI(), http.StatusMovedPermanently)
}

func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// requestOf returns the request of a definition as a client would send it, for Document.
func requestOf(wanted *source.Request, at *route) *http.Request {
	r := &http.Request{Method: at.method, Header: http.Header{}, URL: &url.URL{Scheme: "https", Host: at.host, Path: at.path}}
	if address, err := url.Parse(wanted.URL); err == nil && wanted.URL != "" {
		r.URL = address
	}
	r.Header.Set("Accept", acceptPage)
	for name, value := range wanted.Headers {
		r.Header.Set(name, value)
	}
	r.Form = map[string][]string{}
	for name, value := range wanted.Form {
		r.Form.Set(name, value)
	}
	return r
}
