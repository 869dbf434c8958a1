//go:build linux

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"syscall"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
)

// readBufferBytes is the size of the read buffer of a connection, and the largest size of the head of a response.
const readBufferBytes = 16 << 10

// Causes of a lost connection.
var (
	errClosed = errors.New("the load has ended")
	errExcess = errors.New("more than one response to one request")
)

// client is one client of a generator. It has one connection at a time.
type client struct {
	generator *generator
	dialer    net.Dialer
	conn      net.Conn // nil without a connection; the client changes it, with generator.mu
	reader    *bufio.Reader
	request   []byte
	response  fasthttp.Response
	counted   bool // the outstanding request is counted in results
}

func newClient(g *generator, number int) *client {
	c := &client{generator: g, dialer: net.Dialer{Timeout: connectTimeout, KeepAlive: -1}, reader: bufio.NewReaderSize(nil, readBufferBytes)}
	if g.Subnet != 0 {
		address := number / g.PerAddress
		c.dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, g.Subnet, byte(address/250), byte(1+address%250))} //nolint:gosec // G115: below 250
		c.dialer.Control = func(_, _ string, socket syscall.RawConn) error {                                   // otherwise bind would reserve a port
			return socket.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) })
		}
	}
	return c
}

// work sends requests until the load ends.
func (c *client) work() {
	for {
		due, more := c.generator.next(c)
		if !more {
			return
		}
		status, closes, err := c.exchange()
		c.generator.count(c, due, status, err)
		if closes || c.generator.Reconnects {
			c.hangUp()
		}
	}
}

// dial opens the connection.
func (c *client) dial(ctx context.Context) error {
	g := c.generator
	conn, err := c.dialer.DialContext(ctx, "tcp", g.Address)
	if err == nil && g.TLS != nil {
		encrypted := tls.Client(conn, g.TLS)
		if err = encrypted.HandshakeContext(ctx); err != nil {
			_ = conn.Close() // it is not used
		}
		conn = encrypted
	}
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		_ = conn.Close() // it is not used
		return errClosed
	}
	c.reader.Reset(conn)
	c.conn = conn
	return nil
}

// hangUp closes the connection, if there is one.
func (c *client) hangUp() {
	c.generator.mu.Lock()
	defer c.generator.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close() // an error is irrelevant: the connection is not used any more
		c.conn = nil
	}
}

// exchange sends the request, on a new connection if there is none, and reads the response, or all pipelined ones. The
// status is 200 if all responses have status 200, otherwise the first other status.
func (c *client) exchange() (status int, closes bool, err error) {
	if c.conn == nil {
		if err := c.dial(context.Background()); err != nil { // the dialer has a time limit
			return 0, true, err
		}
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return 0, true, err
	}
	for range c.generator.Pipeline {
		if err := c.response.Read(c.reader); err != nil {
			return 0, true, err
		}
		if status == 0 || status == http.StatusOK {
			status = c.response.StatusCode()
		}
		closes = closes || c.response.ConnectionClose()
	}
	if c.reader.Buffered() > 0 {
		return 0, true, errExcess
	}
	return status, closes, nil
}
