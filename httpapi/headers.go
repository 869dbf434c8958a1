package httpapi

import (
	"unsafe"

	"github.com/valyala/fasthttp"
)

// Names and values of headers.
const (
	headerRequestID   = "X-Request-Id"
	contentTypeJSON   = "application/json; charset=utf-8"
	headerDeprecation = "Deprecation"
	headerSunset      = "Sunset"
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

// templateLines returns the names and values of the headers that all responses of the API have, except Content-Type.
// The values are those for an error. hasAdmitter means that API keys are checked. The response then depends on the key,
// so Vary names Authorization.
func templateLines(hasAdmitter bool) [][2]string {
	vary := fasthttp.HeaderAcceptEncoding
	if hasAdmitter {
		vary += ", " + fasthttp.HeaderAuthorization
	}
	return [][2]string{
		{headerRequestID, ""},
		{fasthttp.HeaderCacheControl, noStore},
		{fasthttp.HeaderVary, vary},
		{fasthttp.HeaderAccessControlAllowOrigin, "*"},
		{fasthttp.HeaderAccessControlExposeHeaders, exposedHeaders},
		{fasthttp.HeaderXContentTypeOptions, "nosniff"},
		{fasthttp.HeaderContentSecurityPolicy, contentPolicy},
		{fasthttp.HeaderReferrerPolicy, "no-referrer"},
		{"Cross-Origin-Resource-Policy", "cross-origin"},
	}
}

// fillErrorHeaders fills in the header template for errors and for other responses without data. The headers of a 200
// or 304 with data of the API, such as rates, are set by writeHead in head.go.
func fillErrorHeaders(header *fasthttp.ResponseHeader, hasAdmitter bool) {
	header.SetNoDefaultContentType(true)
	header.SetContentType(contentTypeJSON)
	for _, line := range templateLines(hasAdmitter) {
		header.SetCanonical([]byte(line[0]), []byte(line[1]))
	}
}

// fillAccountHeaders fills in account, the headers of all responses of account operations (/v1/account). They are those
// of other errors, without the headers that let a web page of another origin read the response.
func fillAccountHeaders(account, errors *fasthttp.ResponseHeader) {
	errors.CopyTo(account)
	account.Del(fasthttp.HeaderAccessControlAllowOrigin)
	account.Del(fasthttp.HeaderAccessControlExposeHeaders)
	account.SetCanonical([]byte("Cross-Origin-Resource-Policy"), []byte("same-origin"))
}

// bytesOf returns the bytes of a string without a copy. Danger: the caller must not change them.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// textOf returns bytes as a string without a copy. Danger: if the bytes change, the string changes too.
func textOf(borrowed []byte) string { return unsafe.String(unsafe.SliceData(borrowed), len(borrowed)) }
