// Package fields reads and writes values of HTTP header fields for all packages that answer requests. It knows neither
// requests nor connections, works on borrowed bytes, and allocates memory in Lines only.
//
//	encoding.go   Accept-Encoding: RFC 9110, section 12.5.3
//	etag.go       ETag and If-None-Match: RFC 9110, sections 8.8.3 and 13.1.2
//	forwarded.go  X-Forwarded-For, as far as trusted proxies wrote it
//	limits.go     RateLimit: draft-ietf-httpapi-ratelimit-headers
//	syntax.go     case-insensitive names, blanks, ports
package fields
