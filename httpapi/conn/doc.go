// Package conn handles the connections of an HTTP server: connection limits, deadlines, TLS, shutdown, and checks of
// the raw bytes of requests. Routes are in package httpapi.
//
// Listen wraps the listener of a fasthttp.Server, so that its connections have the type *Conn. A request takes one of
// two paths through this package:
//
//	express path    network → Conn.Read → Config.Express (with ParsePlainGet) → Conn.Write   nearly all requests
//	ordinary path   network → Conn.Read → fasthttp → Malformed → handler → Conn.EndRequest   all others
//
// The handler of the fasthttp.Server must call Malformed for each request and refuse Transfer-Encoding. After a request
// without a body it must call Conn.EndRequest; after a request with a body it must close the connection.
//
// Terms:
//
//	head:    the request line and the headers, up to and including the empty line
//	client:  an IPv4 address or an IPv6 /64 prefix
//	cap:     Config.MaxConns, the maximum number of open connections
//	permit:  the right to open one connection; there are as many permits as the cap
//	idle:    open, and waiting for the first byte of a request
//
//	listener.go       accepts connections up to a cap, and of each client up to a limit; retries when file descriptors
//	                  or memory are short; finds the connection to close for a new one at the cap; stops
//	conn.go           reads and writes; chooses the path of each request
//	heads.go          parses the head of a plain GET; rejects malformed requests that fasthttp accepts
//
// # How Conn.Read chooses the path
//
// Express must get bytes that begin with a request. Conn.Read therefore calls Express only
//
//   - on a new connection,
//   - after a call of Express that has used all bytes, and
//   - after EndRequest, if the last Read by fasthttp returned exactly one head.
//
// All other requests take the ordinary path. Examples are a request that arrives in several pieces, and the next one.
package conn
