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
	errBackupTaken = &engine.Error{Code: engine.CodeOverloaded, Message: "another backup of this node is being taken; try again when it is there"}
	errLeaving     = &engine.Error{Code: CodeLeaving, Message: "the node is stopping"}
	errStalled     = errors.New("the caller did not read on")
)

// Copy is what a backup has in it.
type Copy struct{ Last, Snapshot uint64 } // numbers of records

// copies lets one caller at a time copy the node.
type copies struct {
	taken   atomic.Bool
	leaving chan struct{} // closed when the listener begins to stop; nil: it never does
}

// backup writes a copy of the node as it is now, at a pace that others do not feel.
func (s *Server) backup(w http.ResponseWriter, r *http.Request) {
	if !s.copies.taken.CompareAndSwap(false, true) {
		refuse(w, errBackupTaken)
		return
	}
	defer s.copies.taken.Store(false)
	ctx, cancel := context.WithTimeout(r.Context(), backupMax)
	defer cancel()
	control := http.NewResponseController(w)
	// A listener whose deadlines can't be moved ends the copy after its own; then the caller sees that it is not whole.
	_ = errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{}))
	p := &pacer{ctx: ctx, leaving: s.copies.leaving, wait: time.NewTimer(0)}
	defer p.wait.Stop()
	p.stalled = time.AfterFunc(backupStallMax, func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) }) // wakes a write that waits
	defer p.stalled.Stop()

	out := &countedAnswer{to: w}
	w.Header().Set("Content-Type", typeTar)
	w.Header().Set("Trailer", failureTrailer)
	info, err := s.config.Backup(out, p.take)
	switch {
	case err == nil:
		s.config.Logger.Info("backup taken", "lastRecord", info.Last, "snapshot", info.Snapshot, "bytes", out.bytes, "by", who(r.Context(), By{}))
	case out.bytes == 0:
		w.Header().Del("Trailer")
		refuse(w, err)
	default:
		s.config.Logger.Warn("a backup broke off", "cause", err.Error(), "bytes", out.bytes, "by", who(r.Context(), By{}))
		w.Header().Set(failureTrailer, oneLine(err.Error()))
	}
}

// countedAnswer counts what was written.
type countedAnswer struct {
	to    http.ResponseWriter
	bytes int64
}

// Write is io.Writer.
func (c *countedAnswer) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.bytes += int64(n)
	return n, err
}

// pacer waits before each piece of a copy.
type pacer struct {
	ctx     context.Context
	leaving chan struct{}
	wait    *time.Timer
	stalled *time.Timer
}

func (p *pacer) take(bytes int) error {
	if !p.stalled.Reset(backupStallMax) {
		return errStalled
	}
	p.wait.Reset(time.Duration(bytes) * time.Second / backupBytesASecond)
	select {
	case <-p.wait.C:
		return nil
	case <-p.leaving:
		return errLeaving
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// oneLine is text that may stand in a header.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// BackupSilence is how long a node may say nothing while it is copied.
const BackupSilence = time.Minute

// ErrSilent is the cause of an UnreachedError when the node took longer than BackupSilence.
var ErrSilent = errors.New("it did not answer")

// BackupStream is a copy of a running node on its way.
type BackupStream struct {
	Failed error // how reading ended, nil while it goes on

	cancel context.CancelFunc
	silent *time.Timer
	res    *http.Response
}

// Backup asks the node for a copy of itself, to be closed. It takes as long as it takes; only silence ends it.
func (c *Client) Backup(ctx context.Context) (*BackupStream, error) {
	client := http.Client{Transport: c.http.Transport}
	asking, cancel := context.WithCancel(ctx)
	b := &BackupStream{cancel: cancel, silent: time.AfterFunc(BackupSilence, cancel)}
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
		b.silent.Stop()
		cancel()
		switch {
		case ctx.Err() == nil && errors.Is(err, context.Canceled):
			err = ErrSilent
		case ctx.Err() == nil && reached.Load() && !answered.Load():
			return nil, &Refusal{CodeLeaving, "it ended before it answered at " + c.Socket}
		}
		return nil, &UnreachedError{c.Socket, err}
	}
	if b.res.StatusCode != http.StatusOK {
		return nil, errors.Join(refusalOf(b.res), b.Close())
	}
	return b, nil
}

// Read is io.Reader.
func (b *BackupStream) Read(p []byte) (int, error) {
	n, err := b.res.Body.Read(p)
	if n > 0 {
		b.silent.Reset(BackupSilence)
	}
	if err != nil {
		b.Failed = err
	}
	return n, err
}

// Reason is the node's word on why the copy ends early, "" for none. It reads to the end: the word comes behind it.
func (b *BackupStream) Reason() string {
	_, _ = io.Copy(io.Discard, b)
	return b.res.Trailer.Get(failureTrailer)
}

// Close ends the copy, whole or not.
func (b *BackupStream) Close() error {
	b.silent.Stop()
	b.cancel()
	if err := b.res.Body.Close(); err != nil {
		return fmt.Errorf("end the copy: %w", err)
	}
	return nil
}
