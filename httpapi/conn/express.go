package conn

import (
	"errors"
	"net"
)

// Express is a function that may answer requests before fasthttp reads them. read holds the newly received bytes, and
// Express may answer the requests at their beginning. It writes the responses itself, and returns the total length of
// the requests that it answered. fasthttp gets the remaining bytes. An error ends the connection.
//
// Express runs inside Conn.Read, so fasthttp considers the connection idle while Express runs. Express may call the
// methods of Conn that a handler may call, but BeginExpress instead of BeginRequest.
type Express func(c *Conn, read []byte) (used int, err error)

// Values of Conn.state.
const (
	connServing   uint32 = iota // Express is not running
	connInExpress               // Express is running
	connClosing                 // Express is running, and Close was called meanwhile
)

// answerExpress calls Express with the bytes that were just read. It moves the bytes that Express did not use to the
// beginning of read, and returns their number.
func (c *Conn) answerExpress(read []byte) (remaining int, err error) {
	if c.express == nil || c.requests == 0 || c.receivedBytes > 0 || !c.framing.betweenRequests() || !c.state.CompareAndSwap(connServing, connInExpress) {
		return len(read), nil
	}
	used, err := c.express(c, read)
	remaining = copy(read, read[used:])
	if c.state.CompareAndSwap(connInExpress, connServing) {
		return remaining, err
	}
	if remaining == 0 {
		return 0, errors.Join(net.ErrClosed, c.closeNow())
	}
	c.state.Store(connServing) // the server is shutting down, and closes the connection after its next response
	return remaining, err
}

// BeginExpress must be called before Express answers a request. first means that it is the first request in the bytes
// that Express got. only means that no bytes follow the request.
func (c *Conn) BeginExpress(first, only bool) { c.firstInRead, c.onlyInRead = first, only }

// Request returns the raw bytes of the current request, or nil if they came in more than one read. BeginRequest must
// have been called with the true length of the request. The bytes are valid until the next Read.
func (c *Conn) Request() []byte { return c.request }
