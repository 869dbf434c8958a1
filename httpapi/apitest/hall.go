package apitest

import (
	"io"
	"net"
	"sync"

	"github.com/tasard/tasard/httpapi"
)

// hall is where callers wait for the node: it accepts connections and hands each to whichever server answers at the time.
// While there is none (a restart), they wait. Close waits for all of its goroutines.
type hall struct {
	listener  net.Listener
	accepting sync.WaitGroup
	serving   sync.WaitGroup

	mu     sync.Mutex
	conns  map[*conn]bool
	server *httpapi.Server
	opened chan struct{} // closed while there is a server, or the hall is closed
	closed bool
}

func openHall(listener net.Listener) *hall {
	h := &hall{listener: listener, conns: map[*conn]bool{}, opened: make(chan struct{})}
	h.accepting.Add(1)
	go h.accept()
	return h
}

func (h *hall) accept() {
	defer h.accepting.Done()
	for {
		accepted, err := h.listener.Accept()
		if err != nil {
			return
		}
		c := &conn{Conn: accepted, left: everything, gone: make(chan struct{}), done: make(chan struct{})}
		if !h.enter(c) {
			_ = accepted.Close() // nobody is there any more
			return
		}
		go h.serve(c)
	}
}

// enter takes a connection in, unless the hall is closed.
func (h *hall) enter(c *conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.conns[c] = true
	h.serving.Add(1)
	return true
}

func (h *hall) serve(c *conn) {
	defer h.serving.Done()
	defer close(c.done)
	if server := h.wait(c); server != nil {
		_ = server.ServeConn(c) // how a connection ends is the caller's business
	}
	_ = c.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, c)
}

// wait is the server of the moment, nil when there will be none for this connection.
func (h *hall) wait(c *conn) *httpapi.Server {
	h.mu.Lock()
	opened := h.opened
	h.mu.Unlock()
	select {
	case <-opened:
	case <-c.gone:
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.server
}

// resume lets callers in.
func (h *hall) resume(server *httpapi.Server) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.server = server
	close(h.opened)
}

// pause ends all connections and lets nobody in. Requests under way get their answers, unless it is abrupt.
func (h *hall) pause(abrupt bool) {
	h.mu.Lock()
	h.server, h.opened = nil, make(chan struct{})
	conns := h.conns
	h.conns = map[*conn]bool{}
	h.mu.Unlock()
	for c := range conns {
		c.end(abrupt)
	}
	for c := range conns {
		<-c.done
	}
}

// close is pause for ever. It waits until nobody is left.
func (h *hall) close() error {
	err := h.listener.Close()
	h.mu.Lock()
	h.closed = true
	if h.server == nil { // a restart that failed: whoever waits is sent away
		close(h.opened)
	}
	h.server = nil
	for c := range h.conns {
		c.end(false)
	}
	h.mu.Unlock()
	h.accepting.Wait()
	h.serving.Wait()
	return err
}

// everything is how much of its answers a connection may write.
const everything = -1

// conn is the node's end of a connection. It knows whether a request is under way: the server reads only when it has nothing
// to answer.
type conn struct {
	net.Conn
	mu      sync.Mutex
	reading bool
	ending  bool
	left    int // bytes that may still be written

	once sync.Once
	gone chan struct{} // closed when it is to end
	done chan struct{} // closed when it has ended
}

// Read reads, unless the connection is to end.
func (c *conn) Read(p []byte) (int, error) {
	if !c.begin() {
		return 0, io.EOF
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
	return n, err
}

func (c *conn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = !c.ending
	return c.reading
}

// Write writes, up to where the connection was cut; there it closes.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	allowed := c.left
	if allowed >= 0 {
		c.left -= min(allowed, len(p))
	}
	c.mu.Unlock()
	if allowed < 0 || allowed >= len(p) {
		return c.Conn.Write(p)
	}
	n := 0
	if allowed > 0 {
		n, _ = c.Conn.Write(p[:allowed]) // the caller hears of the cut
	}
	_ = c.Close()
	return n, net.ErrClosed
}

// cut lets the connection write so many bytes more.
func (c *conn) cut(bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = bytes
}

// end ends the connection: at once, or when the request that is under way has its answer.
func (c *conn) end(abrupt bool) {
	c.mu.Lock()
	c.ending = true
	now := abrupt || c.reading
	c.mu.Unlock()
	c.once.Do(func() { close(c.gone) })
	if now {
		_ = c.Close()
	}
}
