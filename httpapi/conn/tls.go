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

// secured is the TLS of a connection: the server reads and writes above it, what is encrypted goes through the connection's own deadlines
// below it. So the guard sees the bytes that the server sees, and a deadline that was armed for an earlier answer never ends a write of
// TLS half-way, which would spoil the connection for good.
//
//	server ─ Conn ─ gatherer (wire, the guard) ─ tls.Conn ─ beneath ─ lazyDeadlines ─ TCP
type secured struct {
	conn  *tls.Conn
	below beneath
	plain bool // the client does not speak TLS: it gets its error as it can read it
	heard bool // the handshake is over, and something came
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

// secure puts TLS on a connection that nobody has read from yet.
func (g *gatherer) secure(config *tls.Config) {
	g.tls = &secured{below: beneath{lazyDeadlines: &g.lazyDeadlines, tcp: g.tcp}}
	g.tls.conn = tls.Server(&g.tls.below, config)
}

// read is Read of what was encrypted. The first one shakes hands, within the time that there is for a request.
func (s *secured) read(b []byte) (int, error) {
	if s.plain {
		return 0, io.EOF // what it said is used up
	}
	s.below.reading = true
	n, err := s.conn.Read(b)
	s.below.reading = false
	s.heard = s.heard || n > 0
	var greeting tls.RecordHeaderError
	if errors.As(err, &greeting) && greeting.Conn != nil { // the first bytes are not of TLS
		s.plain = true
	}
	return n, err
}

// errUnheard is for what is written to somebody with whom no hands were shaken. TLS has told its own reason, if it had one.
var errUnheard = errors.New("no TLS on this connection")

func (s *secured) write(b []byte) (int, error) {
	switch {
	case s.plain:
		return s.below.lazyDeadlines.Write(b)
	case !s.heard:
		return 0, errUnheard
	}
	return s.conn.Write(b)
}

// close says that nothing follows, if that can be said at once, and closes.
func (s *secured) close() error {
	s.below.leaving.Store(true)
	return s.conn.Close()
}

// beneath is the connection that TLS writes to and reads from.
type beneath struct {
	*lazyDeadlines
	tcp     *net.TCPConn
	reading bool        // the server waits in Read
	leaving atomic.Bool // Close was called, maybe by another goroutine: the deadlines are not its own
}

// Write is net.Conn's. What TLS writes by itself while the server reads, its part of the handshake or new keys, has the time that reading
// has: the deadline for writing is that of an earlier answer.
func (b *beneath) Write(p []byte) (int, error) {
	switch {
	case b.leaving.Load():
		return b.writeNow(p)
	case !b.reading:
		return b.lazyDeadlines.Write(p)
	}
	answer := b.write.wanted
	b.write.wanted = b.read.wanted
	n, err := b.lazyDeadlines.Write(p)
	b.write.wanted = answer
	return n, err
}

// writeNow writes what the kernel takes at once: a client that reads nothing holds up no stop.
func (b *beneath) writeNow(p []byte) (n int, err error) {
	raw, err := b.tcp.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(fd uintptr) { n, err = syscall.Write(int(fd), p) })
	return max(n, 0), errors.Join(failed, err)
}

// SetWriteDeadline does nothing: TLS sets it at the end alone, when nothing waits.
func (b *beneath) SetWriteDeadline(time.Time) error { return nil }
