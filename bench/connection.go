//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// headBytesMax is the largest size of the head of a response (status line and header fields), and the size of the read
// buffer of a connection.
const headBytesMax = 16 << 10

// Causes of a lost connection. Chunked responses and responses without Content-Length are rejected, because no server
// that is measured should send them.
var (
	errClosed = errors.New("connection closed before the response")
	errHead   = errors.New("no HTTP/1.1 response head within 16 KiB, with a status and one Content-Length")
	errExcess = errors.New("more than one response to one request")
)

// client is one client of a generator. It has one connection at a time.
type client struct {
	generator *generator
	dialer    net.Dialer
	conn      net.Conn // nil without a connection; the client changes it, with generator.mu
	reader    *bufio.Reader
	request   []byte
	counted   bool // the outstanding request is counted in results
}

func newClient(g *generator, number int) *client {
	c := &client{generator: g, dialer: net.Dialer{Timeout: connectTimeout, KeepAlive: -1}, reader: bufio.NewReaderSize(nil, headBytesMax)}
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
		r, err := c.exchange()
		c.generator.count(c, due, r, err)
		if err != nil || r.closes || c.generator.Reconnects {
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
func (c *client) exchange() (all response, err error) {
	if c.conn == nil {
		if err := c.dial(context.Background()); err != nil { // the dialer has a time limit
			return all, err
		}
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return all, err
	}
	for range c.generator.Pipeline {
		r, err := readResponse(c.reader)
		if err != nil {
			return all, err
		}
		if all.status == 0 || all.status == 200 {
			all.status = r.status
		}
		all.closes = all.closes || r.closes
		all.bytes += r.bytes
	}
	if c.reader.Buffered() > 0 {
		return all, errExcess
	}
	return all, nil
}

// response is what the generator needs of a response.
type response struct {
	status, bytes int
	closes        bool // the server closes the connection after this response
	bodyBytes     int  // Content-Length, or -1
}

// readResponse reads one response and discards its body.
func readResponse(reader *bufio.Reader) (r response, err error) {
	line, err := r.readLine(reader)
	if err == nil && !r.parseStatus(line) {
		err = errHead
	}
	for err == nil {
		if line, err = r.readLine(reader); len(line) == 0 {
			break
		}
		if !r.parseField(line) {
			err = errHead
		}
	}
	if r.status == 204 || r.status == 304 {
		r.bodyBytes = 0
	}
	switch {
	case err != nil:
		return r, err
	case r.bodyBytes < 0:
		return r, errHead
	}
	discarded, err := reader.Discard(r.bodyBytes)
	if r.bytes += discarded; err != nil {
		return r, errClosed
	}
	return r, nil
}

// readLine reads a line of the head, without its end.
func (r *response) readLine(reader *bufio.Reader) ([]byte, error) {
	line, err := reader.ReadSlice('\n')
	r.bytes += len(line)
	switch {
	case r.bytes > headBytesMax:
		return nil, errHead
	case err != nil:
		return nil, errClosed
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// parseStatus parses the status line and reports whether it is valid.
func (r *response) parseStatus(line []byte) bool {
	if len(line) < len("HTTP/1.1 200") || string(line[:7]) != "HTTP/1." || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return false
	}
	status, err := strconv.Atoi(string(line[9:12]))
	r.status, r.closes, r.bodyBytes = status, line[7] == '0', -1
	return err == nil && status >= 200
}

// parseField parses a header field and reports whether it is valid.
func (r *response) parseField(line []byte) bool {
	if first := line[0] | 0x20; first != 'c' && first != 't' {
		return true
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		length, err := strconv.ParseUint(string(value), 10, 40)
		if err != nil || r.bodyBytes >= 0 {
			return false
		}
		r.bodyBytes = int(length)
	case bytes.EqualFold(name, []byte("Connection")):
		r.closes = bytes.EqualFold(value, []byte("close")) || r.closes && !bytes.EqualFold(value, []byte("keep-alive"))
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		return false
	}
	return true
}
