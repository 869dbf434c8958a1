package httpapi

import (
	"errors"
	"net"
	"os"
	"time"
)

// lazyDeadlines is a connection whose deadlines are handed to the machine only when they matter. The server sets three for each
// request, and setting one costs a timer; but a request is nearly always there already, and its answer gone, long before any of them.
// So a deadline that is armed stays armed while later ones are wanted. When it passes, the newest wanted one takes its place.
//
// One goroutine reads, writes and sets deadlines; Close may be called by any.
type lazyDeadlines struct {
	net.Conn
	read, write lazyDeadline
}

// lazyDeadline is the deadline of one direction. Zero times are none.
type lazyDeadline struct{ wanted, armed time.Time }

// late reports that what is armed would not end a call at the wanted time, or would end it although it may go on for ever.
func (d *lazyDeadline) late() bool {
	return d.armed.IsZero() != d.wanted.IsZero() || d.armed.After(d.wanted)
}

// early reports that an error is that of an armed deadline which is not the wanted one.
func (d *lazyDeadline) early(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) && !d.armed.Equal(d.wanted)
}

// arm sets the wanted deadline with the connection's own method.
func (d *lazyDeadline) arm(set func(time.Time) error) error {
	d.armed = d.wanted
	return set(d.wanted)
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
	if c.read.late() {
		if err := c.read.arm(c.Conn.SetReadDeadline); err != nil {
			return 0, err
		}
	}
	for {
		n, err := c.Conn.Read(b)
		if err == nil || n > 0 || !c.read.early(err) {
			return n, err
		}
		if err := c.read.arm(c.Conn.SetReadDeadline); err != nil {
			return 0, err
		}
	}
}

// Write is net.Conn's.
func (c *lazyDeadlines) Write(b []byte) (int, error) {
	if c.write.late() {
		if err := c.write.arm(c.Conn.SetWriteDeadline); err != nil {
			return 0, err
		}
	}
	written := 0
	for {
		n, err := c.Conn.Write(b[written:])
		written += n
		if err == nil || !c.write.early(err) {
			return written, err
		}
		if err := c.write.arm(c.Conn.SetWriteDeadline); err != nil {
			return written, err
		}
	}
}
