//go:build !nocluster

package cluster

import (
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
	headerEnd     = "Tasard-End"
	endComplete   = "whole"
	transfersMax  = 2 // sent at once
	chunkBytes    = 256 << 10
	chunkTimeout  = 10 * time.Second // for one chunk or its acknowledgement
)

// serveBackups sends backups of this node's log to other nodes, at most transfersMax at once, until the connection
// ends. Each chunk waits for the acknowledgement of the one before, so that a slow receiver delays only its own
// transfer.
func (c *Cluster) serveBackups() error {
	slots := make(chan struct{}, transfersMax)
	_, err := c.server.conn.Subscribe(subjectBackup+c.config.Name, func(m *nats.Msg) {
		select {
		case slots <- struct{}{}:
			if !c.tasks.start(func() { c.sendBackup(m.Reply); <-slots }) {
				<-slots
			}
		default:
			c.endTransfer(m.Reply, errors.New("this node is sending its log to other nodes already"))
		}
	})
	return err
}

// sendBackup sends a backup, and then the result.
func (c *Cluster) sendBackup(to string) {
	j := c.Journal()
	if j == nil {
		c.endTransfer(to, errors.New("this node has no complete log yet"))
		return
	}
	file, err := wal.NewBackupFile(&chunkWriter{ctx: c.ctx, conn: c.server.conn, to: to})
	if err == nil {
		_, err = j.Backup(file, wal.BackupOptions{Clock: c.config.Clock, Program: c.config.Version})
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		c.logger.Warn("log not sent to another node", "cause", err.Error())
	}
	c.endTransfer(to, err)
}

// endTransfer sends the result of a transfer. A receiver that misses it rejects the backup as truncated.
func (c *Cluster) endTransfer(to string, why error) {
	end := nats.NewMsg(to)
	end.Header.Set(headerEnd, endComplete)
	if why != nil {
		end.Header.Set(headerEnd, why.Error())
	}
	if err := c.server.conn.PublishMsg(end); err != nil {
		c.logger.Debug("end of the log not sent", "cause", err.Error())
	}
}

// chunkWriter sends what is written to it in acknowledged chunks.
type chunkWriter struct {
	ctx  context.Context
	conn *nats.Conn
	to   string
}

// Write implements io.Writer.
func (w *chunkWriter) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		piece := p[written:min(len(p), written+chunkBytes)]
		ctx, cancel := context.WithTimeout(w.ctx, chunkTimeout)
		_, err := w.conn.RequestWithContext(ctx, w.to, piece)
		cancel()
		if err != nil {
			return written, err
		}
		written += len(piece)
	}
	return written, nil
}

// fetchBackup copies the log of any node that offers it into a directory beside the log.
func (c *Cluster) fetchBackup(ctx context.Context) (wal.BackupInfo, error) {
	for {
		sources, err := c.peers.backupSources(&c.config, c.self.Load().Stream)
		for _, from := range sources {
			var info wal.BackupInfo
			if info, err = c.fetchBackupFrom(ctx, from.Name); err == nil {
				return info, nil
			}
			c.logger.Warn("log not received", "from", from.Name, "cause", err.Error())
		}
		if stop := sleep(ctx, joinRetryInterval); stop != nil {
			return wal.BackupInfo{}, fmt.Errorf("%w; the last answer: %w", stop, err)
		}
	}
}

func (c *Cluster) fetchBackupFrom(ctx context.Context, name string) (info wal.BackupInfo, err error) {
	inbox := c.server.conn.NewInbox()
	pieces, err := c.server.conn.SubscribeSync(inbox)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, unsubscribe(pieces)) }()
	if err := c.server.conn.PublishRequest(subjectBackup+name, inbox, nil); err != nil {
		return info, err
	}
	return receiveBackup(&c.config, &chunkReader{ctx: ctx, chunks: pieces}, name)
}

// chunkReader reads what a chunkWriter sends.
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
	switch end := m.Header.Get(headerEnd); end {
	case "":
		r.unread = m.Data
		return m.Respond(nil)
	case endComplete:
		r.complete = true
		return nil
	default:
		return fmt.Errorf("the other node says: %s", end)
	}
}
