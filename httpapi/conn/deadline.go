package conn

import (
	"errors"
	"net"
	"os"
	"time"
)

// lazyDeadlines is a connection that hands its deadlines to the runtime only when they matter. The server sets three
// for each request, and each costs a timer; but nearly always the request is there, and its answer gone, long before.
// So an armed deadline stays armed while later ones are wanted. When it passes, the newest wanted one takes its place.
//
// One goroutine reads, writes and sets deadlines; Close may be called by any.
type lazyDeadlines struct {
	net.Conn
	read, write lazyDeadline
}

// lazyDeadline is the deadline of one direction. Zero times are none.
type lazyDeadline struct{ wanted, armed time.Time }

// arm arms the wanted deadline where the armed one would not end a call in time, or would end one that may go on
// for ever.
func (d *lazyDeadline) arm(set func(time.Time) error) error {
	if d.armed.IsZero() == d.wanted.IsZero() && !d.armed.After(d.wanted) {
		return nil
	}
	d.armed = d.wanted
	return set(d.wanted)
}

// rearm arms the wanted deadline after one that was armed before has ended a call with err: true when the call is
// to go on.
func (d *lazyDeadline) rearm(err error, set func(time.Time) error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) || d.armed.Equal(d.wanted) {
		return false
	}
	d.armed = d.wanted
	return set(d.wanted) == nil
}

// SetReadDeadline is net.Conn's.
func (c *lazyDeadlines) SetReadDeadline(t time.Time) error {
	c.read.wanted = t
	return nil
}

// SetWriteDeadline is net.Conn's.
func (c *lazyDeadlines) SetWriteDeadline(t time.Time) error {
	c.write.wanted = t
	return nil
}

// SetDeadline is net.Conn's.
func (c *lazyDeadlines) SetDeadline(t time.Time) error {
	c.read.wanted, c.write.wanted = t, t
	return nil
}

// Read is net.Conn's.
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

// Write is net.Conn's.
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
