package httpapi

import (
	"unsafe"

	"github.com/valyala/fasthttp"
)

// Names and values of headers.
const (
	headerRequestID      = "X-Request-Id"
	contentTypeJSON      = "application/json; charset=utf-8"
	headerResourcePolicy = "Cross-Origin-Resource-Policy"
	// keyIgnoredLine is the header line of a response to an unusable API key before keys are required. The request was
	// answered as an anonymous one.
	keyIgnoredLine = "X-Key-Status: ignored\r\n"
	noStore        = "no-store"
	methodsAllowed = "GET, HEAD, OPTIONS"
	// contentPolicy is for a browser that shows a response as a page. The browser must not execute or load anything in it.
	contentPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
	// exposedHeaders are the headers of a response that a web page of another origin may read.
	exposedHeaders = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, " +
		"Retry-After, Deprecation, Sunset, Link, ETag, X-Request-Id"
	// preflightSeconds is the time for which a browser may cache the response to OPTIONS.
	preflightSeconds = "86400"
	// preflightHeaders are the headers of a request that a web page of another origin may set. Browser libraries set some
	// of them on a GET; they are harmless.
	preflightHeaders = "Accept, Content-Type, If-None-Match, X-Request-Id"
	// preflightHeadersWithAuth is used instead of preflightHeaders if Config.AllowAuthorizationHeader is set.
	preflightHeadersWithAuth = preflightHeaders + ", Authorization"
)

// templateLines returns the names and values of the headers that all responses of the API have, except Content-Type
// and X-Request-Id.
// The values are those for an error. hasAdmitter means that API keys are checked. The response then depends on the key,
// so Vary names Authorization.
func templateLines(hasAdmitter bool) [][2]string {
	vary := fasthttp.HeaderAcceptEncoding
	if hasAdmitter {
		vary += ", " + fasthttp.HeaderAuthorization
	}
	return [][2]string{
		{fasthttp.HeaderCacheControl, noStore},
		{fasthttp.HeaderVary, vary},
		{fasthttp.HeaderAccessControlAllowOrigin, "*"},
		{fasthttp.HeaderAccessControlExposeHeaders, exposedHeaders},
		{fasthttp.HeaderXContentTypeOptions, "nosniff"},
		{fasthttp.HeaderContentSecurityPolicy, contentPolicy},
		{fasthttp.HeaderReferrerPolicy, "no-referrer"},
		{headerResourcePolicy, "cross-origin"},
	}
}

// bytesOf returns the bytes of a string without a copy. Danger: the caller must not change them.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// textOf returns bytes as a string without a copy. Danger: if the bytes change, the string changes too.
func textOf(borrowed []byte) string { return unsafe.String(unsafe.SliceData(borrowed), len(borrowed)) }
