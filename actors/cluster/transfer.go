package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/tasard/tasard/wal"
)

const (
	transfersMax = 2 // maximum number of concurrent transfers from this node
	chunkBytes   = 256 << 10
	chunkTimeout = 10 * time.Second // maximum wait for a chunk
)

// sendLog answers a kindLogRequest with a copy of this node's log. The receiver rejects a log without kindEnd as
// truncated.
func (c *Cluster) sendLog(conn net.Conn) {
	err := errors.New("this node is sending its log to other nodes already")
	select {
	case c.transfers <- struct{}{}:
		defer func() { <-c.transfers }()
		err = c.writeLog(conn)
	default:
	}
	kind, body := byte(kindEnd), []byte(nil)
	if err != nil {
		c.logger.Warn("log not sent to another node", "cause", err.Error())
		kind, body = kindFailed, []byte(err.Error())
	}
	_, _ = conn.Write(encodeMessage(kind, body)) // the receiver sees the end of the connection
}

func (c *Cluster) writeLog(conn net.Conn) error {
	if c.Journal() == nil {
		return errors.New("this node has no complete log yet")
	}
	out := bufio.NewWriterSize(chunkWriter{conn}, chunkBytes)
	if err := packLog(c.config.Dir, out); err != nil {
		return err
	}
	return out.Flush()
}

// chunkWriter sends data in messages.
type chunkWriter struct{ conn net.Conn }

// Write implements io.Writer.
func (w chunkWriter) Write(p []byte) (int, error) {
	if err := w.conn.SetWriteDeadline(time.Now().Add(chunkTimeout)); err != nil { //nolint:forbidigo // of the operating system
		return 0, err
	}
	if _, err := w.conn.Write(encodeMessage(kindChunk, p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// fetchLog copies the log of another node into DIR/incoming, where DIR is this node's data directory. It tries one
// node after the other until it succeeds or ctx ends.
func (c *Cluster) fetchLog(ctx context.Context) (wal.Report, error) {
	for {
		sources, err := c.peers.backupSources(&c.config, c.self.Load().Stream)
		for _, source := range sources {
			var info wal.Report
			if info, err = c.fetchLogFrom(ctx, source.Name, source.Address); err == nil {
				return info, nil
			}
			c.logger.Warn("log not received", "from", source.Name, "cause", err.Error())
		}
		if ctxErr := sleep(ctx, joinRetryInterval); ctxErr != nil {
			return wal.Report{}, fmt.Errorf("%w; the last answer: %w", ctxErr, err)
		}
	}
}

func (c *Cluster) fetchLogFrom(ctx context.Context, name, address string) (wal.Report, error) {
	conn, r, err := c.transport.request(ctx, name, address, kindLogRequest)
	if err != nil {
		return wal.Report{}, err
	}
	defer c.transport.end(conn)
	return receiveLog(&c.config, &chunkReader{conn: conn, r: r})
}

// chunkReader reads the data that the chunkWriter of another node sends.
type chunkReader struct {
	conn     net.Conn
	r        *bufio.Reader
	unread   []byte
	complete bool
}

// Read implements io.Reader.
func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.unread) == 0 {
		if r.complete {
			return 0, io.EOF
		}
		if err := r.conn.SetReadDeadline(time.Now().Add(chunkTimeout)); err != nil { //nolint:forbidigo // of the operating system
			return 0, err
		}
		kind, body, err := readMessage(r.r)
		switch {
		case err != nil:
			return 0, io.ErrUnexpectedEOF
		case kind == kindChunk:
			r.unread = body
		case kind == kindEnd:
			r.complete = true
		default:
			return 0, fmt.Errorf("the other node says: %s", body)
		}
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	return n, nil
}
