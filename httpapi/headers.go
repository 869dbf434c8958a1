package httpapi

import (
	"unsafe"

	"github.com/valyala/fasthttp"
)

// Values of headers that never change.
const (
	headerRequestID   = "X-Request-Id"
	contentTypeJSON   = "application/json; charset=utf-8"
	headerDeprecation = "Deprecation"
	headerSunset      = "Sunset"
	noStore           = "no-store"
	gzipCoding        = "gzip"
	methodsAllowed    = "GET, HEAD, OPTIONS"
	// contentPolicy lets a browser that is tricked into showing an answer as a page do nothing with it.
	contentPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
	// exposedHeaders are those that a page of another origin may read.
	exposedHeaders = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit-Policy, RateLimit, " +
		"Retry-After, Deprecation, Sunset, Link, ETag, X-Request-Id"
	// preflightSeconds is how long a browser may remember what OPTIONS said.
	preflightSeconds = "86400"
	// preflightHeaders may be sent by a page of another origin; Authorization only by configuration.
	preflightHeaders         = "If-None-Match"
	preflightHeadersWithAuth = "If-None-Match, Authorization"
)

// templateLines are the headers that every answer has besides Content-Type, with the values of an error. With a
// gate an answer depends on the key as well.
func templateLines(gated bool) [][2]string {
	vary := fasthttp.HeaderAcceptEncoding
	if gated {
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

// fillErrorHeaders makes the headers that errors and all other answers but the good ones of data operations begin
// with (see head.go).
func fillErrorHeaders(header *fasthttp.ResponseHeader, gated bool) {
	header.SetNoDefaultContentType(true)
	header.SetContentType(contentTypeJSON)
	for _, line := range templateLines(gated) {
		header.SetCanonical([]byte(line[0]), []byte(line[1]))
	}
}

// fillAccountHeaders is the template for account routes: no page of another origin may read them.
func fillAccountHeaders(header, template *fasthttp.ResponseHeader) {
	template.CopyTo(header)
	header.Del(fasthttp.HeaderAccessControlAllowOrigin)
	header.Del(fasthttp.HeaderAccessControlExposeHeaders)
	header.SetCanonical([]byte("Cross-Origin-Resource-Policy"), []byte("same-origin"))
}

// bytesOf is the bytes of a text without a copy. Danger: they must only be read.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// textOf is the opposite. Danger: it changes with the bytes.
func textOf(borrowed []byte) string { return unsafe.String(unsafe.SliceData(borrowed), len(borrowed)) }
