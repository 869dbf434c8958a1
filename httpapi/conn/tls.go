package conn

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// tlsConn is the TLS of a connection: the server reads and writes above it, what is encrypted goes through the
// connection's own deadlines below it. So the guard sees the bytes that the server sees, and a deadline that was
// armed for an earlier answer never ends a write of TLS half-way, which would spoil the connection for good.
//
//	server ─ Conn ─ gatherer (wire, the guard) ─ tls.Conn ─ beneath ─ lazyDeadlines ─ TCP
type tlsConn struct {
	conn        *tls.Conn
	transport   tlsTransport
	plaintext   bool // the client does not speak TLS: it gets its error as it can read it
	established bool // the handshake is over, and something came
}

// TLSConfig is what the server offers: nothing older than TLS 1.2, and HTTP/1.1. nil without certificates.
func TLSConfig(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error), clock func() time.Time) *tls.Config {
	if certificate == nil {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: certificate, Time: clock,
	}
}

// startTLS puts TLS on a connection of which nothing was read yet.
func (g *transport) startTLS(config *tls.Config) {
	g.tls = &tlsConn{transport: tlsTransport{lazyDeadlines: &g.lazyDeadlines, tcp: g.tcp}}
	g.tls.conn = tls.Server(&g.tls.transport, config)
}

// received is Read of what was encrypted. The first one shakes hands, within the time that there is for a request.
func (s *tlsConn) read(b []byte) (int, error) {
	if s.plaintext {
		return 0, io.EOF // what it said is used up
	}
	s.transport.reading = true
	n, err := s.conn.Read(b)
	s.transport.reading = false
	s.established = s.established || n > 0
	var greeting tls.RecordHeaderError
	if errors.As(err, &greeting) && greeting.Conn != nil { // the first bytes are not of TLS
		s.plaintext = true
	}
	return n, err
}

// errNoHandshake is for an answer to a client that did not complete the handshake.
var errNoHandshake = errors.New("no TLS on this connection")

func (s *tlsConn) write(b []byte) (int, error) {
	switch {
	case s.plaintext:
		return s.transport.lazyDeadlines.Write(b)
	case !s.established:
		return 0, errNoHandshake
	}
	return s.conn.Write(b)
}

// close says that nothing follows, if that can be said at once, and closes.
func (s *tlsConn) close() error {
	s.transport.closing.Store(true)
	return s.conn.Close()
}

// tlsTransport is the connection that TLS writes to and reads from.
type tlsTransport struct {
	*lazyDeadlines
	tcp     *net.TCPConn
	reading bool        // the server waits in Read
	closing atomic.Bool // Close was called, maybe by another goroutine: the deadlines are not its own
}

// Write is net.Conn's. What TLS writes by itself while the server reads, its part of the handshake or new keys, has
// the time that reading has: the deadline for writing is that of an earlier answer.
func (b *tlsTransport) Write(p []byte) (int, error) {
	switch {
	case b.closing.Load():
		return b.writeNonblocking(p)
	case !b.reading:
		return b.lazyDeadlines.Write(p)
	}
	answer := b.write.wanted
	b.write.wanted = b.read.wanted
	n, err := b.lazyDeadlines.Write(p)
	b.write.wanted = answer
	return n, err
}

// writeNonblocking writes what the kernel takes at once: a client that reads nothing holds up no stop.
func (b *tlsTransport) writeNonblocking(p []byte) (n int, err error) {
	raw, err := b.tcp.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(fd uintptr) { n, err = syscall.Write(int(fd), p) })
	return max(n, 0), errors.Join(failed, err)
}

// SetWriteDeadline does nothing: TLS sets one only at the end, when nothing waits.
func (b *tlsTransport) SetWriteDeadline(time.Time) error { return nil }
