//go:build linux

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

// runBare is the subcommand: bench bare NODE KEY MIX. It answers from memory what the node answers to the one question of the mix, with
// the same HTTP library and settings, and does nothing else. It is the library as everybody uses it: what the node does to write a head
// or to arm a deadline more cheaply is the node's own.
func runBare(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 3 || len(mixes()[args[2]]) != 1 {
		return fmt.Errorf("bench bare: want the address of a node, a key and a mix of one question, found %q", args)
	}
	node := &server{name: "node", address: args[0]}
	raw, response, err := node.capture(ctx, args[1], &mixes()[args[2]][0])
	if err != nil {
		return err
	}
	server := bareServer(bareHandler(raw, response.Body()))
	return serveUntil(ctx, out, server.Serve)
}

// serveUntil answers on a free port of the loopback interface until the context ends.
func serveUntil(ctx context.Context, out io.Writer, serve func(net.Listener) error) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serve(listener) }()
	if _, err := fmt.Fprintln(out, listeningText+listener.Addr().String()); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done(): // the process ends, and with it what is in flight
		err := listener.Close()
		if why := <-ended; !errors.Is(why, net.ErrClosed) {
			err = errors.Join(err, why)
		}
		return err
	}
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

// bareHandler answers whatever is asked with one reply, in the node's spelling, which the library would change in reading.
func bareHandler(raw, body []byte) fasthttp.RequestHandler {
	header := new(fasthttp.ResponseHeader)
	header.SetNoDefaultContentType(true)
	head, _, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	for _, line := range bytes.Split(head, []byte("\r\n"))[1:] {
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch string(name) {
		case fasthttp.HeaderDate, fasthttp.HeaderContentLength: // each answer has its own
		default:
			header.SetCanonical(name, value)
		}
	}
	return func(ctx *fasthttp.RequestCtx) {
		header.CopyTo(&ctx.Response.Header)
		ctx.Response.SetBodyRaw(body)
	}
}
