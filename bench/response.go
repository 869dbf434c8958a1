//go:build linux

package main

import (
	"bytes"
	"errors"
	"strconv"
)

// headBytesMax bounds the head of an answer.
const headBytesMax = 16 << 10

// Why bytes are no answer. An answer without Content-Length, and one in chunks, could be read as well; the servers that are
// compared have no reason for either, and reading them would hide that they differ.
var (
	errHead   = errors.New("an answer has no head of HTTP/1.1 within 16 KiB, with a status and one Content-Length")
	errExcess = errors.New("there is more than one answer to one request")
)

// parser reads one answer after the other off a connection, in whatever pieces it comes. The zero value is ready. It keeps no piece,
// and allocates only for a head that comes in pieces.
type responseParser struct {
	status int
	closes bool // the connection ends with this answer

	head     []byte // the beginning of a head that is not whole yet
	inBody   bool
	bodyLeft int // bytes of the body that have not come
}

// feed takes the next piece of the stream and tells whether the answer is whole. Then status and last hold until reset. After an
// error nothing more can be read off the connection.
func (a *responseParser) feed(piece []byte) (whole bool, err error) {
	if !a.inBody {
		if len(a.head) > 0 {
			a.head = append(a.head, piece...)
			piece = a.head
		}
		end := bytes.Index(piece, []byte("\r\n\r\n"))
		switch {
		case end < 0 && len(piece) < headBytesMax:
			if len(a.head) == 0 {
				a.head = append(a.head, piece...)
			}
			return false, nil
		case end < 0 || end > headBytesMax || !a.read(piece[:end]):
			return false, errHead
		}
		a.inBody, piece = true, piece[end+4:]
	}
	a.bodyLeft -= len(piece)
	if a.bodyLeft < 0 {
		return false, errExcess
	}
	return a.bodyLeft == 0, nil
}

// reset makes it ready for the next answer.
func (a *responseParser) reset() { *a = responseParser{head: a.head[:0]} }

// read reads a head without its end: the status, and what tells where the answer ends.
func (a *responseParser) read(head []byte) bool {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	if len(line) < len("HTTP/1.1 200") || string(line[:7]) != "HTTP/1." || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return false
	}
	var err error
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil || a.status < 200 {
		return false
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
	if a.status == 204 || a.status == 304 {
		a.bodyLeft = 0
	}
	return a.bodyLeft >= 0
}
