package conn

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
)

const (
	// After LingerOnClose, Close reads and drops at most lingerBytesMax bytes, for at most lingerTime.
	lingerTime     = 2 * time.Second
	lingerBytesMax = 16 << 20
)

// Values of Conn.state.
const (
	connServing   uint32 = iota // Config.Express is not running
	connInExpress               // Config.Express is running
	connClosing                 // Config.Express is running, and Close was called
)

// Conn is a connection accepted by a Listener. Any goroutine may call Close, also repeatedly. Only the goroutine that
// serves the connection may call the other methods.
type Conn struct {
	net.Conn
	// User is for the server: Express passes the state of a request that it did not answer to the handler.
	User any
	// Trusted means that the peer is a trusted proxy (Config.ExemptClients).
	Trusted bool
	// Used means that a byte has been received. Browsers open connections that they may never use.
	Used bool

	listener  *Listener
	tcp       *net.TCPConn // nil if the connection is not TCP
	peer      netip.Addr
	clientKey netip.Addr  // result of clientLimit.keyOf
	released  atomic.Bool // release was called; at a shutdown fasthttp closes idle connections twice
	lingers   atomic.Bool // LingerOnClose was called
	state     atomic.Uint32

	// Times in nanoseconds since Listener.began.
	lastUse     int64        // the newest counted response (Conn.MarkCounted), or the accept
	idleSince   atomic.Int64 // busy: 0; idle: the value of lastUse, at least 1; chosen for closing: evicted
	lastSeenUse int64        // sort key in idleConns: the last use that evict has seen

	heapIndex int // index in idleConns.open

	readerBytes   int           // size of fasthttp's read buffer: the length of the first Read's argument
	awaitsRequest bool          // the next byte begins a request
	gotOneHead    bool          // the last Read filled fasthttp's empty buffer with exactly one head
	deadlinesSet  time.Duration // last time that Extend set the deadlines
	pieces        [2][]byte     // arguments of WriteBoth
	unwritten     net.Buffers   // unwritten part of pieces
	writeErr      error         // of the first failed write
}

// Peer returns the remote address without a zone; an IPv4-mapped IPv6 address becomes IPv4. If the connection is not
// TCP, the result is the zero address.
func (c *Conn) Peer() netip.Addr { return c.peer }

// PeerOf returns a peer's address in the form of Conn.Peer.
func PeerOf(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip, _ := netip.AddrFromSlice(tcp.IP)
	return ip.Unmap()
}

// Now returns the time since the listener's start. A call is twice as fast as time.Now.
func (c *Conn) Now() time.Duration { return c.listener.now() }

// MarkCounted notes that the current response counts against a quota. At the cap, the idle connection with the oldest
// such response is closed first, so that a client cannot keep its connections open with requests that do not count.
func (c *Conn) MarkCounted() { c.lastUse = int64(c.Now()) }

// Read implements net.Conn. It does not return the bytes of requests that Config.Express has answered. While it reads
// into fasthttp's empty buffer, the connection is idle, and may be closed (idleConns.evict).
func (c *Conn) Read(b []byte) (int, error) {
	if c.readerBytes == 0 {
		c.readerBytes = len(b)
	}
	emptyBuffer := len(b) == c.readerBytes // fasthttp has consumed all earlier bytes
	for {
		since := max(1, c.lastUse)
		if emptyBuffer && !c.idleSince.CompareAndSwap(0, since) {
			return 0, net.ErrClosed
		}
		n, err := c.Conn.Read(b)
		if emptyBuffer && !c.idleSince.CompareAndSwap(since, 0) {
			return 0, net.ErrClosed
		}
		c.Used = c.Used || n > 0
		if err != nil {
			err = c.readError(err)
		}
		if n > 0 && emptyBuffer && c.awaitsRequest && c.listener.config.Express != nil {
			if n, err = c.answerExpress(b[:n]); n == 0 && err == nil {
				continue
			}
		}
		c.awaitsRequest, c.gotOneHead = false, emptyBuffer && isOneHead(b[:n])
		if err == io.EOF && !emptyBuffer { //nolint:errorlint // Read returns it unwrapped, and must pass it on so
			err = io.ErrUnexpectedEOF // after io.EOF, fasthttp would not write its buffered responses
		}
		return n, err
	}
}

// EndRequest must be called after a request without a body that fasthttp has read, if the connection stays open.
// Express then gets the next request, unless fasthttp may already have read a part of that request.
func (c *Conn) EndRequest() { c.awaitsRequest = c.gotOneHead }

func isOneHead(read []byte) bool {
	const end = "\r\n\r\n"
	return len(read) >= len(end) && bytes.Index(read, []byte(end)) == len(read)-len(end)
}

// readError returns the error of Read for an error of the network.
func (c *Conn) readError(err error) error {
	var header tls.RecordHeaderError
	if errors.As(err, &header) && header.Conn != nil {
		c.Conn = header.Conn // the client does not speak TLS: without encryption it can read the error response
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// fasthttp formats the error. Formatting the addresses of a net.OpError would double the goroutine's stack.
		return os.ErrDeadlineExceeded
	}
	return err
}

// answerExpress calls Express with new bytes. It moves the bytes that Express did not use to the beginning of read, and
// returns their number.
func (c *Conn) answerExpress(read []byte) (remaining int, err error) {
	if !c.state.CompareAndSwap(connServing, connInExpress) {
		return 0, net.ErrClosed
	}
	used, err := c.listener.config.Express(c, read)
	remaining = copy(read, read[used:])
	if remaining > 0 && c.deadlinesSet > 0 { // fasthttp does not set the read deadline again while it awaits a head
		_ = c.Conn.SetReadDeadline(c.listener.began.Add(c.Now() + c.listener.config.ReadTimeout))
	}
	if !c.state.CompareAndSwap(connInExpress, connServing) {
		c.state.Store(connServing) // the server is shutting down
		if remaining == 0 {
			return 0, errors.Join(net.ErrClosed, c.Close())
		}
	}
	return remaining, err
}

// Extend starts the read and write timeouts again, as fasthttp does for its requests. Setting a deadline is slow, so
// Extend keeps deadlines that are too early by less than an eighth of the shorter timeout.
func (c *Conn) Extend(now time.Duration) {
	c.lastUse = int64(now)
	config, began := &c.listener.config, c.listener.began
	if c.deadlinesSet > 0 && now-c.deadlinesSet < min(config.WriteTimeout, config.IdleTimeout)/8 {
		return
	}
	c.deadlinesSet = now
	_ = c.Conn.SetReadDeadline(began.Add(now + config.IdleTimeout))
	_ = c.Conn.SetWriteDeadline(began.Add(now + config.WriteTimeout))
}

// ExtendWrite starts the write timeout again. fasthttp does not do so for the response to a request that it can't read.
func (c *Conn) ExtendWrite() {
	_ = c.Conn.SetWriteDeadline(c.listener.began.Add(c.Now() + c.listener.config.WriteTimeout))
}

// Write implements net.Conn. After a failed write, all further writes fail at once. Otherwise the error response to a
// client that does not read would block for a second timeout.
func (c *Conn) Write(b []byte) (int, error) {
	if c.writeErr != nil {
		return 0, c.writeErr
	}
	n, err := c.Conn.Write(b)
	return n, c.noteWrite(err)
}

// WriteBoth writes two pieces without concatenating them.
func (c *Conn) WriteBoth(first, second []byte) error {
	c.pieces = [2][]byte{first, second}
	c.unwritten = c.pieces[:]
	_, err := c.unwritten.WriteTo(c.Conn)
	return c.noteWrite(err)
}

func (c *Conn) noteWrite(err error) error {
	if c.writeErr = err; err != nil && c.tcp != nil {
		// The client does not read the response. Without SetLinger the kernel would keep the unsent bytes after Close.
		_ = c.tcp.SetLinger(0)
	}
	return err
}

// LingerOnClose makes Close read and drop the rest of a request body first, for a limited time. If unread bytes were
// left, the kernel would send a reset, and the client could lose the response.
func (c *Conn) LingerOnClose() { c.lingers.Store(c.tcp != nil) }

// Close implements net.Conn. If Express is running, Close returns at once, and the connection is closed after the
// response. Close returns the permit after it closes the file descriptor, so the cap limits the descriptors too.
func (c *Conn) Close() error {
	if c.state.CompareAndSwap(connInExpress, connClosing) {
		return nil
	}
	if c.lingers.CompareAndSwap(true, false) {
		c.linger()
	}
	err := c.Conn.Close()
	c.release()
	return err
}

// linger closes the sending side, and drops incoming bytes until the client closes its side.
func (c *Conn) linger() {
	if secure, ok := c.Conn.(*tls.Conn); ok {
		_ = secure.CloseWrite() // a failed write shows in the reads below
	}
	_ = c.tcp.CloseWrite()
	_ = c.tcp.SetReadDeadline(c.listener.began.Add(c.Now() + lingerTime))
	var room [512]byte // io.Discard has 8 KiB
	for dropped := 0; dropped < lingerBytesMax; {
		n, err := c.tcp.Read(room[:])
		if dropped += n; err != nil {
			return
		}
	}
}

// abort closes an idle connection. It closes the descriptor below TLS, because sending the close alert could block.
func (c *Conn) abort() {
	if c.tcp != nil {
		_ = c.tcp.Close()
	} else {
		_ = c.Conn.Close()
	}
	c.release()
}

// release returns the connection's permit. Only the first call has an effect.
func (c *Conn) release() {
	if !c.released.CompareAndSwap(false, true) {
		return
	}
	l := c.listener
	l.idle.remove(c)
	<-l.permits
	l.config.Counts.Open.Add(-1)
	l.clientLimit.release(c.clientKey)
}
