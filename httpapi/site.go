package httpapi

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/fields"
)

// Site answers the paths that no operation has: pages for people, and the contract as a document. Its requests are
// never charged; it has its own limits.
//
// A request to the site owns its memory. RemoteAddr is the client's address as limits see it, with port 0, and
// X-Request-Id is the id of the answer. The body has at most Limits.BodyBytesMax bytes. The server sends the answer
// with its headers and adds X-Request-Id, X-Content-Type-Options and, while it is announced, the end of anonymous
// access. A text body of more than 1 KiB is compressed for clients that accept gzip, unless Content-Encoding is set.
type Site interface {
	http.Handler
	// Has reports whether the site answers a path. accept is the Accept header of a GET or HEAD, "" for other
	// methods: a browser gets a page also where there is nothing. Otherwise the server answers 404 with the error
	// of the contract.
	Has(path, accept string) bool
}

// hasPage reports whether the site answers a path. Everything under /v1 is answered by operations.
func (s *Server) hasPage(ctx *fasthttp.RequestCtx, path []byte) bool {
	if s.config.Site == nil || string(path) == "/v1" || bytes.HasPrefix(path, []byte("/v1/")) {
		return false
	}
	accept := ""
	if ctx.IsGet() || ctx.IsHead() {
		accept = string(ctx.Request.Header.Peek(fasthttp.HeaderAccept))
	}
	return s.config.Site.Has(string(path), accept)
}

// answerSite asks the site.
func (s *Server) answerSite(ctx *fasthttp.RequestCtx) {
	id := s.newIDText()
	request, err := s.pageRequest(ctx, id)
	if err != nil { // the guard takes what net/http does not
		ctx.SetConnectionClose()
		s.refuse(ctx, engine.CodeMalformedRequest, "The request can't be read.")
		s.config.Logger.LogAttrs(context.Background(), slog.LevelDebug, "a request for a page can't be read", slog.String("requestId", id))
		return
	}
	answer := pageResponse{header: http.Header{}}
	s.config.Site.ServeHTTP(&answer, request)
	s.startPage(ctx, id, &answer)
	body := answer.body.Bytes()
	if ctx.IsHead() {
		ctx.Response.SkipBody = true
	}
	if s.gzipsPage(ctx, &answer) {
		ctx.Response.Header.Set(fasthttp.HeaderContentEncoding, gzipCoding)
		p := s.gzippers.Get().(*gzipper)
		body = p.appendGzip(nil, body)
		s.gzippers.Put(p)
	}
	ctx.Response.SetBodyRaw(body)
}

// pageRequest is the request in memory of its own: the library uses its buffers again.
func (s *Server) pageRequest(ctx *fasthttp.RequestCtx, id string) (*http.Request, error) {
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(ctx.Request.Header.Header())))
	if err != nil {
		return nil, err
	}
	body := bytes.Clone(ctx.Request.Body())
	request.Body = io.NopCloser(bytes.NewReader(body))
	request.ContentLength, request.TransferEncoding = int64(len(body)), nil
	request.Header.Set(headerRequestID, id)
	request.RemoteAddr = netip.AddrPortFrom(s.clientAddress(ctx), 0).String()
	return request, nil
}

// startPage makes the head of a page.
func (s *Server) startPage(ctx *fasthttp.RequestCtx, id string, answer *pageResponse) {
	header := &ctx.Response.Header
	header.SetNoDefaultContentType(true)
	ctx.SetStatusCode(cmp.Or(answer.status, http.StatusOK))
	for name, values := range answer.header {
		for _, value := range values {
			header.Add(name, value)
		}
	}
	header.SetCanonical(bytesOf(headerRequestID), bytesOf(id))
	header.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	s.addDeprecation(header)
	if s.harness != nil {
		s.date(header)
	}
}

// gzipsPage tells whether a page goes out compressed, and says that it might.
func (s *Server) gzipsPage(ctx *fasthttp.RequestCtx, answer *pageResponse) bool {
	if answer.body.Len() < gzipBytesMin || answer.header.Get(fasthttp.HeaderContentEncoding) != "" || !isText(answer.header.Get(fasthttp.HeaderContentType)) {
		return false
	}
	ctx.Response.Header.Add(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	return fields.AcceptsGzip(ctx.Request.Header.PeekAll(fasthttp.HeaderAcceptEncoding))
}

// isText tells what is worth compressing: pictures and fonts are compressed already.
func isText(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "json") || strings.HasSuffix(kind, "yaml") ||
		strings.HasSuffix(kind, "javascript") || strings.HasSuffix(kind, "svg+xml")
}

// pageResponse gathers what the site answers.
type pageResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is http.ResponseWriter.
func (a *pageResponse) Header() http.Header { return a.header }

// WriteHeader is http.ResponseWriter.
func (a *pageResponse) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write is http.ResponseWriter.
func (a *pageResponse) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}
