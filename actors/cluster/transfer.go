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

// sendLog answers a kindLogRequest with an archive of this node's log. Nothing may follow on the connection.
func (c *Cluster) sendLog(conn net.Conn) {
	err := errors.New("this node is sending its log to other nodes already")
	select {
	case c.transfers <- struct{}{}:
		defer func() { <-c.transfers }()
		err = c.writeLog(conn)
	default:
	}
	if err != nil {
		c.logger.Warn("log not sent to another node", "cause", err.Error())
	}
}

func (c *Cluster) writeLog(conn net.Conn) error {
	if c.Journal() == nil {
		return errors.New("this node has no complete log yet")
	}
	out := bufio.NewWriterSize(timedWriter{conn}, chunkBytes)
	if err := packLog(c.config.Dir, out); err != nil {
		return err
	}
	return out.Flush()
}

// timedWriter limits the time of each write.
type timedWriter struct{ net.Conn }

// Write implements io.Writer.
func (w timedWriter) Write(p []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(chunkTimeout)); err != nil { //nolint:forbidigo // deadlines use real time
		return 0, err
	}
	return w.Conn.Write(p)
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
	conn, r, err := c.transport.dial(ctx, name, address)
	if err != nil {
		return wal.Report{}, err
	}
	defer c.transport.end(conn)
	if _, err := conn.Write(encodeMessage(kindLogRequest, nil)); err != nil {
		return wal.Report{}, err
	}
	return receiveLog(&c.config, timedReader{conn, r})
}

// timedReader limits the time of each read.
type timedReader struct {
	conn net.Conn
	r    io.Reader
}

// Read implements io.Reader.
func (r timedReader) Read(p []byte) (int, error) {
	if err := r.conn.SetReadDeadline(time.Now().Add(chunkTimeout)); err != nil { //nolint:forbidigo // deadlines use real time
		return 0, err
	}
	return r.r.Read(p)
}
