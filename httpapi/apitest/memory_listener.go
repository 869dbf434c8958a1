package apitest

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// defaultClientAddr is the client address of Node.Client, from a range reserved for documentation (RFC 5737).
func defaultClientAddr() netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, 1}) }

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
