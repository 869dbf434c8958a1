package conn

import (
	"errors"
	"net"
	"os"
	"time"
)

// lazyDeadlines is a connection that passes on only a few of the deadlines that fasthttp sets. fasthttp sets three for
// each request, each would change a runtime timer, and nearly all are replaced long before they pass. So if fasthttp
// sets a later deadline, the earlier one stays armed (set in the runtime). If the earlier one passes during a read or
// write, lazyDeadlines arms the later one and repeats the read or write.
//
// Only one goroutine may read, write and set deadlines. Any goroutine may call Close.
type lazyDeadlines struct {
	net.Conn
	read, write lazyDeadline
}

// lazyDeadline is the deadline of reads or of writes. A zero time means no deadline.
type lazyDeadline struct {
	wanted time.Time // set by fasthttp
	armed  time.Time // set in the runtime
}

// arm is called before a read or write. It arms the wanted deadline if the armed one is later, or if exactly one of the
// two is zero.
func (d *lazyDeadline) arm(set func(time.Time) error) error {
	if d.armed.IsZero() == d.wanted.IsZero() && !d.armed.After(d.wanted) {
		return nil
	}
	d.armed = d.wanted
	return set(d.wanted)
}

// rearm is called with the error of a read or write. If the armed deadline has passed and was not the wanted one, rearm
// arms the wanted one and returns true, and the caller must repeat the read or write.
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
