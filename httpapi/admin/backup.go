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
	typeTar = "application/x-tar"
	// failureTrailer tells behind the copy why it ends early.
	failureTrailer = "Tasard-Failure"
	// backupBytesASecond leaves most of a disk and of a core to the node's own work.
	backupBytesASecond = 64 << 20
	// backupStallMax is how long a caller may take for one piece, and backupMax for all: what is copied stays on the disk so long.
	backupStallMax = 30 * time.Second
	backupMax      = time.Hour
)

var (
	errBackupRunning = &engine.Error{Code: engine.CodeOverloaded, Message: "another backup of this node is being taken; try again when it is there"}
	errStopping      = &engine.Error{Code: CodeStopping, Message: "the node is stopping"}
	errStalled       = errors.New("the caller did not read on")
)

// BackupInfo is what a backup has in it.
type BackupInfo struct{ Last, Snapshot uint64 } // numbers of records

// backupSlot lets one caller at a time copy the node.
type backupSlot struct {
	taken    atomic.Bool
	stopping chan struct{} // closed when the listener begins to stop; nil: it never does
}

// backup writes a copy of the node as it is now, at a pace that others do not feel.
func (s *Server) backup(w http.ResponseWriter, r *http.Request) {
	if !s.backupSlot.taken.CompareAndSwap(false, true) {
		writeError(w, errBackupRunning)
		return
	}
	defer s.backupSlot.taken.Store(false)
	ctx, cancel := context.WithTimeout(r.Context(), backupMax)
	defer cancel()
	control := http.NewResponseController(w)
	// A listener whose deadlines can't be moved ends the copy after its own; then the caller sees that it is not whole.
	_ = errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{}))
	p := &pacer{ctx: ctx, stopping: s.backupSlot.stopping, timer: time.NewTimer(0)}
	defer p.timer.Stop()
	p.stallTimer = time.AfterFunc(backupStallMax, func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) }) // wakes a write that waits
	defer p.stallTimer.Stop()

	out := &countingWriter{w: w}
	w.Header().Set("Content-Type", typeTar)
	w.Header().Set("Trailer", failureTrailer)
	info, err := s.config.Backup(out, p.wait)
	switch {
	case err == nil:
		s.config.Logger.Info("backup taken", "lastRecord", info.Last, "snapshot", info.Snapshot, "bytes", out.bytes, "by", authorName(r.Context(), Author{}))
	case out.bytes == 0:
		w.Header().Del("Trailer")
		writeError(w, err)
	default:
		s.config.Logger.Warn("a backup broke off", "cause", err.Error(), "bytes", out.bytes, "by", authorName(r.Context(), Author{}))
		w.Header().Set(failureTrailer, headerText(err.Error()))
	}
}

// countingWriter counts what was written.
type countingWriter struct {
	w     http.ResponseWriter
	bytes int64
}

// Write is io.Writer.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.bytes += int64(n)
	return n, err
}

// pacer waits before each piece of a copy.
type pacer struct {
	ctx        context.Context
	stopping   chan struct{}
	timer      *time.Timer
	stallTimer *time.Timer
}

func (p *pacer) wait(bytes int) error {
	if !p.stallTimer.Reset(backupStallMax) {
		return errStalled
	}
	p.timer.Reset(time.Duration(bytes) * time.Second / backupBytesASecond)
	select {
	case <-p.timer.C:
		return nil
	case <-p.stopping:
		return errStopping
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// headerText is text that may stand in a header.
func headerText(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// BackupIdleMax is how long a node may say nothing while it is copied.
const BackupIdleMax = time.Minute

// ErrNoResponse is the cause of an UnreachableError when the node took longer than BackupIdleMax.
var ErrNoResponse = errors.New("it did not answer")

// BackupStream is a copy of a running node on its way.
type BackupStream struct {
	Err error // how reading ended, nil while it goes on

	cancel    context.CancelFunc
	idleTimer *time.Timer
	res       *http.Response
}

// Backup asks the node for a copy of itself, to be closed. It takes as long as it takes; only silence ends it.
func (c *Client) Backup(ctx context.Context) (*BackupStream, error) {
	client := http.Client{Transport: c.http.Transport}
	asking, cancel := context.WithCancel(ctx)
	b := &BackupStream{cancel: cancel, idleTimer: time.AfterFunc(BackupIdleMax, cancel)}
	var reached, answered atomic.Bool
	traced := httptrace.WithClientTrace(asking, &httptrace.ClientTrace{
		GotConn:              func(httptrace.GotConnInfo) { reached.Store(true) },
		GotFirstResponseByte: func() { answered.Store(true) },
	})
	req, err := http.NewRequestWithContext(traced, http.MethodGet, "http://tasard"+backupPath, nil)
	if err == nil {
		b.res, err = client.Do(req) //nolint:bodyclose // BackupStream.Close does
	}
	if err != nil {
		b.idleTimer.Stop()
		cancel()
		switch {
		case ctx.Err() == nil && errors.Is(err, context.Canceled):
			err = ErrNoResponse
		case ctx.Err() == nil && reached.Load() && !answered.Load():
			return nil, &Error{CodeStopping, "it ended before it answered at " + c.Socket}
		}
		return nil, &UnreachableError{c.Socket, err}
	}
	if b.res.StatusCode != http.StatusOK {
		return nil, errors.Join(readError(b.res), b.Close())
	}
	return b, nil
}

// Read is io.Reader.
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

// FailureReason is the node's word on why the copy ends early, "" for none. It reads to the end: the word comes behind it.
func (b *BackupStream) FailureReason() string {
	_, _ = io.Copy(io.Discard, b)
	return b.res.Trailer.Get(failureTrailer)
}

// Close ends the copy, whole or not.
func (b *BackupStream) Close() error {
	b.idleTimer.Stop()
	b.cancel()
	if err := b.res.Body.Close(); err != nil {
		return fmt.Errorf("end the copy: %w", err)
	}
	return nil
}
