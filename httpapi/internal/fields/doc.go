// Package fields reads and writes values of HTTP header fields, once for all packages that answer requests: what is
// said there about compression (Accept-Encoding), about what the client has already (ETag, If-None-Match), about
// the client behind proxies (X-Forwarded-For) and about limits (RateLimit), and the bytes that they are made of. It
// knows no request and no connection, works on borrowed bytes, and allocates nothing but in Lines.
//
//	encoding.go   RFC 9110, section 12.5.3
//	tag.go        RFC 9110, sections 8.8.3 and 13.1.2
//	forwarded.go  X-Forwarded-For, as the trusted proxies wrote it
//	limits.go     draft-ietf-httpapi-ratelimit-headers
//	syntax.go     names without regard to case, blanks, ports
package fields
