//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/valyala/fasthttp"
)

// Limits of the bare server (see runBare). They are those of the node: a test checks that the constants in package
// httpapi with the same names have the same values.
const (
	readTimeoutDefault      = 5 * time.Second
	writeTimeoutDefault     = 5 * time.Second
	idleTimeoutDefault      = 60 * time.Second
	headerBytesMaxDefault   = 4 << 10
	bodyBytesMaxDefault     = 4 << 10
	writeBufferBytesDefault = 12 << 10
	connsDefault            = 16384
)

// runBare runs the bare server, a baseline for the node: it answers every request with one response from memory. It
// uses the same HTTP library and limits as the node, but none of the node's code. args are those of the subcommand
// bench bare FILE [CERTIFICATE KEYFILE]; FILE contains a response of a node.
func runBare(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 1 && len(args) != 3 {
		return fmt.Errorf("bench bare: want FILE, and perhaps a certificate and its key; found %q", args)
	}
	raw, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	handler, err := bareHandler(raw)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() }) // open connections are closed when the process exits
	defer stop()
	if _, err := fmt.Fprintln(out, listeningText+"://"+listener.Addr().String()); err != nil {
		return err
	}
	server := bareServer(handler)
	if len(args) == 1 {
		err = server.Serve(listener)
	} else {
		err = server.ServeTLS(listener, args[1], args[2])
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
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

// bareHandler returns a handler that sends the same response to every request. Header field names keep the node's
// spelling; by default the library would normalize them.
func bareHandler(raw []byte) (fasthttp.RequestHandler, error) {
	response := new(fasthttp.Response)
	response.Header.DisableNormalizing()
	if err := response.Read(bufio.NewReader(bytes.NewReader(raw))); err != nil {
		return nil, fmt.Errorf("read the response to send: %w", err)
	}
	response.Header.Del(fasthttp.HeaderDate) // the library sets it
	return func(ctx *fasthttp.RequestCtx) {
		response.Header.CopyTo(&ctx.Response.Header)
		ctx.Response.SetBodyRaw(response.Body())
	}, nil
}
