package mail

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// pipes is a listener in memory; dial returns the other ends, which record what is written to them.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once

	mu    sync.Mutex
	wire  bytes.Buffer // everything that the client wrote
	dials int
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), ended: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.ended) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.mu.Lock()
	p.dials++
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
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
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
	return p.dials
}

// bytePipe carries bytes in one direction. Unlike net.Pipe it buffers some, as a socket does: with TLS both sides may
// write at once.
type bytePipe struct {
	kept  chan []byte
	rest  []byte
	ended chan struct{}
	once  sync.Once
}

// pipeWritesMax is how many writes are buffered.
const pipeWritesMax = 16

func newBytePipe() *bytePipe {
	return &bytePipe{kept: make(chan []byte, pipeWritesMax), ended: make(chan struct{})}
}

func (h *bytePipe) read(into []byte) (int, error) {
	if len(h.rest) == 0 {
		select {
		case h.rest = <-h.kept:
		case <-h.ended:
			select {
			case h.rest = <-h.kept:
			default:
				return 0, io.EOF
			}
		}
	}
	n := copy(into, h.rest)
	h.rest = h.rest[n:]
	return n, nil
}

func (h *bytePipe) write(text []byte) (int, error) {
	select {
	case <-h.ended:
		return 0, io.ErrClosedPipe
	default:
	}
	select {
	case h.kept <- bytes.Clone(text):
		return len(text), nil
	case <-h.ended:
		return 0, io.ErrClosedPipe
	}
}

func (h *bytePipe) end() { h.once.Do(func() { close(h.ended) }) }

// memoryConn is one end of a connection in memory. Its deadlines have no effect: nothing may depend on them.
type memoryConn struct {
	net.Conn
	in, out *bytePipe
	record  func(text []byte)
}

// newMemoryConns returns both ends.
func newMemoryConns(record func([]byte)) (client, server *memoryConn) {
	a, b := net.Pipe()
	there, back := newBytePipe(), newBytePipe()
	return &memoryConn{a, back, there, record}, &memoryConn{b, there, back, func([]byte) {}}
}

func (w *memoryConn) Read(into []byte) (int, error) { return w.in.read(into) }

func (w *memoryConn) Write(text []byte) (int, error) {
	w.record(text)
	return w.out.write(text)
}

func (w *memoryConn) Close() error {
	w.in.end()
	w.out.end()
	return w.Conn.Close()
}
