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

// tlsConn is the TLS layer of a connection:
//
//	server ─ Conn ─ transport (framingCheck) ─ tls.Conn ─ tlsTransport ─ lazyDeadlines ─ TCP
//
// framingCheck checks where a request ends, and needs plain text. lazyDeadlines sets deadlines on the socket only when
// they are needed. A deadline of an earlier response must not interrupt a write of crypto/tls, because crypto/tls then
// fails all later writes. Therefore tlsTransport chooses the deadline of each write.
type tlsConn struct {
	conn        *tls.Conn
	transport   tlsTransport
	plaintext   bool // the client does not speak TLS, and gets an error in plain text
	established bool // the handshake is complete, and the client has sent a byte
}

// TLSConfig returns a configuration for HTTP/1.1 over TLS 1.2 or later. It returns nil if certificate is nil.
func TLSConfig(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error), clock func() time.Time) *tls.Config {
	if certificate == nil {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: certificate, Time: clock,
	}
}

// startTLS makes a new connection use TLS. The handshake follows at the first read.
func (g *transport) startTLS(config *tls.Config) {
	g.tls = &tlsConn{transport: tlsTransport{lazyDeadlines: &g.lazyDeadlines, tcp: g.tcp}}
	g.tls.conn = tls.Server(&g.tls.transport, config)
}

// read returns decrypted bytes. The first call performs the handshake, within the read deadline.
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

// errNoHandshake is the error of a write to a client that did not complete the handshake.
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

// close sends the close alert of TLS if that does not block, and closes the connection.
func (s *tlsConn) close() error {
	s.transport.closing.Store(true)
	return s.conn.Close()
}

// tlsTransport is the connection that crypto/tls reads from and writes to.
type tlsTransport struct {
	*lazyDeadlines
	tcp     *net.TCPConn
	reading bool        // tlsConn.read is running
	closing atomic.Bool // tlsConn.close was called, maybe by another goroutine, so lazyDeadlines is not used
}

// Write implements net.Conn. crypto/tls also writes while fasthttp reads: messages of the handshake, and key updates.
// These writes use the read deadline, because the write deadline is still that of an earlier response.
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

// writeNonblocking writes as much as the kernel takes without waiting. A client that does not read can't delay Close.
func (b *tlsTransport) writeNonblocking(p []byte) (n int, err error) {
	raw, err := b.tcp.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := raw.Control(func(fd uintptr) { n, err = syscall.Write(int(fd), p) })
	return max(n, 0), errors.Join(controlErr, err)
}

// SetWriteDeadline does nothing: crypto/tls calls it only in Close, where writes do not block.
func (b *tlsTransport) SetWriteDeadline(time.Time) error { return nil }
