package conn

import (
	"slices"
	"sync"
)

// firstReadBytes is what is read into of a first request at once: most are smaller.
const firstReadBytes = 384

// silentConns are the connections from which nothing has come yet.
type silentConns struct {
	mu     sync.Mutex
	conns  map[*Conn]struct{}
	closed bool
}

// add notes a connection; false: it has to go.
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

// close closes those that have said nothing.
func (n *silentConns) closeAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for c := range n.conns {
		_ = c.Conn.Close() // its goroutine notices, and gives its place back
	}
}

// awaitFirstRequest reads the first request into a small buffer until it is complete, invalid or too large, or its time
// is over; the library then reads it from there, and meets the error itself. The library takes 8 KiB for a request
// before its first byte, and the whole length of a body before its first byte, so ten thousand clients that send a byte
// now and then would cost 100 MiB more.
func (c *Conn) awaitFirstRequest() {
	if !c.permit.listener.silent.add(c) {
		return
	}
	defer c.permit.listener.silent.remove(c)
	for c.framing.requestsEnded == 0 && c.framing.faultyRequest == 0 && !c.framing.awaitsContinue() && len(c.firstRequest) < c.permit.listener.config.FirstRequestBytesMax {
		c.firstRequest = slices.Grow(c.firstRequest, firstReadBytes)
		at := len(c.firstRequest)
		n, err := c.lazyDeadlines.Read(c.firstRequest[at:cap(c.firstRequest)])
		if n == 0 || err != nil {
			return
		}
		if c.firstRequest = c.firstRequest[:at+n]; at == 0 {
			c.permit.listener.silent.remove(c)
		}
		c.framing.parse(c.firstRequest[at:])
	}
}
