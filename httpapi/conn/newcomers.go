package conn

import (
	"slices"
	"sync"
)

// firstRoom is what is read into of a first request at once: most are smaller.
const firstRoom = 384

// newcomers are the connections from which nothing has come yet.
type newcomers struct {
	mu     sync.Mutex
	silent map[*Conn]struct{}
	ended  bool
}

// add notes a connection; false: it has to go.
func (n *newcomers) add(c *Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return false
	}
	if n.silent == nil {
		n.silent = map[*Conn]struct{}{}
	}
	n.silent[c] = struct{}{}
	return true
}

func (n *newcomers) remove(c *Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.silent, c)
}

// end closes those that have said nothing.
func (n *newcomers) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	for c := range n.silent {
		_ = c.Conn.Close() // its goroutine notices, and gives its place back
	}
}

// awaitFirst reads the first request into a small buffer of the connection's own, until it is there as a whole, cannot be or is too large,
// or its time is over: then the library reads it from there, and meets the error, if there was one, itself. The library takes 8 KiB for a
// request before its first byte, and the whole length of a body before the first byte of that, so ten thousand clients that send a byte
// now and then would cost 100 MiB more. It sets the first deadline before it takes anything: that is when this is called.
func (c *Conn) awaitFirst() {
	if !c.slot.of.newcomers.add(c) {
		return
	}
	defer c.slot.of.newcomers.remove(c)
	for c.wire.ended == 0 && c.wire.fault == 0 && !c.wire.wantsAnswer() && len(c.early) < c.slot.of.config.FirstMax {
		c.early = slices.Grow(c.early, firstRoom)
		at := len(c.early)
		n, err := c.lazyDeadlines.Read(c.early[at:cap(c.early)])
		if n == 0 || err != nil {
			return
		}
		if c.early = c.early[:at+n]; at == 0 {
			c.slot.of.newcomers.remove(c)
		}
		c.wire.follow(c.early[at:])
	}
}
