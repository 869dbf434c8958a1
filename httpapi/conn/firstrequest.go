package conn

import (
	"slices"
	"sync"
)

// firstReadBytes is the size of the buffer for the first read of a connection. Most requests are smaller.
const firstReadBytes = 384

// silentConns is the set of connections that have not received a byte yet.
type silentConns struct {
	mu     sync.Mutex
	conns  map[*Conn]struct{}
	closed bool
}

// add returns false after closeAll; the caller must then end the connection.
func (n *silentConns) add(c *Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	if n.conns == nil {
		n.conns = map[*Conn]struct{}{}
	}
	n.conns[c] = struct{}{}
	return true
}

func (n *silentConns) remove(c *Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
}

// closeAll closes the connections in the set, and makes later calls of add fail.
func (n *silentConns) closeAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for c := range n.conns {
		_ = c.Conn.Close() // the goroutine that serves the connection gets an error, and frees its place under the cap
	}
}

// awaitFirstRequest reads the first request of a connection into firstRequest. It returns when the request is complete,
// invalid or larger than FirstRequestBytesMax, or when a read fails. fasthttp then reads from firstRequest, and a later
// Read reports the error.
//
// This saves memory: fasthttp allocates 8 KiB before it reads a head, and the whole length of a body before it reads
// the body. Ten thousand slow clients would need 100 MiB.
func (c *Conn) awaitFirstRequest() {
	if !c.permit.listener.silent.add(c) {
		return
	}
	defer c.permit.listener.silent.remove(c)
	for c.framing.requestsEnded == 0 && c.framing.faultyRequest == 0 && !c.framing.awaitsContinue() && len(c.firstRequest) < c.permit.listener.config.FirstRequestBytesMax {
		c.firstRequest = slices.Grow(c.firstRequest, firstReadBytes)
		offset := len(c.firstRequest)
		if offset == 0 && !c.permit.reserve && !c.idle.begin(c.lazyDeadlines.read.wanted.Sub(c.permit.listener.began)-c.permit.listener.config.ReadTimeout) {
			return
		}
		n, err := c.lazyDeadlines.Read(c.firstRequest[offset:cap(c.firstRequest)])
		if offset == 0 && !c.permit.reserve && !c.idle.end() || n == 0 || err != nil {
			return
		}
		if c.firstRequest = c.firstRequest[:offset+n]; offset == 0 {
			c.permit.listener.silent.remove(c)
		}
		c.framing.parse(c.firstRequest[offset:])
	}
}
