//go:build linux

package main

import (
	"bytes"
	"errors"
	"strconv"
)

// headBytesMax bounds the head of a response.
const headBytesMax = 16 << 10

// Errors of responseParser.feed. Chunked responses and responses without Content-Length are rejected, because the
// compared servers should not send them.
var (
	errHead   = errors.New("no HTTP/1.1 response head within 16 KiB, with a status and one Content-Length")
	errExcess = errors.New("more than one response to one request")
)

// responseParser parses responses from a stream that arrives in chunks of any size. The zero value is ready to use. It
// does not retain chunks, and allocates only for a head that arrives in several chunks.
type responseParser struct {
	status     int
	closeAfter bool // the server closes the connection after this response

	following uint64 // number of pipelined responses that must follow this one
	head      []byte // beginning of an incomplete head
	inBody    bool
	bodyLeft  int // bytes of the body not yet received
}

// feed parses the next chunk and reports whether the response and all following ones are complete. status and
// closeAfter are then valid until reset. Among pipelined responses status is the first one that is not 200. The
// parser cannot be used after an error.
func (p *responseParser) feed(chunk []byte) (complete bool, err error) {
	for {
		if !p.inBody {
			if len(p.head) > 0 {
				p.head = append(p.head, chunk...)
				chunk = p.head
			}
			end := bytes.Index(chunk, []byte("\r\n\r\n"))
			switch {
			case end < 0 && len(chunk) < headBytesMax:
				p.head = append(p.head[:0], chunk...)
				return false, nil
			case end < 0 || end > headBytesMax || !p.parseHead(chunk[:end]):
				return false, errHead
			}
			p.inBody, chunk = true, chunk[end+4:]
		}
		if len(chunk) < p.bodyLeft {
			p.bodyLeft -= len(chunk)
			return false, nil
		}
		chunk = chunk[p.bodyLeft:]
		p.bodyLeft = 0
		switch {
		case p.following == 0 && len(chunk) > 0:
			return false, errExcess
		case p.following == 0:
			return true, nil
		}
		p.following--
		p.inBody, p.head = false, p.head[:0]
	}
}

// reset prepares the parser for a response and the number of pipelined responses that follow it.
func (p *responseParser) reset(following uint64) {
	*p = responseParser{head: p.head[:0], following: following}
}

// parseHead parses a complete head without the empty line, and reports whether it is valid.
func (p *responseParser) parseHead(head []byte) bool {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	if len(line) < len("HTTP/1.1 200") || string(line[:7]) != "HTTP/1." || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return false
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil || status < 200 {
		return false
	}
	if p.status <= 200 {
		p.status = status
	}
	p.closeAfter, p.bodyLeft = line[7] == '0', -1
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
			if err != nil || p.bodyLeft >= 0 {
				return false
			}
			p.bodyLeft = int(length)
		case bytes.EqualFold(name, []byte("Connection")):
			p.closeAfter = bytes.EqualFold(value, []byte("close")) || p.closeAfter && !bytes.EqualFold(value, []byte("keep-alive"))
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return false
		}
	}
	if status == 204 || status == 304 {
		p.bodyLeft = 0
	}
	return p.bodyLeft >= 0
}
