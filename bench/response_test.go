//go:build linux

package main

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const okHead = "HTTP/1.1 200 OK\r\n"

// TestReadResponse reads responses that arrive in one piece and byte by byte.
func TestReadResponse(t *testing.T) {
	for stream, want := range map[string]struct {
		status int
		last   bool
		err    error
	}{
		okHead + "Content-Length: 5\r\n\r\nhello":                                   {200, false, nil},
		okHead + "cOnTENT-lENGTH:\t5 \r\n\r\nhello":                                 {200, false, nil},
		"HTTP/1.1 429\r\nContent-Length: 2\r\n\r\n{}":                               {429, false, nil},
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n":                    {304, false, nil},
		okHead + "Connection: Close\r\nContent-Length: 1\r\n\r\nx":                  {200, true, nil},
		"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx":                             {200, true, nil},
		"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx":   {200, false, nil},
		okHead + "Content-Length: 5\r\n\r\nhell":                                    {0, false, errClosed},
		okHead + "Content-Length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n": {0, false, errHead},
		okHead + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx":                 {0, false, errHead},
		okHead + "Content-Length: -1\r\n\r\n":                                       {0, false, errHead},
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n":                    {0, false, errHead},
		okHead + "Server: " + strings.Repeat("x", headBytesMax):                     {0, false, errHead},
	} {
		for _, pieces := range []io.Reader{strings.NewReader(stream), iotest.OneByteReader(strings.NewReader(stream))} {
			r, err := readResponse(bufio.NewReaderSize(pieces, headBytesMax))
			whole := r.bytes == len(stream)
			if !errors.Is(err, want.err) || err == nil && (r.status != want.status || r.closes != want.last || !whole) {
				t.Errorf("%.90q: %+v, error %v; want %+v", stream, r, err, want)
			}
		}
	}
}
