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

// tlsConn is the TLS layer of a connection. It lies between transport and lazyDeadlines. So framingCheck sees plain
// text, and a deadline that was armed for an earlier answer does not end a write of TLS half-way, after which
// crypto/tls would refuse every further write.
//
//	server ─ Conn ─ transport (framingCheck) ─ tls.Conn ─ tlsTransport ─ lazyDeadlines ─ TCP
type tlsConn struct {
	conn        *tls.Conn
	transport   tlsTransport
	plaintext   bool // the client does not speak TLS; it gets an error in plain text
	established bool // the handshake is complete, and the client has sent a byte
}

// TLSConfig returns a configuration for TLS 1.2 and later with HTTP/1.1, nil if certificate is nil.
func TLSConfig(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error), clock func() time.Time) *tls.Config {
	if certificate == nil {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: certificate, Time: clock,
	}
}

// startTLS starts TLS on a new connection.
func (g *transport) startTLS(config *tls.Config) {
	g.tls = &tlsConn{transport: tlsTransport{lazyDeadlines: &g.lazyDeadlines, tcp: g.tcp}}
	g.tls.conn = tls.Server(&g.tls.transport, config)
}

// read reads and decrypts. The first call performs the handshake, within the read deadline.
func (s *tlsConn) read(b []byte) (int, error) {
	if s.plaintext {
		return 0, io.EOF
	}
	s.transport.reading = true
	n, err := s.conn.Read(b)
	s.transport.reading = false
	s.established = s.established || n > 0
	var headerErr tls.RecordHeaderError
	if errors.As(err, &headerErr) && headerErr.Conn != nil { // the first bytes are not TLS
		s.plaintext = true
	}
	return n, err
}

// errNoHandshake is returned for an answer to a client that did not complete the handshake.
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

// close sends TLS's close message if that does not block, and closes.
func (s *tlsConn) close() error {
	s.transport.closing.Store(true)
	return s.conn.Close()
}

// tlsTransport is the connection that TLS reads from and writes to.
type tlsTransport struct {
	*lazyDeadlines
	tcp     *net.TCPConn
	reading bool        // the server is in Read
	closing atomic.Bool // Close was called, maybe by another goroutine, which must not use the deadlines
}

// Write implements net.Conn. TLS also writes while the server reads: its part of the handshake, and key updates. These
// writes use the read deadline, because the write deadline is still that of an earlier answer.
func (b *tlsTransport) Write(p []byte) (int, error) {
	switch {
	case b.closing.Load():
		return b.writeNonblocking(p)
	case !b.reading:
		return b.lazyDeadlines.Write(p)
	}
	writeDeadline := b.write.wanted
	b.write.wanted = b.read.wanted
	n, err := b.lazyDeadlines.Write(p)
	b.write.wanted = writeDeadline
	return n, err
}

// writeNonblocking writes as much as the kernel takes at once, so that a client that does not read can't delay Close.
func (b *tlsTransport) writeNonblocking(p []byte) (n int, err error) {
	raw, err := b.tcp.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := raw.Control(func(fd uintptr) { n, err = syscall.Write(int(fd), p) })
	return max(n, 0), errors.Join(controlErr, err)
}

// SetWriteDeadline does nothing: TLS calls it only in Close, where writes do not block.
func (b *tlsTransport) SetWriteDeadline(time.Time) error { return nil }
