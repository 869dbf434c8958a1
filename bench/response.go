//go:build linux

package main

import (
	"bytes"
	"errors"
	"strconv"
)

// headBytesMax bounds the head of a response.
const headBytesMax = 16 << 10

// Reasons to reject a response. Chunked responses, and those without Content-Length, are rejected because none of the
// compared servers should send them.
var (
	errHead   = errors.New("no HTTP/1.1 response head within 16 KiB, with a status and one Content-Length")
	errExcess = errors.New("more than one response to one request")
)

// responseParser parses consecutive responses from a stream, in pieces of any size. The zero value is ready. It keeps
// no piece, and allocates only for a head that arrives in several pieces.
type responseParser struct {
	status int
	closes bool // the connection ends after this response

	more     uint64 // pipelined responses that must follow this one
	head     []byte // beginning of an incomplete head
	inBody   bool
	bodyLeft int // bytes of the body not yet received
}

// feed parses the next piece of the stream and reports whether the response is complete, with those that follow it.
// status and closes are then valid until reset; of pipelined responses status is the first that is not 200. After an
// error the stream cannot be parsed further.
func (a *responseParser) feed(piece []byte) (complete bool, err error) {
	for {
		if !a.inBody {
			if len(a.head) > 0 {
				a.head = append(a.head, piece...)
				piece = a.head
			}
			end := bytes.Index(piece, []byte("\r\n\r\n"))
			switch {
			case end < 0 && len(piece) < headBytesMax:
				a.head = append(a.head[:0], piece...)
				return false, nil
			case end < 0 || end > headBytesMax || !a.read(piece[:end]):
				return false, errHead
			}
			a.inBody, piece = true, piece[end+4:]
		}
		if len(piece) < a.bodyLeft {
			a.bodyLeft -= len(piece)
			return false, nil
		}
		piece = piece[a.bodyLeft:]
		a.bodyLeft = 0
		switch {
		case a.more == 0 && len(piece) > 0:
			return false, errExcess
		case a.more == 0:
			return true, nil
		}
		a.more--
		a.inBody, a.head = false, a.head[:0]
	}
}

// reset prepares for the next response and more pipelined ones after it.
func (a *responseParser) reset(more uint64) { *a = responseParser{head: a.head[:0], more: more} }

// read parses a complete head without its end.
func (a *responseParser) read(head []byte) bool {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	if len(line) < len("HTTP/1.1 200") || string(line[:7]) != "HTTP/1." || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return false
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil || status < 200 {
		return false
	}
	if a.status <= 200 {
		a.status = status
	}
	a.closes, a.bodyLeft = line[7] == '0', -1
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		if first := line[:min(1, len(line))]; string(first) != "C" && string(first) != "c" && string(first) != "T" && string(first) != "t" {
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			length, err := strconv.ParseUint(string(value), 10, 40)
			if err != nil || a.bodyLeft >= 0 {
				return false
			}
			a.bodyLeft = int(length)
		case bytes.EqualFold(name, []byte("Connection")):
			a.closes = bytes.EqualFold(value, []byte("close")) || a.closes && !bytes.EqualFold(value, []byte("keep-alive"))
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return false
		}
	}
	if status == 204 || status == 304 {
		a.bodyLeft = 0
	}
	return a.bodyLeft >= 0
}
