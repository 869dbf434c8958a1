package apitest

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/httpapi"
)

// acceptor accepts connections for the node's current HTTP server. A restart of the node ends all connections, and new
// connections wait for the next server.
type acceptor struct {
	listener net.Listener
	loops    sync.WaitGroup // the accept loop, and one goroutine for each connection

	mu      sync.Mutex
	changed sync.Cond // signals changes of server, conns and closed
	conns   map[net.Conn]bool
	server  *httpapi.Server
	paused  chan struct{} // closed when server has been removed
	closed  bool
}

func newAcceptor(listener net.Listener) *acceptor {
	a := &acceptor{listener: listener, conns: map[net.Conn]bool{}}
	a.changed.L = &a.mu
	a.loops.Go(a.accept)
	return a
}

func (a *acceptor) accept() {
	for {
		accepted, err := a.listener.Accept()
		if err != nil {
			return
		}
		a.loops.Go(func() { a.serve(accepted) })
	}
}

func (a *acceptor) serve(c net.Conn) {
	a.mu.Lock()
	for a.server == nil && !a.closed {
		a.changed.Wait()
	}
	server := a.server
	if a.closed {
		a.mu.Unlock()
		_ = c.Close()
		return
	}
	a.conns[c] = true
	a.mu.Unlock()
	_ = server.ServeConn(c)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.conns, c)
	a.changed.Broadcast()
}

// resume sets the current server.
func (a *acceptor) resume(server *httpapi.Server) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.server, a.paused = server, make(chan struct{})
	a.changed.Broadcast()
}

// pausing returns a channel that is closed when the current server ends.
func (a *acceptor) pausing() chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.paused
}

// drainTimeout is how long pause waits for the responses to requests in flight.
const drainTimeout = time.Second

// pause removes the current server and ends the connections: at once if abrupt, otherwise after the responses to
// requests in flight.
func (a *acceptor) pause(abrupt bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server != nil {
		a.server.Drain() // from now on every response ends its connection
		close(a.paused)
		a.server = nil
	}
	for c := range a.conns {
		if abrupt {
			_ = c.Close() // an error means that the connection is closed already
		} else {
			_ = c.SetReadDeadline(time.Unix(1, 0)) // ends the Read in progress; the server can still write
		}
	}
	timer := time.AfterFunc(drainTimeout, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		for c := range a.conns {
			_ = c.Close()
		}
	})
	defer timer.Stop()
	for len(a.conns) > 0 {
		a.changed.Wait()
	}
}

// close stops accepting and waits until every connection and goroutine has ended.
func (a *acceptor) close() error {
	err := a.listener.Close()
	a.mu.Lock()
	a.closed = true
	a.changed.Broadcast()
	a.mu.Unlock()
	a.pause(false)
	a.loops.Wait()
	return err
}

// memoryListener is a listener without a network. The connections come from net.Pipe. They block only on channels, so
// that testing/synctest detects when all goroutines of a test are blocked.
type memoryListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
	ports atomic.Uint32
}

func newMemoryListener() *memoryListener {
	return &memoryListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (m *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-m.conns:
		return conn, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (m *memoryListener) Close() error {
	m.once.Do(func() { close(m.done) })
	return nil
}

// Addr implements net.Listener.
func (m *memoryListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 0), Port: 80} }

const ephemeralPortMin = 1 << 15 // lowest port of a client

// dial connects a client that has the address clientAddr.
func (m *memoryListener) dial(ctx context.Context, clientAddr netip.Addr) (net.Conn, error) {
	client, server := net.Pipe()
	port := ephemeralPortMin + int(m.ports.Add(1)%ephemeralPortMin)
	select {
	case m.conns <- &addressedConn{server, &net.TCPAddr{IP: clientAddr.AsSlice(), Port: port}}:
		return client, nil
	case <-m.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// addressedConn is the server's end of a connection, with the address of the client.
type addressedConn struct {
	net.Conn
	remote net.Addr
}

// RemoteAddr implements net.Conn.
func (n *addressedConn) RemoteAddr() net.Addr { return n.remote }
