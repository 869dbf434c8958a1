package apitest

import (
	"io"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/tasard/tasard/httpapi"
)

// acceptor accepts connections and passes each to the server of the current instance. During a restart new connections
// wait for the next server.
type acceptor struct {
	listener   net.Listener
	acceptLoop sync.WaitGroup
	serveLoops sync.WaitGroup
	quit       chan struct{} // closed by close

	mu      sync.Mutex
	conns   map[*conn]bool // connections that a server handles
	server  *httpapi.Server
	resumed chan struct{} // closed while there is a server
	closed  bool
}

func newAcceptor(listener net.Listener) *acceptor {
	a := &acceptor{listener: listener, conns: map[*conn]bool{}, resumed: make(chan struct{}), quit: make(chan struct{})}
	a.acceptLoop.Go(a.accept)
	return a
}

func (a *acceptor) accept() {
	for {
		nc, err := a.listener.Accept()
		if err != nil {
			return
		}
		a.serveLoops.Go(func() { a.serve(nc) })
	}
}

// serve handles a connection until it ends. If the server restarts before the client has sent anything, the next server
// handles the connection.
func (a *acceptor) serve(nc net.Conn) {
	for {
		c := a.assign(nc)
		if c == nil {
			_ = nc.Close() // the acceptor is closed
			return
		}
		_ = c.server.ServeConn(c)
		if a.release(c); !c.handedOver {
			return // the server has closed it
		}
		_ = nc.SetDeadline(time.Time{}) // if this fails, so does the next Read
	}
}

// assign assigns a connection to the current server, or waits for the next server. It returns nil when the acceptor is
// closed.
func (a *acceptor) assign(nc net.Conn) *conn {
	for {
		a.mu.Lock()
		resumed := a.resumed
		if a.server != nil && !a.closed {
			c := &conn{Conn: nc, server: a.server, writeBudget: unlimited, closing: make(chan struct{}), done: make(chan struct{})}
			a.conns[c] = true
			a.mu.Unlock()
			return c
		}
		a.mu.Unlock()
		select {
		case <-resumed:
		case <-a.quit:
			return nil
		}
	}
}

// release notes that the server has finished with a connection.
func (a *acceptor) release(c *conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.conns, c)
	close(c.done)
}

// resume sets the current server.
func (a *acceptor) resume(server *httpapi.Server) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.server = server
	close(a.resumed)
}

// pause removes the current server and ends its connections. Connections on which the client has not sent anything
// wait for the next server. If abrupt is false, requests in flight are answered first.
func (a *acceptor) pause(abrupt bool) {
	a.mu.Lock()
	a.server, a.resumed = nil, make(chan struct{})
	conns := maps.Clone(a.conns)
	a.mu.Unlock()
	endConns(conns, abrupt)
}

// close stops accepting and waits until every connection and goroutine has ended.
func (a *acceptor) close() error {
	err := a.listener.Close()
	a.mu.Lock()
	a.closed = true
	conns := maps.Clone(a.conns)
	a.mu.Unlock()
	close(a.quit)
	a.acceptLoop.Wait()
	endConns(conns, false)
	a.serveLoops.Wait()
	a.server = nil // a closed node must not keep its server in memory
	return err
}

// drainTimeout is how long connections that are ending may take to send their last response.
const drainTimeout = time.Second

// endConns ends connections and waits until the server has released them. After drainTimeout it closes all of them.
func endConns(conns map[*conn]bool, abrupt bool) {
	for c := range conns {
		c.end(abrupt)
	}
	timer := time.NewTimer(drainTimeout)
	defer timer.Stop()
	for c := range conns {
		select {
		case <-c.done:
			continue
		case <-timer.C:
		}
		for c := range conns {
			_ = c.Conn.Close() // it may be closed already
		}
		break
	}
	for c := range conns {
		<-c.done
	}
}

// unlimited is the write budget of an ordinary connection.
const unlimited = -1

// conn is a connection while one server handles it. The server reads only when no request is in flight, so a request is
// in flight whenever the server is not in Read.
type conn struct {
	net.Conn
	server     *httpapi.Server
	handedOver bool // the next server handles the connection; may be read once done is closed

	mu          sync.Mutex
	reading     bool
	hasRead     bool // the client has sent something
	ending      bool
	abrupt      bool
	writeBudget int // bytes that may still be written

	once    sync.Once
	closing chan struct{} // closed by end
	done    chan struct{} // closed when the server has released it
}

// Read returns io.EOF after end was called. Bytes that a Read in progress has received are still returned, so their
// request is answered.
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

// Close closes the connection, unless the next server will handle it.
func (c *conn) Close() error {
	c.mu.Lock()
	handedOver := c.ending && !c.abrupt && !c.hasRead
	c.handedOver = handedOver
	c.mu.Unlock()
	if handedOver {
		return nil
	}
	return c.Conn.Close()
}

// Write writes at most the bytes of the write budget. If p has more, it closes the connection.
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
		n, _ = c.Conn.Write(p[:allowed])
	}
	_ = c.Close()
	return n, net.ErrClosed
}

// limitWrites sets the write budget.
func (c *conn) limitWrites(bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeBudget = bytes
}

// end ends the connection: at once if abrupt, else after the request in flight.
func (c *conn) end(abrupt bool) {
	c.mu.Lock()
	c.ending, c.abrupt = true, abrupt
	isReading := c.reading
	c.mu.Unlock()
	c.once.Do(func() { close(c.closing) })
	switch {
	case abrupt:
		_ = c.Conn.Close()
	case isReading:
		_ = c.SetReadDeadline(time.Unix(1, 0)) // unblocks Read; writes still work
	}
}
