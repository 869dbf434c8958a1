//go:build !nocluster

package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tasard/tasard/wal"
)

const (
	subjectBackup = "tasard.copy." // followed by the name of the sending node
	headerEnd     = "Tasard-End"   // in the final message of a transfer of a log: endComplete, or the text of an error
	endComplete   = "whole"
	transfersMax  = 2 // maximum number of concurrent transfers from this node
	chunkBytes    = 256 << 10
	chunkTimeout  = 10 * time.Second // maximum wait for a chunk or for its acknowledgement
)

// serveLogs sends a copy of this node's log to each node that requests one, until the connection is closed.
func (c *Cluster) serveLogs() error {
	slots := make(chan struct{}, transfersMax)
	_, err := c.server.conn.Subscribe(subjectBackup+c.config.Name, func(m *nats.Msg) {
		select {
		case slots <- struct{}{}:
			if !c.tasks.start(func() { c.sendLog(m.Reply); <-slots }) {
				<-slots
			}
		default:
			c.endTransfer(m.Reply, errors.New("this node is sending its log to other nodes already"))
		}
	})
	return err
}

func (c *Cluster) sendLog(subject string) {
	if c.Journal() == nil {
		c.endTransfer(subject, errors.New("this node has no complete log yet"))
		return
	}
	out := bufio.NewWriterSize(&chunkWriter{ctx: c.ctx, conn: c.server.conn, subject: subject}, chunkBytes)
	err := packLog(c.config.Dir, out)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		c.logger.Warn("log not sent to another node", "cause", err.Error())
	}
	c.endTransfer(subject, err)
}

// endTransfer sends the final message of a transfer. The receiver rejects a log without this message as truncated.
func (c *Cluster) endTransfer(subject string, err error) {
	message := nats.NewMsg(subject)
	message.Header.Set(headerEnd, endComplete)
	if err != nil {
		message.Header.Set(headerEnd, err.Error())
	}
	if err := c.server.conn.PublishMsg(message); err != nil {
		c.logger.Debug("end of the log not sent", "cause", err.Error())
	}
}

// chunkWriter sends data in chunks. It sends a chunk when the previous chunk is acknowledged, so that messages for a
// slow receiver do not accumulate in the server.
type chunkWriter struct {
	ctx     context.Context
	conn    *nats.Conn
	subject string
}

// Write implements io.Writer.
func (w *chunkWriter) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		chunk := p[written:min(len(p), written+chunkBytes)]
		ctx, cancel := context.WithTimeout(w.ctx, chunkTimeout)
		_, err := w.conn.RequestWithContext(ctx, w.subject, chunk)
		cancel()
		if err != nil {
			return written, err
		}
		written += len(chunk)
	}
	return written, nil
}

// fetchLog copies the log of another node into DIR/incoming, where DIR is this node's data directory. It tries one
// node after the other until it succeeds or ctx ends.
func (c *Cluster) fetchLog(ctx context.Context) (wal.Report, error) {
	for {
		sources, err := c.peers.backupSources(&c.config, c.self.Load().Stream)
		for _, source := range sources {
			var info wal.Report
			if info, err = c.fetchLogFrom(ctx, source.Name); err == nil {
				return info, nil
			}
			c.logger.Warn("log not received", "from", source.Name, "cause", err.Error())
		}
		if ctxErr := sleep(ctx, joinRetryInterval); ctxErr != nil {
			return wal.Report{}, fmt.Errorf("%w; the last answer: %w", ctxErr, err)
		}
	}
}

func (c *Cluster) fetchLogFrom(ctx context.Context, name string) (info wal.Report, err error) {
	inbox := c.server.conn.NewInbox()
	chunks, err := c.server.conn.SubscribeSync(inbox)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, unsubscribe(chunks)) }()
	if err := c.server.conn.PublishRequest(subjectBackup+name, inbox, nil); err != nil {
		return info, err
	}
	return receiveLog(&c.config, &chunkReader{ctx: ctx, chunks: chunks})
}

// chunkReader reads the data that the chunkWriter of another node sends.
type chunkReader struct {
	ctx      context.Context
	chunks   *nats.Subscription
	unread   []byte
	complete bool
}

// Read implements io.Reader.
func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.unread) == 0 {
		if r.complete {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	return n, nil
}

func (r *chunkReader) next() error {
	ctx, cancel := context.WithTimeout(r.ctx, chunkTimeout)
	defer cancel()
	m, err := r.chunks.NextMsgWithContext(ctx)
	if err != nil {
		return err
	}
	switch result := m.Header.Get(headerEnd); result {
	case "":
		r.unread = m.Data
		return m.Respond(nil)
	case endComplete:
		r.complete = true
		return nil
	default:
		return fmt.Errorf("the other node says: %s", result)
	}
}
