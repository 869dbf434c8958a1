//go:build !nocluster

package cluster

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/tasard/tasard/engine/account"
)

const (
	pendingMax        = 128             // connections of all addresses that have not authenticated themselves
	pendingPerAddress = 32              // the same of one address
	authTimeout       = 6 * time.Second // for both handshakes, of TLS and of the NATS server
	acceptRetryDelay  = 100 * time.Millisecond
	tlsHandshake      = 22 // first byte of a TLS connection
)

// gate accepts the connections of other nodes and forwards their bytes to the embedded NATS server, which listens on a
// loopback port. The server does not limit the number of connections that have not authenticated themselves: a program
// without a certificate or secret could take all file descriptors of the node. The gate closes the oldest of these
// connections when there are too many, and all of them after authTimeout. It connects to the server only when it has
// received the first byte of a TLS handshake.
type gate struct {
	config   *Config
	listener net.Listener
	log      *limitedLog
	target   *net.TCPAddr // of the embedded server
	password string
	tasks    sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	pending  []*gateConn          // not authenticated, oldest first
	byServer map[string]*gateConn // by the address from which the server receives the connection
	open     map[*gateConn]struct{}
}

type gateConn struct {
	remote  net.Conn
	network netip.Prefix // address of the remote node; of IPv6 its /64
	server  *net.TCPConn // nil before the TLS handshake
	timeout *time.Timer
}

func listen(c *Config) (*gate, error) {
	l, err := net.Listen("tcp", c.Listen)
	return &gate{
		config: c, listener: l, log: &limitedLog{logger: c.Logger, clock: c.Clock}, password: c.routePassword(),
		byServer: map[string]*gateConn{}, open: map[*gateConn]struct{}{},
	}, err
}

// start begins to forward connections to the server at the address target.
func (g *gate) start(target *net.TCPAddr) {
	g.target = target
	g.tasks.Go(g.acceptAll)
}

func (g *gate) acceptAll() {
	for {
		remote, err := g.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			g.log.write(slog.LevelWarn, "connections of other nodes not accepted", "cause", err.Error())
			<-time.NewTimer(acceptRetryDelay).C
			continue
		}
		if c := g.add(remote); c != nil {
			g.tasks.Go(func() { g.forward(c) })
		}
	}
}

// add records a new connection, and closes the oldest one that has not authenticated itself if there are too many. A
// real node needs some milliseconds, so the oldest one is probably not a node. It returns nil if the gate is closed.
func (g *gate) add(remote net.Conn) *gateConn {
	from, _ := netip.ParseAddrPort(remote.RemoteAddr().String()) // of TCP, so always valid
	c := &gateConn{remote: remote, network: account.ClientPrefix(from.Addr())}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		_ = remote.Close() // nothing was sent
		return nil
	}
	same := func(p *gateConn) bool { return p.network == c.network }
	count := 0
	for _, p := range g.pending {
		if same(p) {
			count++
		}
	}
	oldest := -1
	if count >= pendingPerAddress {
		oldest = slices.IndexFunc(g.pending, same)
	} else if len(g.pending) >= pendingMax {
		oldest = 0
	}
	if oldest >= 0 {
		g.log.write(slog.LevelWarn, "too many connections that are not from nodes, the oldest is closed", "address", g.pending[oldest].remote.RemoteAddr().String())
		g.pending[oldest].close()
		g.pending = slices.Delete(g.pending, oldest, oldest+1)
	}
	g.pending, g.open[c] = append(g.pending, c), struct{}{}
	c.timeout = time.AfterFunc(authTimeout, func() { g.expire(c) })
	return c
}

func (g *gate) expire(c *gateConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.Contains(g.pending, c) {
		c.close()
	}
}

// close closes both connections; gate.mu must be locked. forward then returns.
func (c *gateConn) close() {
	c.timeout.Stop()
	_ = c.remote.Close() // the other side sees the end, and nothing can be done about an error
	if c.server != nil {
		_ = c.server.Close()
	}
}

// forward copies bytes in both directions until the server has closed its connection. When the remote node closes
// first, the server still reads what has arrived, and asks the gate about this connection (Check).
func (g *gate) forward(c *gateConn) {
	defer g.remove(c)
	first := make([]byte, 1)
	if _, err := io.ReadFull(c.remote, first); err != nil || first[0] != tlsHandshake {
		return
	}
	if err := g.connect(c); err != nil {
		g.log.write(slog.LevelWarn, "connection of another node not forwarded to the NATS server", "cause", err.Error())
		return
	}
	// Errors need no action: the other side sees the end of the connection.
	var toRemote sync.WaitGroup
	toRemote.Go(func() {
		_, _ = io.Copy(c.remote, c.server)
		_ = c.remote.Close()
		_, _ = io.Copy(io.Discard, c.server)
	})
	if _, err := c.server.Write(first); err == nil {
		_, _ = io.Copy(c.server, c.remote)
	}
	_ = c.server.CloseWrite()
	toRemote.Wait()
}

func (g *gate) connect(c *gateConn) error {
	toServer, err := net.DialTCP("tcp", nil, g.target)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	c.server = toServer
	if _, open := g.open[c]; !open || g.closed {
		c.close()
		return net.ErrClosed
	}
	g.byServer[toServer.LocalAddr().String()] = c
	return nil
}

func (g *gate) remove(c *gateConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.close()
	delete(g.open, c)
	if c.server != nil && g.byServer[c.server.LocalAddr().String()] == c {
		delete(g.byServer, c.server.LocalAddr().String())
	}
	g.forget(c)
}

func (g *gate) forget(c *gateConn) {
	if i := slices.Index(g.pending, c); i >= 0 {
		g.pending = slices.Delete(g.pending, i, i+1)
	}
}

// Check implements server.Authentication. The server calls it for each connection of another node, after the TLS
// handshake. A connection that has not come through the gate is refused.
func (g *gate) Check(s server.ClientAuthentication) bool {
	// The server may log while it holds the locks that these methods need, so they are called before g.mu is locked.
	from, state, password := s.RemoteAddress().String(), s.GetTLSConnectionState(), s.GetOpts().Password
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.byServer[from]
	if c == nil {
		return false
	}
	if err := g.config.checkPeer(state, g.password, password); err != nil {
		g.log.write(slog.LevelWarn, "another node refused", "address", c.remote.RemoteAddr().String(), "cause", err.Error())
		return false
	}
	c.timeout.Stop()
	g.forget(c)
	return true
}

// remoteAddress returns the address of the node from which a connection comes that the server receives from the
// address from. If there is none, it returns from.
func (g *gate) remoteAddress(from string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.byServer[from]; c != nil {
		return c.remote.RemoteAddr().String()
	}
	return from
}

// close closes the listener and all connections, and waits for all goroutines.
func (g *gate) close() {
	_ = g.listener.Close() // it is closed even then
	g.mu.Lock()
	g.closed = true
	for c := range g.open {
		c.close()
	}
	g.mu.Unlock()
	g.tasks.Wait()
}
