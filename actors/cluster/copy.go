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
	subjectCopy = "tasard.copy." // and the name of the node that gives
	headerEnd   = "Tasard-End"
	endWhole    = "whole"
	copiesMost  = 2 // backups that are given at once
	pieceBytes  = 256 << 10
	pieceWait   = 10 * time.Second // for one piece, or for word that it came
)

// giveCopies gives backups of this node's log to other nodes, copiesMost at once, until the connection ends. A piece is sent when the one
// before was taken, so a slow receiver holds up no other one.
func (c *Cluster) giveCopies() error {
	slots := make(chan struct{}, copiesMost)
	_, err := c.node.conn.Subscribe(subjectCopy+c.config.Name, func(m *nats.Msg) {
		select {
		case slots <- struct{}{}:
			if !c.crew.start(func() { c.giveCopy(m.Reply); <-slots }) {
				<-slots
			}
		default:
			c.endCopy(m.Reply, errors.New("this node gives copies to others already"))
		}
	})
	return err
}

// giveCopy sends a backup, then how it ended.
func (c *Cluster) giveCopy(to string) {
	j := c.opened()
	if j == nil {
		c.endCopy(to, errors.New("this node has no copy yet"))
		return
	}
	file, err := wal.NewBackupFile(&pieceWriter{ctx: c.life, conn: c.node.conn, to: to})
	if err == nil {
		_, err = j.Backup(file, wal.BackupOptions{Clock: c.config.Clock, Program: c.config.Version})
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		c.logger.Warn("a copy of the log was not given", "cause", err.Error())
	}
	c.endCopy(to, err)
}

// endCopy says how it ended. A node that does not hear it finds the copy cut short.
func (c *Cluster) endCopy(to string, why error) {
	end := nats.NewMsg(to)
	end.Header.Set(headerEnd, endWhole)
	if why != nil {
		end.Header.Set(headerEnd, why.Error())
	}
	if err := c.node.conn.PublishMsg(end); err != nil {
		c.logger.Debug("the end of a copy was not sent", "cause", err.Error())
	}
}

// pieceWriter sends what is written, piece by piece.
type pieceWriter struct {
	ctx  context.Context
	conn *nats.Conn
	to   string
}

// Write is io.Writer.
func (w *pieceWriter) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		piece := p[written:min(len(p), written+pieceBytes)]
		ctx, cancel := context.WithTimeout(w.ctx, pieceWait)
		_, err := w.conn.RequestWithContext(ctx, w.to, piece)
		cancel()
		if err != nil {
			return written, err
		}
		written += len(piece)
	}
	return written, nil
}

// fetchCopy gets a whole copy from whoever has one, beside the log.
func (c *Cluster) fetchCopy(ctx context.Context) (wal.BackupInfo, error) {
	for {
		givers, err := c.reports.givers(&c.config, c.self.Stream)
		for _, from := range givers {
			var info wal.BackupInfo
			if info, err = c.fetchFrom(ctx, from.Name); err == nil {
				return info, nil
			}
			c.logger.Warn("no copy of the log from this node", "from", from.Name, "cause", err.Error())
		}
		if stop := pause(ctx, joinLook); stop != nil {
			return wal.BackupInfo{}, fmt.Errorf("%w; the last answer: %w", stop, err)
		}
	}
}

func (c *Cluster) fetchFrom(ctx context.Context, name string) (info wal.BackupInfo, err error) {
	inbox := c.node.conn.NewInbox()
	pieces, err := c.node.conn.SubscribeSync(inbox)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, unsubscribe(pieces)) }()
	if err := c.node.conn.PublishRequest(subjectCopy+name, inbox, nil); err != nil {
		return info, err
	}
	return receive(&c.config, &pieceReader{ctx: ctx, pieces: pieces}, name)
}

// pieceReader reads what a pieceWriter sends.
type pieceReader struct {
	ctx    context.Context
	pieces *nats.Subscription
	rest   []byte
	whole  bool
}

// Read is io.Reader.
func (r *pieceReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.whole {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *pieceReader) next() error {
	ctx, cancel := context.WithTimeout(r.ctx, pieceWait)
	defer cancel()
	m, err := r.pieces.NextMsgWithContext(ctx)
	if err != nil {
		return err
	}
	switch end := m.Header.Get(headerEnd); end {
	case "":
		r.rest = m.Data
		return m.Respond(nil)
	case endWhole:
		r.whole = true
		return nil
	default:
		return fmt.Errorf("the other node says: %s", end)
	}
}
