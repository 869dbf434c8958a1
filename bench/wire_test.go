package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestAnswer_Table(t *testing.T) {
	long := strings.Repeat("x", headBytesMax)
	tests := []struct {
		name, stream string
		status       int
		last         bool
		err          error // io.ErrUnexpectedEOF: there is more to come
	}{
		{"plain", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, false, nil},
		{"no body", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, false, nil},
		{"no words", "HTTP/1.1 429\r\nContent-Length: 2\r\n\r\n{}", 429, false, nil},
		{"names in any case", "HTTP/1.1 200 OK\r\ncOnTENT-lENGTH:\t5 \r\n\r\nhello", 200, false, nil},
		{"not modified", "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n", 304, false, nil},
		{"not modified with the length of what it is about", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, false, nil},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", 204, false, nil},
		{"close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 200, true, nil},
		{"close among others", "HTTP/1.1 200 OK\r\nConnection: foo , Close\r\nContent-Length: 1\r\n\r\nx", 200, true, nil},
		{"closer", "HTTP/1.1 200 OK\r\nConnection: closer\r\nContent-Length: 1\r\n\r\nx", 200, false, nil},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, true, nil},
		{"HTTP/1.0 that stays", "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx", 200, false, nil},
		{"the same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 200, false, nil},
		{"continue first", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, false, nil},
		{"a name that only begins alike", "HTTP/1.1 200 OK\r\nContent-Length-X: 7\r\nContent-Length: 1\r\n\r\nx", 200, false, nil},

		{"half a head", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", 0, false, io.ErrUnexpectedEOF},
		{"half a body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", 0, false, io.ErrUnexpectedEOF},
		{"nothing", "", 0, false, io.ErrUnexpectedEOF},

		{"in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0, false, errEncoding},
		{"chunks and a length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 0, false, errEncoding},
		{"until the end of the connection", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nx", 0, false, errNoLength},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 0, false, errLength},
		{"a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", 0, false, errLength},
		{"a length with a sign", "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx", 0, false, errLength},
		{"an empty length", "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n", 0, false, errLength},
		{"a huge length", "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n", 0, false, errLength},
		{"two answers", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n", 0, false, errExcess},
		{"another protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 0, false, errUpgrade},
		{"HTTP/2", "HTTP/2.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 0, false, errStatusLine},
		{"no number", "HTTP/1.1 2x0 OK\r\nContent-Length: 1\r\n\r\nx", 0, false, errStatusLine},
		{"a number below 100", "HTTP/1.1 099 OK\r\nContent-Length: 1\r\n\r\nx", 0, false, errStatusLine},
		{"four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 1\r\n\r\nx", 0, false, errStatusLine},
		{"no HTTP", "SSH-2.0-OpenSSH_9.6\r\n\r\n", 0, false, errStatusLine},
		{"a bare LF", "HTTP/1.1 200 OK\r\nServer: x\nContent-Length: 1\r\n\r\nx", 0, false, errHeadLine},
		{"a bare LF after the status", "HTTP/1.1 200 OK\nContent-Length: 1\r\n\r\nx", 0, false, errStatusLine},
		{"an endless head", "HTTP/1.1 200 OK\r\nServer: " + long, 0, false, errHeadLong},
		{"a head that ends too late", "HTTP/1.1 200 OK\r\nServer: " + long + "\r\nContent-Length: 0\r\n\r\n", 0, false, errHeadLong},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, size := range []int{len(tt.stream) + 1, 1, 7} {
				a, err := readPieces(new(answer), []byte(tt.stream), size)
				if !errors.Is(err, tt.err) || err == nil && (a.status != tt.status || a.last != tt.last) {
					t.Errorf("in pieces of %d: status %d, last %v, error %v; want %d, %v, %v", size, a.status, a.last, err,
						tt.status, tt.last, tt.err)
				}
			}
		})
	}
}

// One answer after the other, and what the first says has no effect on the second.
func TestAnswer_Reset(t *testing.T) {
	var a answer
	streams := []string{
		"HTTP/1.0 503 Busy\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: y\r\n\r\n",
	}
	wants := []error{nil, nil, errNoLength}
	for i, stream := range streams {
		_, err := readPieces(&a, []byte(stream), 5)
		if !errors.Is(err, wants[i]) {
			t.Errorf("%q: error %v, want %v", stream, err, wants[i])
		}
		if want := i == 0; a.last != want {
			t.Errorf("%q: last %v, want %v", stream, a.last, want)
		}
		a.reset()
	}
}

func TestAnswer_AllocatesNothing(t *testing.T) {
	var a answer
	stream := []byte("HTTP/1.1 200 OK\r\nServer: x\r\nConnection: keep-alive\r\nContent-Length: 5\r\nETag: \"1\"\r\n\r\nhello")
	if got := testing.AllocsPerRun(100, func() {
		for _, cut := range []int{len(stream), 20} { // the second keeps the beginning of a head, in memory that it has by then
			whole, err := a.feed(stream[:cut])
			if cut < len(stream) {
				whole, err = a.feed(stream[cut:])
			}
			if !whole || err != nil {
				t.Errorf("whole %v, error %v", whole, err)
			}
			a.reset()
		}
	}); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

// FuzzAnswer: how a stream is cut changes nothing, and what net/http reads of it agrees.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), uint8(3))
	f.Add([]byte("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nConnection: close\r\n\r\n"), uint8(1))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 OK\r\nContent-Length: 01\r\n\r\nx"), uint8(40))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), uint8(9))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"), uint8(2))
	f.Add([]byte("HTTP/1.1 204 No Content\r\n\r\nmore"), uint8(5))
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		atOnce, errAtOnce := readPieces(new(answer), stream, len(stream)+1)
		cut, errCut := readPieces(new(answer), stream, int(size)+1)
		if !errors.Is(errCut, errAtOnce) {
			t.Fatalf("at once: error %v, in pieces of %d: %v", errAtOnce, int(size)+1, errCut)
		}
		if errAtOnce != nil {
			return
		}
		if cut.status != atOnce.status || cut.last != atOnce.last {
			t.Fatalf("at once: %d, last %v; in pieces: %d, %v", atOnce.status, atOnce.last, cut.status, cut.last)
		}
		agreesWithStandard(t, stream, atOnce)
	})
}

// agreesWithStandard compares with net/http, where that reads an answer too: it looks at more of a head, and refuses more.
func agreesWithStandard(t *testing.T, stream []byte, a *answer) {
	t.Helper()
	reader := bufio.NewReader(bytes.NewReader(stream))
	request := &http.Request{Method: http.MethodGet}
	response, err := http.ReadResponse(reader, request)
	for err == nil && response.StatusCode < 200 {
		response, err = http.ReadResponse(reader, request)
	}
	if err != nil {
		return
	}
	body, err := io.ReadAll(response.Body)
	if closing := response.Body.Close(); err != nil || closing != nil {
		t.Fatalf("net/http finds the body incomplete: %v", err)
	}
	if response.StatusCode != a.status {
		t.Fatalf("status %d, net/http reads %d", a.status, response.StatusCode)
	}
	if reader.Buffered() > 0 {
		t.Fatalf("net/http reads a body of %d bytes and leaves %d", len(body), reader.Buffered())
	}
}

// readPieces feeds a stream in pieces until the answer is whole and the stream at its end, or there is an error.
func readPieces(a *answer, stream []byte, size int) (*answer, error) {
	whole := false
	for len(stream) > 0 {
		piece := stream[:min(size, len(stream))]
		stream = stream[len(piece):]
		var err error
		if whole, err = a.feed(piece); err != nil {
			return a, err
		}
	}
	if !whole {
		return a, io.ErrUnexpectedEOF
	}
	return a, nil
}
