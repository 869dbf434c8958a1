package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/tasard/tasard/engine"
)

const (
	typeZstd = "application/zstd"
	// failureTrailer is the HTTP trailer that says why a backup ended early.
	failureTrailer = "Tasard-Failure"
	// backupStallMax limits one write. A client that stops reading gets no more, so that the node can release the
	// snapshot.
	backupStallMax = 30 * time.Second
)

var (
	errBackupRunning = &engine.Error{Code: engine.CodeOverloaded, Message: "another backup of this node is running; try again when it has ended"}
	errStopping      = &engine.Error{Code: CodeStopping, Message: "the node is stopping"}
	errStalled       = errors.New("the client stopped reading")
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
	control := http.NewResponseController(w)
	// A backup may take longer than the timeout of the server. If it can't be turned off, it may end the backup
	// early, and the client reports an error.
	_ = control.SetWriteDeadline(time.Time{})
	out := &backupWriter{w: w, stopping: s.backupSlot.stopping}
	out.stall = time.AfterFunc(backupStallMax, func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) }) // ends a blocked write
	defer out.stall.Stop()
	w.Header().Set("Content-Type", typeZstd)
	w.Header().Set("Trailer", failureTrailer)
	last, err := s.config.Backup(out)
	switch {
	case err == nil:
		s.config.Logger.Info("backup taken", "lastRecord", last, "bytes", out.bytes, "by", authorName(r.Context(), Author{}))
	case out.bytes == 0:
		w.Header().Del("Trailer")
		writeError(w, err)
	default:
		s.config.Logger.Warn("a backup broke off", "cause", err.Error(), "bytes", out.bytes, "by", authorName(r.Context(), Author{}))
		w.Header().Set(failureTrailer, headerText(err.Error()))
	}
}

// backupWriter writes a backup to a client. A write fails when the server stops, and when the client has read nothing
// for backupStallMax.
type backupWriter struct {
	w        http.ResponseWriter
	stopping chan struct{}
	stall    *time.Timer // ends the write that runs backupStallMax after the newest one began
	bytes    int64
}

// Write implements io.Writer.
func (b *backupWriter) Write(p []byte) (int, error) {
	select {
	case <-b.stopping:
		return 0, errStopping
	default:
	}
	if !b.stall.Reset(backupStallMax) {
		return 0, errStalled
	}
	n, err := b.w.Write(p)
	b.bytes += int64(n)
	return n, err
}

// headerText replaces the characters that a header can't contain by '?'.
func headerText(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// BackupIdleMax is the time without data after which the client cancels a backup.
const BackupIdleMax = time.Minute

// ErrNoResponse is the cause of the UnreachableError that Backup returns if the node sent nothing for BackupIdleMax.
var ErrNoResponse = errors.New("it did not answer")

// BackupStream is the response of a backup.
type BackupStream struct {
	Err error // error of the last Read that failed; io.EOF at the end of the backup

	cancel    context.CancelFunc
	idleTimer *time.Timer
	res       *http.Response
}

// Backup requests a backup of the node. The caller must close the stream. The transfer has no time limit except
// BackupIdleMax.
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
	if err != nil {
		b.Err = err
	}
	return n, err
}

// FailureReason reads the stream to its end. It returns why the node ended the backup early, or "".
func (b *BackupStream) FailureReason() string {
	_, _ = io.Copy(io.Discard, b)
	return b.res.Trailer.Get(failureTrailer)
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
