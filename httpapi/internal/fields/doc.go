// Package fields parses and formats values of HTTP header fields. It works on byte slices and imports no HTTP library.
// Only Lines and RetryAfter allocate memory.
//
//	Accept-Encoding          RFC 9110, section 12.5.3
//	ETag, If-None-Match      RFC 9110, sections 8.8.3 and 13.1.2
//	X-Forwarded-For          behind trusted proxies
package fields
