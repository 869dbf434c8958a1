package conn

import (
	"slices"
	"sync"
)

// firstReadBytes is the buffer for the first read of a connection: most requests are smaller.
const firstReadBytes = 384

// silentConns are the connections that have not sent a byte yet.
type silentConns struct {
	mu     sync.Mutex
	conns  map[*Conn]struct{}
	closed bool
}

// add returns false after closeAll: the connection must end.
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

// closeAll closes all silent connections.
func (n *silentConns) closeAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for c := range n.conns {
		_ = c.Conn.Close() // its goroutine gets an error, and releases the permit
	}
}

// awaitFirstRequest reads the first request into a small buffer until it is complete, invalid or too large, or a read
// fails. The library then reads from that buffer, and gets the error from its next Read. Without this the library would
// allocate 8 KiB before the first byte of a head and the whole length of a body before its first byte, which for ten
// thousand slow clients is 100 MiB.
func (c *Conn) awaitFirstRequest() {
	if !c.permit.listener.silent.add(c) {
		return
	}
	defer c.permit.listener.silent.remove(c)
	for c.framing.requestsEnded == 0 && c.framing.faultyRequest == 0 && !c.framing.awaitsContinue() && len(c.firstRequest) < c.permit.listener.config.FirstRequestBytesMax {
		c.firstRequest = slices.Grow(c.firstRequest, firstReadBytes)
		offset := len(c.firstRequest)
		n, err := c.lazyDeadlines.Read(c.firstRequest[offset:cap(c.firstRequest)])
		if n == 0 || err != nil {
			return
		}
		if c.firstRequest = c.firstRequest[:offset+n]; offset == 0 {
			c.permit.listener.silent.remove(c)
		}
		c.framing.parse(c.firstRequest[offset:])
	}
}
