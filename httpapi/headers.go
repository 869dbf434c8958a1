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
	noStore           = "no-store"
	gzipCoding        = "gzip"
	methodsAllowed    = "GET, HEAD, OPTIONS"
	// With contentPolicy a browser that shows a response as a page executes and loads nothing in it.
	contentPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
	// exposedHeaders are the headers that a page of another origin may read.
	exposedHeaders = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit-Policy, RateLimit, " +
		"Retry-After, Deprecation, Sunset, Link, ETag, X-Request-Id"
	// preflightSeconds is the time for which a browser may cache the response to OPTIONS.
	preflightSeconds = "86400"
	// preflightHeaders are the headers that a page of another origin may send.
	preflightHeaders = "If-None-Match"
	// preflightHeadersWithAuth replaces preflightHeaders with Config.AllowAuthorizationHeader.
	preflightHeadersWithAuth = "If-None-Match, Authorization"
)

// templateLines returns the headers that all responses have, except Content-Type, with their values in an error
// response. With an admitter, responses depend on the API key, so Vary names Authorization.
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

// fillErrorHeaders fills in the template for all responses except the 200 and 304 of data operations (see head.go).
func fillErrorHeaders(header *fasthttp.ResponseHeader, hasAdmitter bool) {
	header.SetNoDefaultContentType(true)
	header.SetContentType(contentTypeJSON)
	for _, line := range templateLines(hasAdmitter) {
		header.SetCanonical([]byte(line[0]), []byte(line[1]))
	}
}

// fillAccountHeaders fills in the template for account operations, whose responses no page of another origin may read.
func fillAccountHeaders(header, template *fasthttp.ResponseHeader) {
	template.CopyTo(header)
	header.Del(fasthttp.HeaderAccessControlAllowOrigin)
	header.Del(fasthttp.HeaderAccessControlExposeHeaders)
	header.SetCanonical([]byte("Cross-Origin-Resource-Policy"), []byte("same-origin"))
}

// bytesOf returns the bytes of a string without a copy. Danger: the caller must not change them.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// textOf returns bytes as a string without a copy. Danger: if the bytes change, the string changes too.
func textOf(borrowed []byte) string { return unsafe.String(unsafe.SliceData(borrowed), len(borrowed)) }
