package conn

import (
	"errors"
	"net"
)

// Express answers requests at the beginning of read, writes the answers and returns the number of bytes of those
// requests. The server gets the remaining bytes. An error ends the connection.
//
// Express runs inside the connection's Read, so the server considers the connection idle meanwhile. It may call the
// same methods as a handler, but BeginExpress instead of BeginRequest.
type Express func(c *Conn, read []byte) (used int, err error)

// States of a connection that Close distinguishes.
const (
	connReads     uint32 = iota // waiting for a request, or the server is working on one
	connExpresses               // Express is running
	connEnds                    // Close was called while Express was running
)

// answerExpress calls Express with the bytes that were just read. It moves those that are left for the server to the
// beginning of read and returns their number.
func (c *Conn) answerExpress(read []byte) (remaining int, err error) {
	if c.express == nil || c.requests == 0 || c.receivedBytes > 0 || c.framing.midRequest() || !c.state.CompareAndSwap(connReads, connExpresses) {
		return len(read), nil
	}
	used, err := c.express(c, read)
	remaining = copy(read, read[used:])
	if c.state.CompareAndSwap(connExpresses, connReads) {
		return remaining, err
	}
	if remaining == 0 {
		return 0, errors.Join(net.ErrClosed, c.closeNow())
	}
	c.state.Store(connReads) // the server is shutting down, and closes the connection after its answer
	return remaining, err
}

// BeginExpress notes that Express begins to answer a request: whether it is the first in the bytes read, and whether
// nothing follows it in them.
func (c *Conn) BeginExpress(first, only bool) { c.firstInRead, c.onlyInRead = first, only }

// Request returns the raw bytes of the present request, nil if it came in more than one read. They are wrong if the
// length given to BeginRequest was wrong. They are valid until the next Read.
func (c *Conn) Request() []byte { return c.request }
