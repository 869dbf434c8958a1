package conn

import (
	"errors"
	"net"
)

// Express answers a request, and writes the answer, from the bytes of its head: they are all that was read. Where it does not answer it
// has written nothing, and the server reads the request. An error ends the connection.
//
// Express runs in the connection's Read, so the server takes the connection for idle meanwhile: it may call the methods of a handler.
type Express func(c *Conn, request []byte) (answered bool, err error)

// What a connection does, as far as it matters to one that closes it.
const (
	connReads     uint32 = iota // it waits for a request, or the server works on one
	connExpresses               // Express works on a request
	connEnds                    // it was closed meanwhile
)

// answerExpress offers a request that was just read to Express.
func (c *Conn) answerExpress(request []byte) (answered bool, err error) {
	if c.express == nil || c.requests == 0 || c.framing.deferred == nil || !c.state.CompareAndSwap(connReads, connExpresses) {
		return false, nil
	}
	c.firstInRead, c.onlyInRead = true, true
	answered, err = c.express(c, request)
	if answered {
		c.framing.deferred = nil
	}
	if c.state.CompareAndSwap(connExpresses, connReads) {
		return answered, err
	}
	if answered {
		return true, errors.Join(net.ErrClosed, c.closeNow())
	}
	c.state.Store(connReads) // the server is ending: it closes the connection behind its answer
	return false, nil
}

// Request is the request that the server works on, where it is all that was read; else nil. It is borrowed until the next Read.
func (c *Conn) Request() []byte { return c.request }
