package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

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
