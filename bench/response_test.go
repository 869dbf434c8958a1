//go:build linux

package main

import (
	"errors"
	"io"
	"strings"
	"testing"
)

const okHead = "HTTP/1.1 200 OK\r\n"

// TestResponseParser parses one response after the other with the same parser, in one piece and in several: none
// affects the next.
func TestResponseParser(t *testing.T) {
	long := strings.Repeat("x", headBytesMax)
	a := new(responseParser)
	for stream, want := range map[string]struct {
		status int
		last   bool
		err    error // io.ErrUnexpectedEOF: there is more to come
	}{
		okHead + "Content-Length: 5\r\n\r\nhello":                                   {200, false, nil},
		okHead + "cOnTENT-lENGTH:\t5 \r\n\r\nhello":                                 {200, false, nil},
		"HTTP/1.1 429\r\nContent-Length: 2\r\n\r\n{}":                               {429, false, nil},
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n":                    {304, false, nil},
		okHead + "Connection: Close\r\nContent-Length: 1\r\n\r\nx":                  {200, true, nil},
		"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx":                             {200, true, nil},
		"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx":   {200, false, nil},
		okHead + "Content-Length: 5\r\n\r\nhell":                                    {0, false, io.ErrUnexpectedEOF},
		okHead + "Content-Length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n": {0, false, errHead},
		okHead + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx":                 {0, false, errHead},
		okHead + "Content-Length: -1\r\n\r\n":                                       {0, false, errHead},
		okHead + "Content-Length: 1\r\n\r\nx" + okHead:                              {0, false, errExcess},
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n":                    {0, false, errHead},
		okHead + "Server: " + long:                                                  {0, false, errHead},
	} {
		for _, size := range []int{len(stream) + 1, 1, 7} {
			a.reset(0)
			err := readPieces(a, []byte(stream), size)
			if !errors.Is(err, want.err) || err == nil && (a.status != want.status || a.closeAfter != want.last) {
				t.Errorf("%.90q in pieces of %d: status %d, last %v, error %v; want %+v", stream, size, a.status, a.closeAfter, err, want)
			}
		}
	}
}

// TestResponseParser_Pipelined reads three responses as one, in pieces of any size; the status is the first bad one.
func TestResponseParser_Pipelined(t *testing.T) {
	short := okHead + "Content-Length: 2\r\n\r\nok"
	stream := short + "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n" + short
	for size := 1; size <= len(stream); size++ {
		a := new(responseParser)
		a.reset(2)
		if err := readPieces(a, []byte(stream), size); err != nil || a.status != 503 {
			t.Errorf("in pieces of %d: status %d, %v", size, a.status, err)
		}
		a.reset(1)
		if err := readPieces(a, []byte(stream), size); !errors.Is(err, errExcess) {
			t.Errorf("in pieces of %d, one too many: %v", size, err)
		}
	}
}

// readPieces feeds a stream in pieces until the response is complete and the stream at its end, or there is an error.
func readPieces(a *responseParser, stream []byte, size int) error {
	whole := false
	for len(stream) > 0 {
		piece := stream[:min(size, len(stream))]
		stream = stream[len(piece):]
		var err error
		if whole, err = a.feed(piece); err != nil {
			return err
		}
	}
	if !whole {
		return io.ErrUnexpectedEOF
	}
	return nil
}
