package httpapi

import (
	"unsafe"

	"github.com/valyala/fasthttp"
)

// Values of headers that never change.
const (
	contentTypeJSON = "application/json; charset=utf-8"
	noStore         = "no-store"
	gzipCoding      = "gzip"
	methodsAllowed  = "GET, HEAD, OPTIONS"
	// contentPolicy lets a browser that is tricked into showing an answer as a page do nothing with it.
	contentPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
	// exposedHeaders are those that a page of another origin may read (Q14).
	exposedHeaders = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit-Policy, RateLimit, " +
		"Retry-After, Deprecation, Sunset, Link, ETag, X-Request-Id"
	// preflightSeconds is how long a browser may remember what OPTIONS said.
	preflightSeconds = "86400"
	// preflightHeaders may be sent by a page of another origin; Authorization only by configuration (Q15).
	preflightHeaders         = "If-None-Match"
	preflightHeadersWithAuth = "If-None-Match, Authorization"
)

// headerNames are the names that are set on each answer, in the form in which the library compares them.
type headerNames struct {
	requestID, cacheControl, etag, contentEncoding, ifNoneMatch, acceptEncoding []byte

	authorization, deprecation, sunset, link, limit, remaining, reset, policy, state []byte
}

func newHeaderNames() headerNames {
	return headerNames{
		requestID:       []byte("X-Request-Id"),
		cacheControl:    []byte(fasthttp.HeaderCacheControl),
		etag:            []byte(fasthttp.HeaderETag),
		contentEncoding: []byte(fasthttp.HeaderContentEncoding),
		ifNoneMatch:     []byte(fasthttp.HeaderIfNoneMatch),
		acceptEncoding:  []byte(fasthttp.HeaderAcceptEncoding),

		authorization: []byte(fasthttp.HeaderAuthorization),
		deprecation:   []byte("Deprecation"),
		sunset:        []byte("Sunset"),
		link:          []byte(fasthttp.HeaderLink),
		limit:         []byte("X-RateLimit-Limit"),
		remaining:     []byte("X-RateLimit-Remaining"),
		reset:         []byte("X-RateLimit-Reset"),
		policy:        []byte("RateLimit-Policy"),
		state:         []byte("RateLimit"),
	}
}

// fillTemplate makes the headers that every answer begins with: those of an error. The two that each answer replaces come
// first, because the library searches from the front.
// With a gate an answer depends on the key as well.
func fillTemplate(header *fasthttp.ResponseHeader, gated bool) {
	vary := fasthttp.HeaderAcceptEncoding
	if gated {
		vary += ", " + fasthttp.HeaderAuthorization
	}
	header.SetNoDefaultContentType(true)
	header.SetContentType(contentTypeJSON)
	for _, line := range [][2]string{
		{"X-Request-Id", ""},
		{fasthttp.HeaderCacheControl, noStore},
		{fasthttp.HeaderVary, vary},
		{fasthttp.HeaderAccessControlAllowOrigin, "*"},
		{fasthttp.HeaderAccessControlExposeHeaders, exposedHeaders},
		{fasthttp.HeaderXContentTypeOptions, "nosniff"},
		{fasthttp.HeaderContentSecurityPolicy, contentPolicy},
		{fasthttp.HeaderReferrerPolicy, "no-referrer"},
		{"Cross-Origin-Resource-Policy", "cross-origin"},
	} {
		header.SetCanonical([]byte(line[0]), []byte(line[1]))
	}
}

// fillPrivateTemplate is the template for account routes: no page of another origin may read them (Q15).
func fillPrivateTemplate(header, template *fasthttp.ResponseHeader) {
	template.CopyTo(header)
	header.Del(fasthttp.HeaderAccessControlAllowOrigin)
	header.Del(fasthttp.HeaderAccessControlExposeHeaders)
	header.SetCanonical([]byte("Cross-Origin-Resource-Policy"), []byte("same-origin"))
}

// bytesOf is the bytes of a text without a copy. Danger: they must only be read.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// textOf is a text over borrowed bytes. Danger: it lives only as long as they do; nothing may keep it.
func textOf(borrowed []byte) string { return unsafe.String(unsafe.SliceData(borrowed), len(borrowed)) }
