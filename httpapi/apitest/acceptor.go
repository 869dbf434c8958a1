package apitest

import (
	"io"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/tasard/tasard/httpapi"
)

// acceptor is where callers wait for the node: it accepts connections and hands each to whichever server answers at the time.
// While there is none (a restart), they wait. close waits for all of its goroutines.
type acceptor struct {
	listener  net.Listener
	accepting sync.WaitGroup
	serving   sync.WaitGroup
	quit      chan struct{} // closed when the hall is

	mu      sync.Mutex
	conns   map[*conn]bool // that a server has
	server  *httpapi.Server
	resumed chan struct{} // closed while there is a server
	closed  bool
}

func newAcceptor(listener net.Listener) *acceptor {
	h := &acceptor{listener: listener, conns: map[*conn]bool{}, resumed: make(chan struct{}), quit: make(chan struct{})}
	h.accepting.Add(1)
	go h.accept()
	return h
}

func (h *acceptor) accept() {
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
func (h *acceptor) serve(accepted net.Conn) {
	defer h.serving.Done()
	for {
		c := h.assign(accepted)
		if c == nil {
			_ = accepted.Close() // nobody is there any more
			return
		}
		_ = c.server.ServeConn(c) // how a connection ends is the caller's business
		if h.release(c); !c.handedOver {
			return // the server has closed it
		}
		_ = accepted.SetDeadline(time.Time{}) // an error shows at the next read
	}
}

// assign gives a connection to the server of the moment, or the next one. Nil when there will be none.
func (h *acceptor) assign(accepted net.Conn) *conn {
	for {
		h.mu.Lock()
		opened := h.resumed
		if h.server != nil && !h.closed {
			c := &conn{Conn: accepted, server: h.server, writeBudget: unlimited, closing: make(chan struct{}), done: make(chan struct{})}
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

// release takes it back.
func (h *acceptor) release(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, c)
	close(c.done)
}

// resume lets callers in.
func (h *acceptor) resume(server *httpapi.Server) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.server = server
	close(h.resumed)
}

// delayRequest takes the server away. Requests under way get their answers, unless it is abrupt. Other connections end, but for
// those over which nothing was asked yet.
func (h *acceptor) pause(abrupt bool) {
	h.mu.Lock()
	h.server, h.resumed = nil, make(chan struct{})
	conns := maps.Clone(h.conns)
	h.mu.Unlock()
	endConns(conns, abrupt)
}

// close is pause for ever. It waits until nobody is left.
func (h *acceptor) close() error {
	err := h.listener.Close()
	h.mu.Lock()
	h.closed = true
	conns := maps.Clone(h.conns)
	h.mu.Unlock()
	close(h.quit)
	h.accepting.Wait()
	endConns(conns, false)
	h.serving.Wait()
	h.server = nil // a closed node is garbage, whoever holds it
	return err
}

// drainTimeout is how long an answer may take that nobody reads, once its connection is to end.
const drainTimeout = time.Second

// endConns ends connections and waits until they have ended.
func endConns(conns map[*conn]bool, abrupt bool) {
	for c := range conns {
		c.end(abrupt)
	}
	patience := time.NewTimer(drainTimeout)
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

// unlimited is how much of its answers a connection may write.
const unlimited = -1

// conn is a connection while one server has it. It knows whether a request is under way: the server reads only when it has
// nothing to answer.
type conn struct {
	net.Conn
	server     *httpapi.Server
	handedOver bool // it goes on to the next server; to be read when done

	mu          sync.Mutex
	reading     bool
	hasRead     bool // something was read
	ending      bool
	abrupt      bool
	writeBudget int // bytes that may still be written

	once    sync.Once
	closing chan struct{} // closed when it is to end
	done    chan struct{} // closed when the server has let go of it
}

// Read reads, unless the connection is to end. A request that has come in the same moment is read, and answered.
func (c *conn) Read(p []byte) (int, error) {
	if !c.startRead() {
		return 0, io.EOF
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
	c.hasRead = c.hasRead || n > 0
	if c.ending && n == 0 {
		err = io.EOF
	}
	return n, err
}

func (c *conn) startRead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = !c.ending
	return c.reading
}

// Close closes the connection, unless the next server can have it.
func (c *conn) Close() error {
	c.mu.Lock()
	c.handedOver = c.ending && !c.abrupt && !c.hasRead
	passed := c.handedOver
	c.mu.Unlock()
	if passed {
		return nil
	}
	return c.Conn.Close()
}

// Write writes, up to where the connection was cut; there it closes.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	allowed := c.writeBudget
	if allowed >= 0 {
		c.writeBudget -= min(allowed, len(p))
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

// limitWrites lets the connection write so many bytes more.
func (c *conn) limitWrites(bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeBudget = bytes
}

// restart ends the connection: at once, or when the request that is under way has its answer.
func (c *conn) end(abrupt bool) {
	c.mu.Lock()
	c.ending, c.abrupt = true, abrupt
	waiting := c.reading
	c.mu.Unlock()
	c.once.Do(func() { close(c.closing) })
	switch {
	case abrupt:
		_ = c.Conn.Close() // the server sees it
	case waiting:
		_ = c.SetReadDeadline(time.Unix(1, 0)) // it wakes who reads and takes nothing from who answers
	}
}
