package conn

import (
	"errors"
	"net"
)

// Express answers requests from the front of what was read, one after the other, and writes the answers. It tells
// how many bytes those requests had; the server reads the rest. An error ends the connection.
//
// Express runs in the connection's Read, so the server takes the connection for idle meanwhile. It may call what a
// handler may call, but BeginExpress instead of BeginRequest.
type Express func(c *Conn, read []byte) (used int, err error)

// What a connection does, as far as it matters to one that closes it.
const (
	connReads     uint32 = iota // it waits for a request, or the server works on one
	connExpresses               // Express works on a request
	connEnds                    // it was closed meanwhile
)

// answerExpress offers what was just read to Express, and tells how many bytes are left for the server; they are in
// front.
func (c *Conn) answerExpress(read []byte) (left int, err error) {
	if c.express == nil || c.requests == 0 || c.receivedBytes > 0 || c.framing.midRequest() || !c.state.CompareAndSwap(connReads, connExpresses) {
		return len(read), nil
	}
	used, err := c.express(c, read)
	left = copy(read, read[used:])
	if c.state.CompareAndSwap(connExpresses, connReads) {
		return left, err
	}
	if left == 0 {
		return 0, errors.Join(net.ErrClosed, c.closeNow())
	}
	c.state.Store(connReads) // the server is ending: it closes the connection behind its answer
	return left, err
}

// BeginExpress tells of a request that Express is about to answer: whether it is the first in what was read, and
// all of it.
func (c *Conn) BeginExpress(first, only bool) { c.firstInRead, c.onlyInRead = first, only }

// Request is the request that the server works on, as it came; nil where it came in pieces. Where the length of a
// request was counted wrong (BeginRequest), it is something else. It is borrowed until the next Read.
func (c *Conn) Request() []byte { return c.request }
