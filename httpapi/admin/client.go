package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
)

// requestTimeout limits every call except Backup, including the reading of the response.
const requestTimeout = 2 * time.Minute

// readinessBytesMax limits the response of Readiness, which can list every condition and every failing source.
const readinessBytesMax = 1 << 20

// Client calls the node that listens on a socket. The methods return UnreachableError, Error or ProtocolError.
type Client struct {
	Socket string
	http   http.Client
}

// NewClient returns a client. The client opens a connection for each call.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &Client{socket, http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: requestTimeout}}
}

// UnreachableError is the error of a call without a response. Err is the cause: no process listens on the socket
// (fs.ErrNotExist, syscall.ECONNREFUSED), the caller may not open the socket (fs.ErrPermission), or the node did not
// respond.
type UnreachableError struct {
	Socket string
	Err    error
}

// Error implements error.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("ask the node behind %s: %v", e.Socket, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Error is an error response of the node.
type Error struct {
	Code    engine.Code `json:"code"`
	Message string      `json:"message"`
}

// Error implements error. It returns Message.
func (e *Error) Error() string { return e.Message }

// ProtocolError is the error of a call with an unexpected response. Node and client may have different versions.
type ProtocolError struct{ error }

func protocolErrorf(format string, args ...any) error {
	return &ProtocolError{fmt.Errorf(format, args...)}
}

func unexpectedStatus(res *http.Response) error {
	return protocolErrorf("the node answered %s; do node and command have the same version?", res.Status)
}

// errorBody is the body of every error response.
type errorBody struct {
	Error Error `json:"error"`
}

// do sends a request. body is encoded as JSON; nil means no body.
func (c *Client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("write the request: %w", err)
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://tasard"+path, reader)
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", typeJSON)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, &UnreachableError{c.Socket, err}
	}
	return res, nil
}

// call sends a request and returns the body of a successful response. The caller must close the body.
func (c *Client) call(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
	res, err := c.do(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK {
		return res.Body, nil
	}
	return nil, errors.Join(readError(res), res.Body.Close())
}

// readError decodes the body of an error response.
func readError(res *http.Response) error {
	var response errorBody
	if err := json.NewDecoder(io.LimitReader(res.Body, bodyMax)).Decode(&response); err != nil || response.Error.Message == "" {
		return unexpectedStatus(res)
	}
	return &response.Error
}

func decode(body io.ReadCloser, target any) (err error) {
	defer func() { err = errors.Join(err, body.Close()) }()
	if err := json.NewDecoder(body).Decode(target); err != nil {
		return protocolErrorf("read the node's answer: %w", err)
	}
	return nil
}

// Readiness returns the state of the node. A response with status 503 is not an error: it contains a state too.
func (c *Client) Readiness(ctx context.Context) (readiness Readiness, err error) {
	res, err := c.do(ctx, http.MethodGet, ReadyzPath, nil)
	if err != nil {
		return readiness, err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if err := json.NewDecoder(io.LimitReader(res.Body, readinessBytesMax)).Decode(&readiness); err != nil || readiness.Status == "" {
		return readiness, unexpectedStatus(res)
	}
	return readiness, nil
}

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
