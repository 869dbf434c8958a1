//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() }) // open connections are closed when the process exits
	defer stop()
	if _, err := fmt.Fprintln(out, listeningText+"://"+listener.Addr().String()); err != nil {
		return err
	}
	server := bareServer(bareHandler(raw))
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
func bareHandler(raw []byte) fasthttp.RequestHandler {
	header := new(fasthttp.ResponseHeader)
	header.SetNoDefaultContentType(true)
	head, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	lines := bytes.Split(head, []byte("\r\n"))
	if fields := bytes.Fields(lines[0]); len(fields) > 1 {
		status, _ := strconv.Atoi(string(fields[1])) // a node's response has one
		header.SetStatusCode(status)
	}
	for _, line := range lines[1:] {
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch string(name) {
		case fasthttp.HeaderDate, fasthttp.HeaderContentLength: // set by the library
		default:
			header.SetCanonical(name, value)
		}
	}
	return func(ctx *fasthttp.RequestCtx) {
		header.CopyTo(&ctx.Response.Header)
		ctx.Response.SetBodyRaw(body)
	}
}
