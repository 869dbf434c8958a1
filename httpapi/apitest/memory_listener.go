package apitest

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// defaultClientAddr is the address of callers that name none, from the range that is for documentation.
func defaultClientAddr() netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, 1}) }

// inMemory is a listener without a network. Its connections are net.Pipe: all that they wait for are channels, so that a
// bubble of testing/synctest can tell that nothing moves. (fasthttputil's waits alike, but knows no address of a caller.)
type memoryListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
	ports atomic.Uint32
}

func newMemoryListener() *memoryListener {
	return &memoryListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept is the next connection.
func (m *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-m.conns:
		return conn, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and dial.
func (m *memoryListener) Close() error {
	m.once.Do(func() { close(m.done) })
	return nil
}

// Addr is a name without meaning.
func (m *memoryListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 0), Port: 80} }

// ephemeralPortMin is where the ports of callers begin.
const ephemeralPortMin = 1 << 15

// dial connects a caller who has the address.
func (m *memoryListener) dial(ctx context.Context, from netip.Addr) (net.Conn, error) {
	client, server := net.Pipe()
	port := ephemeralPortMin + int(m.ports.Add(1)%ephemeralPortMin)
	select {
	case m.conns <- &addressedConn{server, &net.TCPAddr{IP: from.AsSlice(), Port: port}}:
		return client, nil
	case <-m.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// addressedConn is a connection that says who is at its other end.
type addressedConn struct {
	net.Conn
	remote net.Addr
}

// RemoteAddr is the address of the caller.
func (n *addressedConn) RemoteAddr() net.Addr { return n.remote }
