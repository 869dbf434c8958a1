package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// drainTimeout is how long the end of a stream waits for the answers to what was asked before it. The SDK would give them up at once, so that
// a program which writes its questions and hangs up, as a shell does with a file, would get none.
const drainTimeout = 30 * time.Second

// drainingTransport is a transport whose end comes behind the last answer.
type drainingTransport struct{ sdk.Transport }

// Connect is sdk.Transport.
func (t drainingTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	connection, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &drainingConn{Connection: connection, drained: make(chan struct{}), closed: make(chan struct{})}, nil
}

// drainingConn is a connection that knows how many calls are open.
type drainingConn struct {
	sdk.Connection
	mu      sync.Mutex
	open    int
	ended   bool          // nothing more comes in
	drained chan struct{} // closed when it has ended and nothing is open
	once    sync.Once
	closed  chan struct{} // closed by Close
}

// count notes a call or an answer, or neither and the end.
func (c *drainingConn) count(change int, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.ended && c.open <= 0
	c.open += change
	c.ended = c.ended || ended
	if c.ended && c.open <= 0 && !before {
		close(c.drained)
	}
}

// Read is sdk.Connection.
func (c *drainingConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if err != nil {
		c.count(0, true)
		c.awaitDrained(ctx)
		return nil, err
	}
	if request, is := message.(*jsonrpc.Request); is && request.IsCall() {
		c.count(1, false)
	}
	return message, nil
}

// awaitDrained returns when all is answered, or nobody waits for answers any more.
func (c *drainingConn) awaitDrained(ctx context.Context) {
	timer := time.NewTimer(drainTimeout)
	defer timer.Stop()
	select {
	case <-c.drained:
	case <-c.closed:
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Write is sdk.Connection.
func (c *drainingConn) Write(ctx context.Context, message jsonrpc.Message) error {
	err := c.Connection.Write(ctx, message)
	if _, is := message.(*jsonrpc.Response); is {
		c.count(-1, false)
	}
	return err
}

// Close is sdk.Connection.
func (c *drainingConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Connection.Close()
}
