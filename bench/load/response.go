//go:build linux

package load

import (
	"bytes"
	"errors"
	"strconv"
)

// headBytesMax is the largest size of the head of a response (status line and header fields).
const headBytesMax = 16 << 10

// Errors of responseParser.feed. Chunked responses and responses without Content-Length are rejected, because no server
// that is measured should send them.
var (
	errHead   = errors.New("no HTTP/1.1 response head within 16 KiB, with a status and one Content-Length")
	errExcess = errors.New("more than one response to one request")
)

// responseParser parses responses from a byte stream in pieces of any size. The zero value is ready to use. The parser
// does not keep the pieces. It allocates only for a head that arrives in several pieces.
type responseParser struct {
	status     int
	closeAfter bool // the server closes the connection after this response

	following uint64 // number of pipelined responses that are expected after the current one
	head      []byte // beginning of a head whose end has not arrived yet
	inBody    bool
	bodyLeft  int // bytes of the body not yet received
}

// feed parses the next piece of the stream and reports whether all expected responses are complete. status and
// closeAfter are then valid until reset. status is 200 if all responses have status 200, otherwise the first other
// status. The parser cannot be used after an error.
func (p *responseParser) feed(piece []byte) (complete bool, err error) {
	for {
		if !p.inBody {
			if len(p.head) > 0 {
				p.head = append(p.head, piece...)
				piece = p.head
			}
			end := bytes.Index(piece, []byte("\r\n\r\n"))
			switch {
			case end < 0 && len(piece) < headBytesMax:
				p.head = append(p.head[:0], piece...)
				return false, nil
			case end < 0 || end > headBytesMax || !p.parseHead(piece[:end]):
				return false, errHead
			}
			p.inBody, piece = true, piece[end+4:]
		}
		if len(piece) < p.bodyLeft {
			p.bodyLeft -= len(piece)
			return false, nil
		}
		piece = piece[p.bodyLeft:]
		p.bodyLeft = 0
		switch {
		case p.following == 0 && len(piece) > 0:
			return false, errExcess
		case p.following == 0:
			return true, nil
		}
		p.following--
		p.inBody, p.head = false, p.head[:0]
	}
}

// reset prepares the parser for one response and as many pipelined responses after it as following says.
func (p *responseParser) reset(following uint64) {
	*p = responseParser{head: p.head[:0], following: following}
}

// parseHead parses a complete head, without the empty line at its end, and reports whether it is valid.
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
