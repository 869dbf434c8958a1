package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// drainTimeout is the longest wait for open requests at the end of a stream.
const drainTimeout = 30 * time.Second

// drainingTransport delays the end of a stream until all requests are answered. Without it the SDK cancels open
// requests when the stream ends, so a script that sends requests from a file would get no answers.
type drainingTransport struct{ sdk.Transport }

// Connect implements sdk.Transport.
func (t drainingTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	connection, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &drainingConn{Connection: connection, drained: make(chan struct{}), closed: make(chan struct{})}, nil
}

// drainingConn counts the open requests: those that are not answered yet.
type drainingConn struct {
	sdk.Connection
	mu      sync.Mutex
	open    int           // number of open requests
	ended   bool          // the stream has ended
	drained chan struct{} // closed when the stream has ended and no request is open
	once    sync.Once
	closed  chan struct{} // closed by Close
}

// count adds delta to the number of open requests. ended means that the stream has ended. When the stream has ended and
// no request is open, count closes the channel c.drained.
func (c *drainingConn) count(delta int, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wasDrained := c.ended && c.open <= 0
	c.open += delta
	c.ended = c.ended || ended
	if c.ended && c.open <= 0 && !wasDrained {
		close(c.drained)
	}
}

// Read implements sdk.Connection.
func (c *drainingConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if err != nil {
		c.count(0, true)
		c.awaitDrained(ctx)
		return nil, err
	}
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		c.count(1, false)
	}
	return message, nil
}

// awaitDrained waits until all requests are answered. It waits no longer if the connection is closed, if ctx is done,
// or after drainTimeout.
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

// Write implements sdk.Connection.
func (c *drainingConn) Write(ctx context.Context, message jsonrpc.Message) error {
	err := c.Connection.Write(ctx, message)
	if _, ok := message.(*jsonrpc.Response); ok {
		c.count(-1, false)
	}
	return err
}

// Close implements sdk.Connection.
func (c *drainingConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Connection.Close()
}
