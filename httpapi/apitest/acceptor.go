package apitest

import (
	"io"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/tasard/tasard/httpapi"
)

// acceptor accepts connections and gives each to the server of the current instance. During a restart new connections
// wait for the next server. close waits for all of its goroutines.
type acceptor struct {
	listener  net.Listener
	accepting sync.WaitGroup
	serving   sync.WaitGroup
	quit      chan struct{} // closed by close

	mu      sync.Mutex
	conns   map[*conn]bool // those that a server handles
	server  *httpapi.Server
	resumed chan struct{} // closed while there is a server
	closed  bool
}

func newAcceptor(listener net.Listener) *acceptor {
	a := &acceptor{listener: listener, conns: map[*conn]bool{}, resumed: make(chan struct{}), quit: make(chan struct{})}
	a.accepting.Go(a.accept)
	return a
}

func (a *acceptor) accept() {
	for {
		accepted, err := a.listener.Accept()
		if err != nil {
			return
		}
		a.serving.Go(func() { a.serve(accepted) })
	}
}

// serve handles a connection until it ends. A connection that has not sent anything goes on with the next server after
// a restart.
func (a *acceptor) serve(accepted net.Conn) {
	for {
		c := a.assign(accepted)
		if c == nil {
			_ = accepted.Close() // the acceptor is closed
			return
		}
		_ = c.server.ServeConn(c) // the client sees how it ends
		if a.release(c); !c.handedOver {
			return // the server has closed it
		}
		_ = accepted.SetDeadline(time.Time{}) // an error shows at the next read
	}
}

// assign gives a connection to the current server, or waits for the next one. It returns nil when the acceptor is
// closed.
func (a *acceptor) assign(accepted net.Conn) *conn {
	for {
		a.mu.Lock()
		resumed := a.resumed
		if a.server != nil && !a.closed {
			c := &conn{Conn: accepted, server: a.server, writeBudget: unlimited, closing: make(chan struct{}), done: make(chan struct{})}
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

// resume gives the acceptor a server.
func (a *acceptor) resume(server *httpapi.Server) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.server = server
	close(a.resumed)
}

// pause takes the server away and ends its connections, except those that have not sent anything. Requests in flight
// are answered first, unless abrupt.
func (a *acceptor) pause(abrupt bool) {
	a.mu.Lock()
	a.server, a.resumed = nil, make(chan struct{})
	conns := maps.Clone(a.conns)
	a.mu.Unlock()
	endConns(conns, abrupt)
}

// close stops accepting and waits until every connection has ended.
func (a *acceptor) close() error {
	err := a.listener.Close()
	a.mu.Lock()
	a.closed = true
	conns := maps.Clone(a.conns)
	a.mu.Unlock()
	close(a.quit)
	a.accepting.Wait()
	endConns(conns, false)
	a.serving.Wait()
	a.server = nil // a closed node must not keep its server in memory
	return err
}

// drainTimeout is how long a connection that is ending may take to send its last answer.
const drainTimeout = time.Second

// endConns ends connections and waits until the server has released them.
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

// conn is a connection while one server handles it. The server reads only when no request is in flight, so a conn that
// is not in Read is answering.
type conn struct {
	net.Conn
	server     *httpapi.Server
	handedOver bool // the next server takes it; read only when done is closed

	mu          sync.Mutex
	reading     bool
	hasRead     bool // the client has sent something
	ending      bool
	abrupt      bool
	writeBudget int // bytes that may still be written

	once    sync.Once
	closing chan struct{} // closed when it has to end
	done    chan struct{} // closed when the server has released it
}

// Read returns io.EOF once the connection has to end. A request that arrives at that moment is still read, and
// answered.
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

// Close closes the connection, unless the next server takes it.
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

// Write writes up to the write budget and then closes the connection.
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
		n, _ = c.Conn.Write(p[:allowed]) // the client sees the truncation
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
	waiting := c.reading
	c.mu.Unlock()
	c.once.Do(func() { close(c.closing) })
	switch {
	case abrupt:
		_ = c.Conn.Close() // the server sees it
	case waiting:
		_ = c.SetReadDeadline(time.Unix(1, 0)) // wakes the reader; writes go on
	}
}
