// Package conn handles the connections of an HTTP server: connection limits, deadlines, TLS, checks of the raw bytes of
// requests and shutdown. It does not know routes.
//
// Listen wraps the listener of a fasthttp.Server, whose connections then have the type *Conn. Bytes take one of two
// ways:
//
//	network ─ Conn.Read ─ ParsePlainGet ─ Express of the server ─ Conn.Write        nearly all requests
//	network ─ Conn.Read ─ fasthttp ─ Malformed ─ handler ─ Conn.EndRequest          all others
//
// The server's handler calls Malformed for each request, and Conn.EndRequest at the end of one without a body. It
// closes the connection after a request with a body, and refuses Transfer-Encoding.
//
//	listener.go       accepts connections up to a cap; retries when file descriptors or memory are short; stops
//	clientlimit.go    limits the connections of each client
//	idle.go           finds the connection to close for a new one at the cap
//	conn.go           reads and writes; decides which of the two ways the bytes take
//	plainget.go       parses the head of a plain GET
//	guard.go          rejects malformed requests that fasthttp accepts
//
// # Which way
//
// Express may only get bytes that begin a request. So Conn.Read offers bytes to it only if fasthttp has read whole
// requests before: when the connection is new, and after EndRequest. EndRequest counts only if fasthttp has read,
// since its buffer was last empty, bytes with exactly one end of a head, at their end: then its buffer is empty
// again, whatever the request was. A request in several pieces thus takes the second way, and so does the next one.
package conn
