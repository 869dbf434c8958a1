package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tasard/tasard/httpapi/client"
)

const (
	messageBytesMax = 64 << 10         // size of a message from a client
	callTimeout     = 45 * time.Second // of a tool call, with retries; MCP clients usually wait a minute
	drainTimeout    = 30 * time.Second // maximum wait for open requests at the end of the input
)

// instructions explain the tools to the model.
const instructions = `Exchange rates of the Dominican Republic, as banks, savings associations and exchange houses publish them, and the official reference rate.
All rates are Dominican pesos (DOP) for one unit of foreign currency. operation is what the user does: buy = the user buys foreign currency (the venta of the institution applies),
sell = the user sells it (the compra applies). Amounts are in foreign currency, as decimal text. Use the amounts as they are given and don't calculate them again.
Show with every rate its institution, its date and the attribution; rates are informational and may change. Days are those of Santo Domingo.`

// Server serves the tools to language models. It is safe for concurrent use.
type Server struct {
	client   *client.Client
	protocol *sdk.Server
}

// New returns a server with all tools. It requests data from a node with c.
func New(c *client.Client, version string) *Server {
	s := &Server{c, sdk.NewServer(
		&sdk.Implementation{Name: "tasard", Title: "Dominican exchange rates", Version: version, WebsiteURL: c.BaseURL()},
		&sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{}},
	)}
	for _, t := range s.tools() {
		s.addTool(&t)
	}
	return s
}

func (s *Server) addTool(t *tool) {
	no := false
	s.protocol.AddTool(&sdk.Tool{
		Name: t.name, Title: t.title, Description: t.description, InputSchema: t.schema(),
		Annotations: &sdk.ToolAnnotations{Title: t.title, ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no},
	}, func(ctx context.Context, request *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		in, err := t.parse(request.Params.Arguments)
		var out result
		if err == nil {
			out, err = t.call(ctx, in)
		}
		if err != nil {
			return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: s.explain(err).Error()}}}, nil
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: out.text}}, StructuredContent: out.data}, nil
	})
}

// explain adds advice for the model or its user to an error.
func (s *Server) explain(err error) error {
	var refused *client.Error
	if errors.Is(err, client.ErrNoResponse) {
		return fmt.Errorf("the node at %s does not answer. Tell the user; the operator of this server should check the node and --url: %w", s.client.BaseURL(), err)
	}
	if !errors.As(err, &refused) {
		return err
	}
	switch {
	case refused.Status == http.StatusUnauthorized:
		return fmt.Errorf("the node requires a valid API key. The operator of this server sets one with --key-file; %s/account creates keys: %w", s.client.BaseURL(), err)
	case refused.Status == http.StatusTooManyRequests:
		return fmt.Errorf("the quota is used up. Wait %s before the next call, and tell the user: %w", refused.RetryAfter, err)
	case refused.Status == http.StatusBadRequest:
		return fmt.Errorf("the parameters are not valid. Correct them and call again; list_currencies and list_institutions have the valid values: %w", err)
	case refused.Status >= http.StatusInternalServerError:
		return fmt.Errorf("the node can't answer now. Call again in a minute; if that fails too, tell the user: %w", err)
	}
	return err
}

// Serve serves one client, with one message in each line of in. It answers a malformed line with an error and
// continues. Serve returns nil when in has ended and all requests are answered. If ctx ends first, Serve returns an
// error; a read from in may then continue in the background, because it cannot be interrupted.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	l := &lines{ctx: ctx, in: bufio.NewReaderSize(in, messageBytesMax), out: out, answered: make(chan struct{}, 1)}
	err := s.protocol.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(l), Writer: l, MaxLineLength: messageBytesMax})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// lines connects the SDK to standard input and output, and changes two behaviours of the SDK. The SDK would stop at the
// first unreadable line; lines answers such lines itself. The SDK would cancel open requests at the end of the input;
// lines reports the end only when all requests are answered, so that a script can send requests from a file.
type lines struct {
	ctx      context.Context
	in       *bufio.Reader
	rest     []byte        // the part of the current line that Read has not returned yet
	answered chan struct{} // gets an element after each answer, for drain

	mu   sync.Mutex // guards out and open
	out  io.Writer
	open int // requests without an answer
}

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.in.ReadSlice('\n')
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = l.in.ReadSlice('\n')
		}
		if line = bytes.TrimSpace(line); len(line) > 0 || tooLong {
			if code, problem := l.check(line, tooLong); code == 0 {
				l.rest = append(bytes.Clone(line), '\n')
				break
			} else if writeErr := l.refuse(code, problem); writeErr != nil {
				return 0, writeErr
			}
		}
		if err != nil {
			l.drain()
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// check returns the error code for a malformed line, or 0. It also counts open requests.
func (l *lines) check(line []byte, tooLong bool) (code int, problem string) {
	switch {
	case tooLong:
		return jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message has more than %d bytes", messageBytesMax)
	case !json.Valid(line):
		return jsonrpc.CodeParseError, "the line is not JSON; send one message on each line"
	}
	message, err := jsonrpc.DecodeMessage(line)
	var sent struct{ ID json.RawMessage }
	if err == nil {
		err = json.Unmarshal(line, &sent)
	}
	if len(sent.ID) > 0 && sent.ID[0] != '"' && bytes.ContainsAny(sent.ID, ".eE") { // the SDK would truncate the id to an integer
		err = fmt.Errorf("the id %s is not a whole number", sent.ID)
	}
	if err != nil {
		return jsonrpc.CodeInvalidRequest, "the line is not a message of JSON-RPC 2.0: " + err.Error()
	}
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open++
	}
	return 0, ""
}

// refuse answers a malformed line with an error. The id of the request is unknown, so the answer has the id null.
func (l *lines) refuse(code int, problem string) error {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": problem}})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.out.Write(append(text, '\n'))
	return err
}

// Write implements io.Writer. The SDK writes each message with one call.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if message, err := jsonrpc.DecodeMessage(bytes.TrimSpace(p)); err == nil {
		if _, ok := message.(*jsonrpc.Response); ok {
			l.open--
			select {
			case l.answered <- struct{}{}:
			default:
			}
		}
	}
	return l.out.Write(p)
}

// Close implements io.Closer. It does nothing, because the caller of Serve closes the writer.
func (l *lines) Close() error { return nil }

// drain waits until all requests are answered, drainTimeout has passed or ctx ends.
func (l *lines) drain() {
	ctx, cancel := context.WithTimeout(l.ctx, drainTimeout)
	defer cancel()
	for ctx.Err() == nil {
		l.mu.Lock()
		open := l.open
		l.mu.Unlock()
		if open <= 0 {
			return
		}
		select {
		case <-l.answered:
		case <-ctx.Done():
		}
	}
}
