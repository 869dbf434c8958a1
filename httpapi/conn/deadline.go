package conn

import (
	"errors"
	"net"
	"os"
	"time"
)

// lazyDeadlines is a connection that passes few of its deadlines on to the runtime. The server sets three for each
// request, each of which would change a timer, and nearly always the request is answered long before. So an armed
// deadline stays armed when the server sets a later one. When the armed deadline passes, the newest one is armed, and
// the call goes on.
//
// Only one goroutine may read, write and set deadlines; any goroutine may call Close.
type lazyDeadlines struct {
	net.Conn
	read, write lazyDeadline
}

// lazyDeadline is the deadline of one direction: the one that the server has set, and the one that the runtime has. A
// zero time means no deadline.
type lazyDeadline struct{ wanted, armed time.Time }

// arm arms the wanted deadline if the armed one is later, or if only one of the two is zero.
func (d *lazyDeadline) arm(set func(time.Time) error) error {
	if d.armed.IsZero() == d.wanted.IsZero() && !d.armed.After(d.wanted) {
		return nil
	}
	d.armed = d.wanted
	return set(d.wanted)
}

// rearm is called with the error of a call. If that is an armed deadline other than the wanted one, rearm arms the
// wanted one and returns true: the call must go on.
func (d *lazyDeadline) rearm(err error, set func(time.Time) error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) || d.armed.Equal(d.wanted) {
		return false
	}
	d.armed = d.wanted
	return set(d.wanted) == nil
}

// SetReadDeadline implements net.Conn.
func (c *lazyDeadlines) SetReadDeadline(t time.Time) error {
	c.read.wanted = t
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *lazyDeadlines) SetWriteDeadline(t time.Time) error {
	c.write.wanted = t
	return nil
}

// SetDeadline implements net.Conn.
func (c *lazyDeadlines) SetDeadline(t time.Time) error {
	c.read.wanted, c.write.wanted = t, t
	return nil
}

// Read implements net.Conn.
func (c *lazyDeadlines) Read(b []byte) (int, error) {
	if err := c.read.arm(c.Conn.SetReadDeadline); err != nil {
		return 0, err
	}
	for {
		n, err := c.Conn.Read(b)
		if err == nil || n > 0 || !c.read.rearm(err, c.Conn.SetReadDeadline) {
			return n, err
		}
	}
}

// Write implements net.Conn.
func (c *lazyDeadlines) Write(b []byte) (int, error) {
	if err := c.write.arm(c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	written := 0
	for {
		n, err := c.Conn.Write(b[written:])
		written += n
		if err == nil || !c.write.rearm(err, c.Conn.SetWriteDeadline) {
			return written, err
		}
	}
}
