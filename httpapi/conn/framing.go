package conn

import (
	"bytes"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

// Results of Malformed (guard.go), which says why a request is rejected. These come from framingCheck.
const (
	reasonChunk  = "A chunk size must be hexadecimal digits in a line of its own that ends in CR LF, with nothing behind them but ';' and an extension."
	reasonExtent = "It can't be determined where this request ends."
)

// framingLineMax is the largest length of a line in bytes. fasthttp itself rejects longer lines in a head. framingCheck
// also rejects a chunk extension that makes a line longer.
const framingLineMax = 64 << 10

// framingCheck parses the bytes that fasthttp reads from a connection. fasthttp accepts two deviations from RFC 9112
// that the handler can't see, and a proxy in front may interpret them differently, so framingCheck rejects them:
//
//   - a bare LF at the end of the request line, or of an empty line before it (section 2.2 lets servers accept it);
//   - spaces after a chunk size (section 7.1 forbids them).
//
// If framingCheck finds that a request ends later than fasthttp assumes, it rejects the request, too.
//
// Nearly every read is exactly one GET. Then the length of the request shows that its request line ends in CR LF, see
// transport.BeginRequest, and parsing it again would be wasted time. So a read that looks like one GET is kept in
// deferred, and is parsed only if it turns out to be something else.
type framingCheck struct {
	deferred       []byte // bytes of the newest read if not parsed yet; fasthttp overwrites them at the next Read
	partialLine    []byte // the beginning of a line whose end has not arrived yet
	state          framingState
	chunked        bool
	hasLength      bool // the request has a Content-Length header
	expects        bool // the request has an Expect header
	bodyLeft       int  // remaining bytes of the body or chunk, with the CR LF after a chunk
	requestsEnded  int  // requests of the connection that framingCheck has parsed to their end
	requestsParsed int  // requests of the connection that fasthttp has parsed
	faultyRequest  int  // number of the first request to reject, counted from 1; 0: none
	faultReason    string
	rejection      string // why the last request that fasthttp parsed must be rejected, or ""
}

// framingState is the part of a request that framingCheck expects next.
type framingState uint8

const (
	framingStart framingState = iota // a request line, maybe after empty lines
	framingField                     // a header line, or the empty line that ends the head
	framingBody
	framingChunkSize
	framingTrailer
)

// observe is called with the bytes of each read. fresh means that fasthttp had consumed all earlier bytes.
func (w *framingCheck) observe(b []byte, fresh bool) {
	const end = "\r\n\r\n"
	if fresh && w.state == framingStart && len(w.partialLine) == 0 && len(b) > len(end) && b[0] == 'G' && string(b[len(b)-len(end):]) == end {
		w.deferred = b
		return
	}
	w.parse(b)
}

// parseDeferred must be called before fasthttp's read buffer changes.
func (w *framingCheck) parseDeferred() {
	b := w.deferred
	w.deferred = nil
	w.parse(b)
}

// requestParsed is called when fasthttp has parsed a request. exact means that the newest read was exactly this
// request, and that its length is that of a request whose request line ends in CR LF.
func (w *framingCheck) requestParsed(exact bool) {
	w.requestsParsed++
	if exact && w.deferred != nil {
		w.deferred = nil
		w.requestsEnded++
		return
	}
	w.parseDeferred()
	switch {
	case w.faultyRequest > 0 && w.faultyRequest <= w.requestsParsed:
		w.rejection = w.faultReason
	case w.requestsEnded < w.requestsParsed:
		w.rejection = reasonExtent
	}
}

// midRequest reports whether the bytes so far end inside a request.
func (w *framingCheck) midRequest() bool { return w.state != framingStart || len(w.partialLine) > 0 }

// betweenRequests reports whether fasthttp waits for the beginning of a request. fasthttp may still wait for a body
// when framingCheck has seen the end of a request that must be rejected.
func (w *framingCheck) betweenRequests() bool {
	return !w.midRequest() && w.requestsEnded == w.requestsParsed && w.faultyRequest == 0
}

// awaitsContinue reports whether the client waits for 100 Continue before it sends the body.
func (w *framingCheck) awaitsContinue() bool { return w.expects && w.state >= framingBody }

// reject records that the request being parsed must be rejected. Only the first call for a connection has an effect.
func (w *framingCheck) reject(reason string) {
	if w.faultyRequest == 0 {
		w.faultyRequest, w.faultReason = w.requestsEnded+1, reason
	}
}

func (w *framingCheck) parse(b []byte) {
	for len(b) > 0 {
		if w.state == framingBody {
			n := min(w.bodyLeft, len(b))
			w.bodyLeft, b = w.bodyLeft-n, b[n:]
			if w.bodyLeft == 0 {
				w.endData()
			}
			continue
		}
		end := bytes.IndexByte(b, '\n')
		if len(w.partialLine)+max(end, len(b)) > framingLineMax {
			w.reject(reasonExtent)
			w.partialLine = nil
		}
		if end < 0 {
			w.partialLine = append(w.partialLine, b...)
			return
		}
		line := b[:end]
		if len(w.partialLine) > 0 {
			w.partialLine = append(w.partialLine, line...)
			line = w.partialLine
		}
		b = b[end+1:]
		text, isCRLF := bytes.CutSuffix(line, []byte{'\r'})
		w.parseLine(text, isCRLF)
		w.partialLine = w.partialLine[:0]
	}
}

// parseLine parses a line. line does not include its end, which is CR LF if isCRLF is true, else a bare LF.
func (w *framingCheck) parseLine(line []byte, isCRLF bool) {
	if !isCRLF && w.state != framingChunkSize {
		w.reject(reasonLineEnd)
	}
	switch w.state {
	case framingStart:
		if len(line) > 0 {
			w.state, w.chunked, w.hasLength, w.expects, w.bodyLeft = framingField, false, false, false, 0
		}
	case framingField:
		if len(line) > 0 {
			w.parseField(line)
		} else {
			w.endHead()
		}
	case framingChunkSize:
		w.parseChunkSize(line, isCRLF)
	case framingTrailer:
		if len(line) == 0 {
			w.endRequest()
		}
	}
}

// parseField parses a header line. It uses only Content-Length, Transfer-Encoding and Expect.
func (w *framingCheck) parseField(line []byte) {
	colon := bytes.IndexByte(line, ':')
	if colon != len("content-length") && colon != len("transfer-encoding") && colon != len("expect") {
		return
	}
	switch name, value := line[:colon], fields.TrimBlanks(line[colon+1:]); {
	case fields.EqualFold(name, "content-length"):
		length, ok := readDigits(value, 10)
		if !ok || w.hasLength {
			w.reject(reasonLength)
		}
		w.bodyLeft, w.hasLength = length, true
	case fields.EqualFold(name, "expect"):
		w.expects = true
	case fields.EqualFold(name, "transfer-encoding"):
		if !fields.EqualFold(value, "chunked") || w.chunked {
			w.reject(reasonCoding)
		}
		w.chunked = true
	}
}

func (w *framingCheck) endHead() {
	switch {
	case w.chunked && w.hasLength:
		w.reject(reasonTwoLengths)
		w.endRequest()
	case w.chunked:
		w.state = framingChunkSize
	case w.bodyLeft > 0:
		w.state = framingBody
	default:
		w.endRequest()
	}
}

// parseChunkSize parses the line of a chunk size: 1*HEXDIG [ ";" … ] CR LF. RFC 9112, section 7.1.1, also allows blanks
// before the ";", but fasthttp rejects them.
func (w *framingCheck) parseChunkSize(line []byte, isCRLF bool) {
	digits := line
	if semicolon := bytes.IndexByte(line, ';'); semicolon >= 0 {
		digits = line[:semicolon]
	}
	size, ok := readDigits(digits, 16)
	if !ok || !isCRLF {
		w.reject(reasonChunk)
	}
	w.state = framingTrailer
	if size > 0 {
		w.state, w.bodyLeft = framingBody, size+len("\r\n")
	}
}

func (w *framingCheck) endData() {
	if w.chunked {
		w.state = framingChunkSize
		return
	}
	w.endRequest()
}

func (w *framingCheck) endRequest() {
	w.state = framingStart
	w.requestsEnded++
}

// readDigits parses an unsigned number in base 10 or 16. It rejects numbers so large that adding to them could
// overflow.
func readDigits(text []byte, base int) (number int, ok bool) {
	const limit = 1 << 40
	for _, c := range text {
		digit := base
		switch {
		case c >= '0' && c <= '9':
			digit = int(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			digit = int(c|0x20-'a') + 10
		}
		if digit >= base || number >= limit {
			return 0, false
		}
		number = number*base + digit
	}
	return number, len(text) > 0
}
