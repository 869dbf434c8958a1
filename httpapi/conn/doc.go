// Package conn handles the connections of an HTTP server: connection limits, deadlines, TLS, checks of the raw bytes of
// requests and shutdown. It does not know routes.
//
// Listen wraps the listener of a fasthttp.Server. The connections then have the type *Conn. Bytes take one of two ways:
//
//	network ─ Conn.Read ─ ParsePlainGet ─ Express of the server ─ Conn.Write        nearly all requests
//	network ─ Conn.Read ─ fasthttp ─ Malformed ─ handler ─ Conn.EndRequest          all others
//
// The server's handler calls Malformed for each request. After a request without a body it calls Conn.EndRequest. After
// a request with a body it closes the connection. It refuses Transfer-Encoding.
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
// Express may only get bytes at the beginning of a request. Conn.Read therefore offers bytes to Express only when
// fasthttp's buffer is empty: on a new connection, and after EndRequest. EndRequest counts only if fasthttp has read
// exactly one head since its buffer was last empty, and the head was at the end of these bytes. Then the buffer is
// empty again, whatever the request was. A request in several pieces takes the second way, and so does the next one.
package conn
