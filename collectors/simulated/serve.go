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
	retryAfter   = 2 // seconds; for the fault TooMany, and for institutions that give no rates now
	contentHTML  = "text/html; charset=utf-8"
	contentJSON  = "application/json; charset=utf-8"
	acceptPage   = "text/html,application/xhtml+xml,*/*;q=0.8"
	formContent  = "application/x-www-form-urlencoded"
)

// route is an address of a site, with the function that renders its document.
type route struct {
	method, host, path string
	query              string                   // name=value that must be in the query; "" = any query
	cookies            []string                 // Set-Cookie values, in order
	accepts            func(*http.Request) bool // false = the response is 200 with an empty body; nil = accepts all
	apiPath            string                   // path that the page names as address of the next request; "" = none
	render             func(*pageData) document
	institution        string   // status 503 while this institution gives no rates; "" = never
	sources            []string // ids of the sources that get their document from the route
}

// targets returns the ids of sources and the host for which a fault may be set that affects the route.
func (r *route) targets() []string { return append(append([]string{}, r.sources...), r.host) }

// document is a response that is not sent yet.
type document struct {
	contentType string
	body        []byte
	modified    time.Time // for the validators ETag and Last-Modified; zero = no validators
	status      int       // 0 = 200
	windows1252 bool      // the body must be encoded in windows-1252
}

// ServeHTTP answers for the host that the request names.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host := hostName(r.Host)
	if s.faults.find(Fault.affectsHandshake, host).fault != "" {
		panic(http.ErrAbortHandler) // the connection is older than the fault; close it to force a new handshake
	}
	r.Body = http.MaxBytesReader(w, r.Body, formBytesMax)
	r.URL.Host = host
	rt := s.find(r.Method, r.URL)
	targets := []string{host}
	if rt != nil {
		targets = rt.targets()
	}
	active := s.faults.find(Fault.affectsResponse, targets...)
	if r.Method == http.MethodPost && !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		_ = r.ParseForm() // an invalid form has no fields
	} else {
		_, _ = io.Copy(io.Discard, r.Body) // net/http notices a disconnect only after the body has been read
	}
	if rt == nil {
		rt = &route{method: r.Method, host: host, path: r.URL.Path, render: notFoundPage}
		if r.URL.Path == "/robots.txt" {
			rt.render = robotsTXT
		}
	}
	s.respond(w, r, rt, active)
}

func (s *Site) respond(w http.ResponseWriter, r *http.Request, rt *route, active activeFault) {
	v := s.pageData(r, active)
	for _, cookie := range rt.cookies {
		w.Header().Add("Set-Cookie", cookie)
	}
	switch {
	case s.applyResponseFault(w, r, rt, v):
	case v.silent[rt.institution] || v.time.IsZero():
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		send(w, r, errorPage(v, http.StatusServiceUnavailable, "Estamos en mantenimiento"))
	case rt.accepts != nil && !rt.accepts(r):
		w.Header().Set("Content-Type", contentJSON)
		w.WriteHeader(http.StatusOK)
	default:
		send(w, r, v.document(rt))
	}
}

// document renders the document of a route. It applies v.fault if this fault changes or replaces documents.
func (v *pageData) document(rt *route) document {
	d := v.applyDocumentFault(rt.render(v))
	if d.windows1252 {
		d.body = encodeWindows1252(d.body)
	}
	return d
}

// send sends a document, compressed if the client accepts gzip.
func send(w http.ResponseWriter, r *http.Request, d document) {
	header := w.Header()
	header.Set("Content-Type", d.contentType)
	header.Set("Vary", "Accept-Encoding")
	if d.status != 0 {
		w.WriteHeader(d.status)
		_, _ = w.Write(d.body) // the client may be gone
		return
	}
	if !d.modified.IsZero() { // a workbook, which gzip would not make smaller
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

func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// requestOf returns the HTTP request that a client would send for a request in the definition of a source.
func requestOf(request *source.Request, rt *route) *http.Request {
	r := &http.Request{Method: rt.method, Header: http.Header{}, URL: &url.URL{Scheme: "https", Host: rt.host, Path: rt.path}}
	if address, err := url.Parse(request.URL); err == nil && request.URL != "" {
		r.URL = address
	}
	r.Header.Set("Accept", acceptPage)
	for name, value := range request.Headers {
		r.Header.Set(name, value)
	}
	r.Form = map[string][]string{}
	for name, value := range request.Form {
		r.Form.Set(name, value)
	}
	return r
}
