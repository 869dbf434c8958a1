package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/tasard/tasard/engine"
)

// adminPatience is how long a command waits for the node, but for a long list.
const adminPatience = 2 * time.Minute

// adminNode is a running node as tasard admin reaches it.
type adminNode struct {
	socket string
	start  string // the command that starts such a node, for messages
	http   http.Client
}

func newAdminNode(socket, start string) *adminNode {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &adminNode{socket, start, http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: adminPatience}}
}

// ask sends a request and gives the body of its good answer, to be closed; body nil sends none.
func (n *adminNode) ask(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
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
	res, err := n.http.Do(req)
	if err != nil {
		return nil, n.unreached(err)
	}
	if res.StatusCode == http.StatusOK {
		return res.Body, nil
	}
	return nil, errors.Join(refusalOf(res), res.Body.Close())
}

// unreached says what to do when no node answers.
func (n *adminNode) unreached(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fail(exitUnavailable, "no node is running behind %s; start it (%s), or name its socket with --admin-socket", n.socket, n.start)
	case errors.Is(err, fs.ErrPermission):
		return fail(exitUnavailable, "%s: not allowed; be the user that runs the node, or root", n.socket)
	case errors.Is(err, context.Canceled):
		return fail(exitInterrupted, "interrupted while the node was asked")
	}
	return fail(exitUnavailable, "ask the node behind %s: %w", n.socket, err)
}

// errNodeLeaves says that the node is on its way down, or was gone before it answered.
var errNodeLeaves = errors.New("the node is stopping")

// refusalOf is the error that a refusal says.
func refusalOf(res *http.Response) error {
	var refusal adminRefusal
	if err := json.NewDecoder(io.LimitReader(res.Body, adminBodyMax)).Decode(&refusal); err != nil || refusal.Error.Message == "" {
		return fail(exitBroken, "the node answered %s; do node and command have the same version?", res.Status)
	}
	code := exitFailStop
	switch engine.Code(refusal.Error.Code) {
	case engine.CodeInvalidParameters, engine.CodeNotFound:
		code = exitUsage
	case engine.CodeDataUnavailable, engine.CodeOverloaded:
		code = exitUnavailable
	case engine.CodeReadOnly:
		code = exitCannotWrite
	case codeUnprepared:
		code = exitBadData
	case codeLeaving:
		return fail(exitBusy, "%w; ask again when it is gone", errNodeLeaves)
	}
	return fail(code, "the node says: %s", refusal.Error.Message)
}

// get asks and reads the answer.
func get[T any](ctx context.Context, n *adminNode, method, path string, body any) (answer T, err error) {
	answered, err := n.ask(ctx, method, path, body)
	if err != nil {
		return answer, err
	}
	defer func() { err = errors.Join(err, answered.Close()) }()
	if err := json.NewDecoder(answered).Decode(&answer); err != nil {
		return answer, fail(exitBroken, "read the node's answer: %w", err)
	}
	return answer, nil
}
