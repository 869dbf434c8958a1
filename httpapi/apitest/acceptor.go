package apitest

import (
	"io"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/tasard/tasard/httpapi"
)

// acceptor accepts connections and passes each to the current HTTP server of the node. A restart of the node replaces
// the server. While there is no server, connections wait for the next one.
type acceptor struct {
	listener   net.Listener
	acceptLoop sync.WaitGroup
	serveLoops sync.WaitGroup
	quit       chan struct{} // closed by close

	mu      sync.Mutex
	conns   map[*conn]bool // connections that a server handles
	server  *httpapi.Server
	resumed chan struct{} // closed by resume; pause makes a new one
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

// serve lets a server handle the connection until it ends. If the node restarts before the client has sent anything, it
// passes the connection to the next server.
func (a *acceptor) serve(nc net.Conn) {
	for {
		c := a.assign(nc)
		if c == nil {
			_ = nc.Close() // the acceptor is closed
			return
		}
		_ = c.server.ServeConn(c)
		if a.release(c); !c.handedOver {
			return // the server has closed the connection
		}
		_ = nc.SetDeadline(time.Time{}) // an error can be ignored, because then the next Read fails too
	}
}

// assign assigns a connection to the current server. If there is no server, it waits for the next one. It returns nil
// when the acceptor is closed.
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

// release is called when the server no longer handles a connection.
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

// pause removes the current server and ends its connections (conn.end). If abrupt is false, a connection on which the
// client has sent nothing does not end: it waits for the next server.
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

// drainTimeout is how long endConns waits for the responses to requests in flight.
const drainTimeout = time.Second

// endConns ends connections and waits until they are released. After drainTimeout it closes all of them.
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
			_ = c.Conn.Close() // an error means that the connection is closed already
		}
		break
	}
	for c := range conns {
		<-c.done
	}
}

// unlimited is the writeBudget of a connection whose responses are not cut off by a Fault.
const unlimited = -1

// conn is a connection while one server handles it. The server calls Read only if no request is in flight. While the
// server is not in Read, a request is therefore in flight.
type conn struct {
	net.Conn
	server     *httpapi.Server
	handedOver bool // the next server gets the connection; may be read after done is closed

	mu          sync.Mutex
	reading     bool
	hasRead     bool // the client has sent something
	ending      bool // end was called
	abrupt      bool // end was called to close the connection at once, without an answer to the request in flight
	writeBudget int  // bytes that the server may still write

	once    sync.Once
	closing chan struct{} // closed by end
	done    chan struct{} // closed by acceptor.release
}

// Read returns io.EOF after end was called. A Read in progress that has received bytes still returns these bytes, so
// that the server answers the request.
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

// Close closes the connection. If the next server gets the connection (handedOver), Close leaves it open.
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

// Write writes at most writeBudget bytes. If p has more, it then closes the connection.
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

func (c *conn) limitWrites(bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeBudget = bytes
}

// end ends the connection. If abrupt is true, it closes the connection at once. Otherwise the server first answers the
// request in flight.
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
		_ = c.SetReadDeadline(time.Unix(1, 0)) // ends the Read in progress; the server can still write
	}
}
