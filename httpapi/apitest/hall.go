package apitest

import (
	"io"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/tasard/tasard/httpapi"
)

// hall is where callers wait for the node: it accepts connections and hands each to whichever server answers at the time.
// While there is none (a restart), they wait. close waits for all of its goroutines.
type hall struct {
	listener  net.Listener
	accepting sync.WaitGroup
	serving   sync.WaitGroup
	quit      chan struct{} // closed when the hall is

	mu     sync.Mutex
	conns  map[*conn]bool // that a server has
	server *httpapi.Server
	opened chan struct{} // closed while there is a server
	closed bool
}

func openHall(listener net.Listener) *hall {
	h := &hall{listener: listener, conns: map[*conn]bool{}, opened: make(chan struct{}), quit: make(chan struct{})}
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
		h.serving.Add(1)
		go h.serve(accepted)
	}
}

// serve has a connection answered, by one server after the other as long as nothing was asked over it: who has just come
// does not notice a restart.
func (h *hall) serve(accepted net.Conn) {
	defer h.serving.Done()
	for {
		c := h.seat(accepted)
		if c == nil {
			_ = accepted.Close() // nobody is there any more
			return
		}
		_ = c.server.ServeConn(c) // how a connection ends is the caller's business
		if h.rise(c); !c.passed {
			return // the server has closed it
		}
		_ = accepted.SetDeadline(time.Time{}) // an error shows at the next read
	}
}

// seat gives a connection to the server of the moment, or the next one. Nil when there will be none.
func (h *hall) seat(accepted net.Conn) *conn {
	for {
		h.mu.Lock()
		opened := h.opened
		if h.server != nil && !h.closed {
			c := &conn{Conn: accepted, server: h.server, left: everything, gone: make(chan struct{}), done: make(chan struct{})}
			h.conns[c] = true
			h.mu.Unlock()
			return c
		}
		h.mu.Unlock()
		select {
		case <-opened:
		case <-h.quit:
			return nil
		}
	}
}

// rise takes it back.
func (h *hall) rise(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, c)
	close(c.done)
}

// resume lets callers in.
func (h *hall) resume(server *httpapi.Server) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.server = server
	close(h.opened)
}

// pause takes the server away. Requests under way get their answers, unless it is abrupt. Other connections end, but for
// those over which nothing was asked yet.
func (h *hall) pause(abrupt bool) {
	h.mu.Lock()
	h.server, h.opened = nil, make(chan struct{})
	conns := maps.Clone(h.conns)
	h.mu.Unlock()
	show(conns, abrupt)
}

// close is pause for ever. It waits until nobody is left.
func (h *hall) close() error {
	err := h.listener.Close()
	h.mu.Lock()
	h.closed = true
	conns := maps.Clone(h.conns)
	h.mu.Unlock()
	close(h.quit)
	h.accepting.Wait()
	show(conns, false)
	h.serving.Wait()
	h.server = nil // a closed node is garbage, whoever holds it
	return err
}

// leaveMax is how long an answer may take that nobody reads, once its connection is to end.
const leaveMax = time.Second

// show ends connections and waits until they have ended.
func show(conns map[*conn]bool, abrupt bool) {
	for c := range conns {
		c.end(abrupt)
	}
	patience := time.NewTimer(leaveMax)
	defer patience.Stop()
	for c := range conns {
		select {
		case <-c.done:
			continue
		case <-patience.C:
		}
		for c := range conns {
			_ = c.Conn.Close() // it may have ended
		}
		break
	}
	for c := range conns {
		<-c.done
	}
}

// everything is how much of its answers a connection may write.
const everything = -1

// conn is a connection while one server has it. It knows whether a request is under way: the server reads only when it has
// nothing to answer.
type conn struct {
	net.Conn
	server *httpapi.Server
	passed bool // it goes on to the next server; to be read when done

	mu      sync.Mutex
	reading bool
	asked   bool // something was read
	ending  bool
	abrupt  bool
	left    int // bytes that may still be written

	once sync.Once
	gone chan struct{} // closed when it is to end
	done chan struct{} // closed when the server has let go of it
}

// Read reads, unless the connection is to end. A request that has come in the same moment is read, and answered.
func (c *conn) Read(p []byte) (int, error) {
	if !c.begin() {
		return 0, io.EOF
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
	c.asked = c.asked || n > 0
	if c.ending && n == 0 {
		err = io.EOF
	}
	return n, err
}

func (c *conn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = !c.ending
	return c.reading
}

// Close closes the connection, unless the next server can have it.
func (c *conn) Close() error {
	c.mu.Lock()
	c.passed = c.ending && !c.abrupt && !c.asked
	passed := c.passed
	c.mu.Unlock()
	if passed {
		return nil
	}
	return c.Conn.Close()
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
	c.ending, c.abrupt = true, abrupt
	waiting := c.reading
	c.mu.Unlock()
	c.once.Do(func() { close(c.gone) })
	switch {
	case abrupt:
		_ = c.Conn.Close() // the server sees it
	case waiting:
		_ = c.SetReadDeadline(time.Unix(1, 0)) // it wakes who reads and takes nothing from who answers
	}
}
