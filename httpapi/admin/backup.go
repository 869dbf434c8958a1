package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
)

const (
	typeZstd = "application/zstd"
	// backupStallMax is the maximum time of one write. After it the backup is cancelled, so that the node can release
	// the snapshot if a client does not read.
	backupStallMax = 30 * time.Second
)

var (
	errBackupRunning = &engine.Error{Code: engine.CodeOverloaded, Message: "another backup of this node is running; try again when it has ended"}
	errStopping      = &engine.Error{Code: CodeStopping, Message: "the node is stopping"}
)

// backupSlot allows one backup at a time.
type backupSlot struct {
	busy     atomic.Bool
	stopping chan struct{} // closed when the server begins to stop; may be nil
}

func (s *Server) backup(w http.ResponseWriter, r *http.Request) {
	if !s.backupSlot.busy.CompareAndSwap(false, true) {
		writeError(w, errBackupRunning)
		return
	}
	defer s.backupSlot.busy.Store(false)
	out := &backupWriter{w: w, control: http.NewResponseController(w), stopping: s.backupSlot.stopping}
	w.Header().Set("Content-Type", typeZstd)
	last, err := s.config.Backup(out)
	switch {
	case err == nil:
		s.config.Logger.Info("backup taken", "lastRecord", last, "bytes", out.bytes, "by", authorName(r.Context(), Author{}))
	case out.bytes == 0:
		writeError(w, err)
	default:
		s.config.Logger.Warn("a backup broke off", "cause", err.Error(), "bytes", out.bytes, "by", authorName(r.Context(), Author{}))
		panic(http.ErrAbortHandler) // the client gets a truncated body
	}
}

// backupWriter writes a backup to a client. A write fails when the server stops, or after backupStallMax. writeTimeout
// does not apply.
type backupWriter struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	stopping chan struct{}
	bytes    int64
}

// Write implements io.Writer.
func (b *backupWriter) Write(p []byte) (int, error) {
	select {
	case <-b.stopping:
		return 0, errStopping
	default:
	}
	_ = b.control.SetWriteDeadline(time.Now().Add(backupStallMax)) //nolint:forbidigo // deadlines are in real time
	n, err := b.w.Write(p)
	b.bytes += int64(n)
	return n, err
}

// BackupIdleMax is the time without data after which the client cancels a backup.
const BackupIdleMax = time.Minute

// ErrNoResponse is the cause of the UnreachableError that Backup returns after BackupIdleMax without data.
var ErrNoResponse = errors.New("it did not answer")

// BackupStream is the response of a backup.
type BackupStream struct {
	cancel    context.CancelFunc
	idleTimer *time.Timer
	res       *http.Response
}

// Backup requests a backup of the node. The caller must close the stream. The transfer may take any time, except that
// it is cancelled after BackupIdleMax without data.
func (c *Client) Backup(ctx context.Context) (*BackupStream, error) {
	client := http.Client{Transport: c.http.Transport}
	callCtx, cancel := context.WithCancel(ctx)
	b := &BackupStream{cancel: cancel, idleTimer: time.AfterFunc(BackupIdleMax, cancel)}
	var connected, responded atomic.Bool
	traceCtx := httptrace.WithClientTrace(callCtx, &httptrace.ClientTrace{
		GotConn:              func(httptrace.GotConnInfo) { connected.Store(true) },
		GotFirstResponseByte: func() { responded.Store(true) },
	})
	req, err := http.NewRequestWithContext(traceCtx, http.MethodGet, "http://tasard"+backupPath, nil)
	if err == nil {
		b.res, err = client.Do(req) //nolint:bodyclose // BackupStream.Close closes it
	}
	if err != nil {
		b.idleTimer.Stop()
		cancel()
		switch {
		case ctx.Err() == nil && errors.Is(err, context.Canceled):
			err = ErrNoResponse
		case ctx.Err() == nil && connected.Load() && !responded.Load():
			return nil, &Error{CodeStopping, "it ended before it answered at " + c.Socket}
		}
		return nil, &UnreachableError{c.Socket, err}
	}
	if b.res.StatusCode != http.StatusOK {
		return nil, errors.Join(readError(b.res), b.Close())
	}
	return b, nil
}

// Read implements io.Reader.
func (b *BackupStream) Read(p []byte) (int, error) {
	n, err := b.res.Body.Read(p)
	if n > 0 {
		b.idleTimer.Reset(BackupIdleMax)
	}
	return n, err
}

// Close cancels the transfer if it has not ended.
func (b *BackupStream) Close() error {
	b.idleTimer.Stop()
	b.cancel()
	if err := b.res.Body.Close(); err != nil {
		return fmt.Errorf("end the copy: %w", err)
	}
	return nil
}
