// Package fields reads and writes values of HTTP header fields, once for all packages that answer requests: what is said there about
// compression (Accept-Encoding), about what the client has already (ETag, If-None-Match), and the bytes that they are made of. It knows no
// request and no connection, works on borrowed bytes, and allocates nothing but in Lines.
//
//	encoding.go  RFC 9110, section 12.5.3
//	tag.go       RFC 9110, sections 8.8.3 and 13.1.2
//	syntax.go    names without regard to case, blanks, ports
package fields
