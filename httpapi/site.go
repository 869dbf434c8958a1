package httpapi

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/conn"
)

// Site answers requests for paths outside the API: web pages for people, and the API specification. These requests do
// not count against an API quota; a Site has its own limits.
//
// ServeHTTP may keep the request and the body after it returns. The body has at most Limits.BodyBytesMax bytes.
// RemoteAddr is the client's address with port 0, also behind a trusted proxy. TLS is not nil if the client uses https,
// directly or according to X-Forwarded-Proto of a trusted proxy. The request header X-Request-Id contains the id of the
// response.
//
// The server adds X-Request-Id and X-Content-Type-Options to the response, and the headers that announce the end of
// anonymous access. It does not compress the body: if a body contained a secret and an attacker's text, the compressed
// length would reveal the secret. For a large body use the method SetBody of the http.ResponseWriter, which does not
// copy.
type Site interface {
	http.Handler
	// Has reports whether the site answers a path. If not, the server answers 404 with an API error. accept is the
	// Accept header of a GET or HEAD, and "" for other methods. With it, a Site can send a web page to browsers even
	// for an unknown path.
	Has(path, accept string) bool
}

// acceptOf returns the argument accept of HasPage.
func acceptOf(ctx *fasthttp.RequestCtx) string {
	if ctx.IsGet() || ctx.IsHead() {
		return string(ctx.Request.Header.Peek(fasthttp.HeaderAccept))
	}
	return ""
}

// pageResponse records the response of a Site.
type pageResponse struct {
	header http.Header
	status int // 0 = not set
	body   bytes.Buffer
	shared []byte // the body, if SetBody was called
}

// SetBody sets the body without a copy, so that many slow downloads of a large file share its memory. Do not change the
// body afterwards.
func (p *pageResponse) SetBody(body []byte) {
	p.WriteHeader(http.StatusOK)
	p.shared = body
}

// Header implements http.ResponseWriter.
func (p *pageResponse) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *pageResponse) WriteHeader(status int) {
	if p.status == 0 {
		p.status = status
	}
}

// Write implements http.ResponseWriter.
func (p *pageResponse) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.body.Write(b)
}

// sitePages passes requests to Config.Site.
type sitePages struct{ *responder }

// HasPage is Site.Has, but false for /v1 and all paths below it.
func (p *sitePages) HasPage(path, accept string) bool {
	return p.config.Site != nil && path != "/v1" && !strings.HasPrefix(path, "/v1/") && p.config.Site.Has(path, accept)
}

// answerSite passes a request to Config.Site and sends the response.
func (p *sitePages) answerSite(ctx *fasthttp.RequestCtx) {
	requestID := p.config.RequestID()
	id := string(requestID[:])
	request, err := p.pageRequest(ctx, id)
	if err != nil { // conn.Malformed accepts some requests that net/http rejects
		ctx.SetConnectionClose()
		p.reject(ctx, engine.CodeMalformedRequest, "The request can't be read.")
		p.config.Logger.LogAttrs(context.Background(), slog.LevelDebug, "a request for a page can't be read", slog.String("requestId", id))
		return
	}
	page := pageResponse{header: http.Header{}}
	p.config.Site.ServeHTTP(&page, request)
	p.startPage(ctx, id, &page)
	body := page.body.Bytes()
	if page.shared != nil {
		body = page.shared
	}
	ctx.Response.SkipBody = ctx.IsHead()
	ctx.Response.SetBodyRaw(body)
}

// pageRequest returns the request for net/http. It is a copy, because the HTTP library reuses the buffers of ctx.
func (p *sitePages) pageRequest(ctx *fasthttp.RequestCtx, id string) (*http.Request, error) {
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(ctx.Request.Header.Header())))
	if err != nil {
		return nil, err
	}
	body := bytes.Clone(ctx.Request.Body())
	request.Body = io.NopCloser(bytes.NewReader(body))
	request.ContentLength, request.TransferEncoding = int64(len(body)), nil
	request.Header.Set(headerRequestID, id)
	request.RemoteAddr = netip.AddrPortFrom(p.clientAddress(ctx), 0).String()
	if p.overHTTPS(ctx) {
		request.TLS = &tls.ConnectionState{}
	}
	return request, nil
}

// overHTTPS reports whether the client uses https, directly or according to a trusted proxy.
func (p *sitePages) overHTTPS(ctx *fasthttp.RequestCtx) bool {
	c, ok := ctx.Conn().(*conn.Conn)
	return p.config.Certificate != nil || ok && p.proxies.Contains(c.Peer()) && string(ctx.Request.Header.Peek(fasthttp.HeaderXForwardedProto)) == "https"
}

// startPage sets the status and the headers of a response of the site.
func (p *sitePages) startPage(ctx *fasthttp.RequestCtx, id string, page *pageResponse) {
	header := &ctx.Response.Header
	header.SetNoDefaultContentType(true)
	ctx.SetStatusCode(cmp.Or(page.status, http.StatusOK))
	for _, name := range slices.Sorted(maps.Keys(page.header)) {
		for _, value := range page.header[name] {
			header.Add(name, value)
		}
	}
	header.SetCanonical(bytesOf(headerRequestID), bytesOf(id))
	header.Del(fasthttp.HeaderXContentTypeOptions)
	p.setHeaderLines(header, p.appendDeprecation([]byte(fasthttp.HeaderXContentTypeOptions+": nosniff\r\n")))
}
