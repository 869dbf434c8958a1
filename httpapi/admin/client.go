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
	"time"

	"github.com/tasard/tasard/engine"
)

// requestTimeout is the client's timeout, except for lists.
const requestTimeout = 2 * time.Minute

// readinessBytesMax has room for every condition and every source with its reason.
const readinessBytesMax = 1 << 20

// Client calls the node behind a socket. Its errors are UnreachableError, Error or ProtocolError.
type Client struct {
	Socket string
	http   http.Client
}

// NewClient returns a client without connecting.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &Client{socket, http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: requestTimeout}}
}

// UnreachableError is a call without an answer: no process listens (fs.ErrNotExist, syscall.ECONNREFUSED), the
// caller has no permission (fs.ErrPermission), or the node did not respond.
type UnreachableError struct {
	Socket string
	Err    error
}

// Error returns the socket and the cause.
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

// Error returns the node's message.
func (r *Error) Error() string { return r.Message }

// ProtocolError is an answer that does not follow this protocol: node and client may be of different versions.
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

// do sends a request; body nil sends none.
func (c *Client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("write the request: %w", err)
		}
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://tasard"+path, sent)
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

// call returns the body of a successful answer, which the caller must close.
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

// readError returns the error of an error response.
func readError(res *http.Response) error {
	var refusal errorBody
	if err := json.NewDecoder(io.LimitReader(res.Body, bodyMax)).Decode(&refusal); err != nil || refusal.Error.Message == "" {
		return unexpectedStatus(res)
	}
	return &refusal.Error
}

// decode reads the whole answer and closes it.
func decode(answered io.ReadCloser, into any) (err error) {
	defer func() { err = errors.Join(err, answered.Close()) }()
	if err := json.NewDecoder(answered).Decode(into); err != nil {
		return protocolErrorf("read the node's answer: %w", err)
	}
	return nil
}

// Readiness returns the state of the node. Unlike for other operations, an answer of status 503 has one too.
func (c *Client) Readiness(ctx context.Context) (shown Readiness, err error) {
	res, err := c.do(ctx, http.MethodGet, ReadyzPath, nil)
	if err != nil {
		return shown, err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if err := json.NewDecoder(io.LimitReader(res.Body, readinessBytesMax)).Decode(&shown); err != nil || shown.Status == "" {
		return shown, unexpectedStatus(res)
	}
	return shown, nil
}
