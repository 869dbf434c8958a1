package mail

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// pipes is a listener in memory; dial returns the other ends, which record what is written to them.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
	end   func()
	down  atomic.Bool // connections are refused
	began time.Time

	mu        sync.Mutex
	wire      bytes.Buffer    // everything that the client wrote
	dials     []time.Duration // times of all attempts to connect
	connected int
}

func newPipes() *pipes {
	ended := make(chan struct{})
	return &pipes{conns: make(chan net.Conn), ended: ended, end: sync.OnceFunc(func() { close(ended) }), began: clock()}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.end()
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	p.mu.Lock()
	p.dials = append(p.dials, clock().Sub(p.began))
	if p.down.Load() {
		p.mu.Unlock()
		return nil, refused
	}
	p.connected++
	p.mu.Unlock()
	ours, theirs := newMemoryConns(func(text []byte) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.wire.Write(text)
	})
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.ended:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) written() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wire.String()
}

func (p *pipes) dialled() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connected
}

func (p *pipes) tried() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.dials)
}

// pipeWritesMax is how many writes are buffered.
const pipeWritesMax = 16

// memoryConn is one end of a connection in memory. Unlike net.Pipe it buffers some writes, as a socket does: with TLS
// both sides may write at once. Its deadlines have no effect: nothing may depend on them.
type memoryConn struct {
	net.Conn
	in, out chan []byte
	unread  []byte
	ended   <-chan struct{} // of both ends
	end     func()
	record  func(text []byte)
}

// newMemoryConns returns both ends.
func newMemoryConns(record func([]byte)) (client, server *memoryConn) {
	a, b := net.Pipe()
	there, back := make(chan []byte, pipeWritesMax), make(chan []byte, pipeWritesMax)
	ctx, end := context.WithCancel(context.Background())
	client = &memoryConn{Conn: a, in: back, out: there, ended: ctx.Done(), end: end, record: record}
	return client, &memoryConn{Conn: b, in: there, out: back, ended: ctx.Done(), end: end, record: func([]byte) {}}
}

func (c *memoryConn) Read(into []byte) (int, error) {
	if len(c.unread) == 0 {
		select {
		case c.unread = <-c.in:
		case <-c.ended:
			select {
			case c.unread = <-c.in:
			default:
				return 0, io.EOF
			}
		}
	}
	n := copy(into, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

func (c *memoryConn) Write(text []byte) (int, error) {
	c.record(text)
	select {
	case <-c.ended:
		return 0, io.ErrClosedPipe
	default:
	}
	select {
	case c.out <- bytes.Clone(text):
		return len(text), nil
	case <-c.ended:
		return 0, io.ErrClosedPipe
	}
}

func (c *memoryConn) Close() error {
	c.end()
	return c.Conn.Close()
}
