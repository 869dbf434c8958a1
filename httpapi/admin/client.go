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
