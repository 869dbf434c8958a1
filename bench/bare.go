package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// Settings of the bare server are those of the node's, under the same names (httpapi/server.go): a test holds them together.
const (
	readTimeoutDefault      = 5 * time.Second
	writeTimeoutDefault     = 5 * time.Second
	idleTimeoutDefault      = 60 * time.Second
	headerBytesMaxDefault   = 8 << 10
	bodyBytesMaxDefault     = 4 << 10
	writeBufferBytesDefault = 12 << 10
	connsDefault            = 16384
)

// bareContender answers from memory what the node answered, with the same HTTP library and settings, and does nothing else. It is the
// library as everybody uses it: what the node does to write a head or to arm a deadline more cheaply is the node's own.
type bareContender struct {
	program program
	replies string // file of writeReplies
	process *child
}

var _ contender = (*bareContender)(nil)

// newBare is the bench's own program with its subcommand bare.
func newBare(self program, replies string) *bareContender {
	return &bareContender{program: self, replies: replies}
}

func (b *bareContender) name() string { return "bare" }

func (b *bareContender) missing() string { return "" }

func (b *bareContender) start(ctx context.Context, core int) (found *target, err error) {
	replies, err := readReplies(b.replies)
	if err != nil {
		return nil, err
	}
	if len(replies) == 0 {
		return nil, fmt.Errorf("start the bare server: %s holds no reply", b.replies)
	}
	if b.process, err = spawn(&command{name: b.name(), program: b.program, args: []string{"bare", b.replies}}, core); err != nil {
		return nil, err
	}
	return startedServer(ctx, b.name(), &b.process, replies[0].request())
}

func (b *bareContender) stop() error { return stopOf(&b.process) }

// runBare is the subcommand: bench bare REPLIES. It says on out where it listens, and ends with the context.
func runBare(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("bench bare: want the file of replies, found %q", args)
	}
	replies, err := readReplies(args[0])
	if err != nil {
		return err
	}
	handler, err := bareHandler(replies)
	if err != nil {
		return err
	}
	server := bareServer(handler)
	return serveUntil(ctx, out, server.Serve, server.ShutdownWithContext)
}

// serveUntil answers on a free port of the loopback interface until the context ends; stop lets what is in flight finish.
func serveUntil(ctx context.Context, out io.Writer, serve func(net.Listener) error, stop func(context.Context) error) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if _, err := fmt.Fprintln(out, listeningText+listener.Addr().String()); err != nil {
		return errors.Join(err, listener.Close())
	}
	ended := make(chan error, 1)
	go func() { ended <- serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopMax/2)
	defer cancel()
	err = stop(shutdown)
	return errors.Join(err, <-ended)
}

func bareServer(handler fasthttp.RequestHandler) *fasthttp.Server {
	return &fasthttp.Server{
		Handler: handler,

		ReadTimeout:        readTimeoutDefault,
		WriteTimeout:       writeTimeoutDefault,
		IdleTimeout:        idleTimeoutDefault,
		ReadBufferSize:     headerBytesMaxDefault,
		WriteBufferSize:    writeBufferBytesDefault,
		MaxRequestBodySize: bodyBytesMaxDefault,
		Concurrency:        2 * connsDefault,

		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true,
		DisablePreParseMultipartForm: true,
	}
}

// bareReply is a reply as it is sent again.
type bareReply struct {
	header *fasthttp.ResponseHeader
	body   []byte
}

// header is the reply's, in the node's spelling, which the library would change in reading.
func (r *reply) header() *fasthttp.ResponseHeader {
	header := new(fasthttp.ResponseHeader)
	header.SetNoDefaultContentType(true)
	head, _, _ := bytes.Cut(r.Raw, []byte("\r\n\r\n"))
	for _, line := range bytes.Split(head, []byte("\r\n"))[1:] {
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch string(name) {
		case fasthttp.HeaderDate, fasthttp.HeaderContentLength: // each answer has its own
		default:
			header.SetCanonical(name, value)
		}
	}
	return header
}

// bareHandler answers each target with its reply. A single one is sent whatever is asked, which costs no look-up.
func bareHandler(replies []reply) (fasthttp.RequestHandler, error) {
	byTarget := make(map[string]*bareReply, len(replies))
	var only *bareReply
	for i := range replies {
		r := &replies[i]
		response, err := r.response()
		if err != nil {
			return nil, err
		}
		if byTarget[r.Target] != nil {
			return nil, fmt.Errorf("the bare server has two replies to %s; give each representation a server of its own", r.Target)
		}
		one := &bareReply{header: r.header(), body: response.Body()}
		byTarget[r.Target], only = one, one
	}
	if len(replies) == 1 {
		return func(ctx *fasthttp.RequestCtx) { only.send(ctx) }, nil
	}
	return func(ctx *fasthttp.RequestCtx) {
		target := ctx.Request.Header.RequestURI()
		one := byTarget[string(target)]
		if one == nil { // it ends with an amount
			one = byTarget[string(target[:bytes.LastIndexByte(target, '=')+1])]
		}
		if one == nil {
			ctx.Response.Header.SetStatusCode(fasthttp.StatusNotFound)
			return
		}
		one.send(ctx)
	}, nil
}

func (r *bareReply) send(ctx *fasthttp.RequestCtx) {
	r.header.CopyTo(&ctx.Response.Header)
	ctx.Response.SetBodyRaw(r.body)
}
