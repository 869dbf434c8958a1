package conn

import (
	"bytes"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

// Reasons for a refusal, besides those of the guard.
const (
	refusedChunk  = "A chunk size must be hexadecimal digits in a line of its own that ends in CR LF, with nothing behind them but ';' and an extension."
	refusedExtent = "Where this request ends can't be told for certain."
)

// framingLineMax bounds what is kept of a line that comes in pieces. No head that the library takes has a longer
// one; an extension of a chunk may, and is refused.
const framingLineMax = 64 << 10

// framingCheck follows the bytes that a connection hands to the library, which accepts two things and shows neither: a
// request line, or an empty line before it, that ends in a bare LF (RFC 9112, section 2.2, lets a server accept it or
// not), and spaces behind a chunk size (section 7.1 has no room for them). A proxy in front may read either
// differently, so both are refused.
//
// It is also a second opinion on where a request ends: the library must not be done with a request before framingCheck
// is.
//
// Nearly every read is one GET and nothing else, and its length tells that its line ends in CR LF (transport). Such a
// read is only remembered, and parsed when it turns out to be something else.
type framingCheck struct {
	deferred       []byte // the last read, not followed yet; borrowed from the library until the next
	partialLine    []byte // the beginning of a line whose end is still to come
	state          framingState
	chunked        bool
	hasLength      bool // there was a Content-Length
	expects        bool // there was an Expect
	bodyLeft       int  // bytes of a body or chunk, with the line end behind a chunk
	requestsEnded  int  // requests that were followed to their end
	requestsParsed int  // requests that the library was done with
	faultyRequest  int  // the request that must be refused, counted from one; 0 for none
	faultReason    string
	refused        string // why the request that the library was done with last must be refused, or ""
}

// framingState says what comes next.
type framingState uint8

const (
	framingStart framingState = iota // a request line, perhaps behind empty lines
	framingField
	framingBody
	framingChunkSize
	framingTrailer
)

// observe takes what was read; fresh says that the library had used up all before it.
func (w *framingCheck) observe(b []byte, fresh bool) {
	const end = "\r\n\r\n"
	if fresh && w.state == framingStart && len(w.partialLine) == 0 && len(b) > len(end) && b[0] == 'G' && string(b[len(b)-len(end):]) == end {
		w.deferred = b
		return
	}
	w.parse(b)
}

// parseDeferred follows what was only remembered: it must be called before the library's buffer changes.
func (w *framingCheck) parseDeferred() {
	b := w.deferred
	w.deferred = nil
	w.parse(b)
}

// requestParsed notes that the library has read a request. only: the last read was this request and nothing else, with
// the length of a request whose lines end in CR LF.
func (w *framingCheck) requestParsed(only bool) {
	w.requestsParsed++
	if only && w.deferred != nil {
		w.deferred = nil
		w.requestsEnded++
		return
	}
	w.parseDeferred()
	switch {
	case w.faultyRequest > 0 && w.faultyRequest <= w.requestsParsed:
		w.refused = w.faultReason
	case w.requestsEnded < w.requestsParsed:
		w.refused = refusedExtent
	}
}

// midRequest tells that a request has begun and not ended.
func (w *framingCheck) midRequest() bool { return w.state != framingStart || len(w.partialLine) > 0 }

// awaitsContinue tells that the client waits for an answer to the head before it sends a body.
func (w *framingCheck) awaitsContinue() bool { return w.expects && w.state >= framingBody }

// shed notes what is wrong with the request that is being followed: the first thing that is.
func (w *framingCheck) refuse(sentence string) {
	if w.faultyRequest == 0 {
		w.faultyRequest, w.faultReason = w.requestsEnded+1, sentence
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
			w.refuse(refusedExtent)
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
		text, whole := bytes.CutSuffix(line, []byte{'\r'})
		w.parseLine(text, whole)
		w.partialLine = w.partialLine[:0]
	}
}

// parseLine takes a line without its end; whole says that this was CR LF.
func (w *framingCheck) parseLine(line []byte, whole bool) {
	if !whole && w.state != framingChunkSize {
		w.refuse(refusedLineEnd)
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
		w.parseChunkSize(line, whole)
	case framingTrailer:
		if len(line) == 0 {
			w.endRequest()
		}
	}
}

// parseField looks for the two headers that tell where a body ends, and for Expect. What it can't make sense of the
// guard refuses as well.
func (w *framingCheck) parseField(line []byte) {
	colon := bytes.IndexByte(line, ':')
	if colon != len("content-length") && colon != len("transfer-encoding") && colon != len("expect") {
		return
	}
	switch name, value := line[:colon], fields.TrimBlanks(line[colon+1:]); {
	case fields.EqualFold(name, "content-length"):
		left, ok := readDigits(value, 10)
		if !ok || w.hasLength {
			w.refuse(refusedLength)
		}
		w.bodyLeft, w.hasLength = left, true
	case fields.EqualFold(name, "expect"):
		w.expects = true
	case fields.EqualFold(name, "transfer-encoding"):
		if !fields.EqualFold(value, "chunked") || w.chunked {
			w.refuse(refusedCoding)
		}
		w.chunked = true
	}
}

func (w *framingCheck) endHead() {
	switch {
	case w.chunked && w.hasLength:
		w.refuse(refusedTwoLengths)
		w.endRequest()
	case w.chunked:
		w.state = framingChunkSize
	case w.bodyLeft > 0:
		w.state = framingBody
	default:
		w.endRequest()
	}
}

// parseChunkSize reads the line of a chunk size: 1*HEXDIG [ ";" … ] CR LF. The blanks that RFC 9112 section 7.1.1
// has before that ";" the library refuses.
func (w *framingCheck) parseChunkSize(line []byte, whole bool) {
	digits := line
	if at := bytes.IndexByte(line, ';'); at >= 0 {
		digits = line[:at]
	}
	size, ok := readDigits(digits, 16)
	if !ok || !whole {
		w.refuse(refusedChunk)
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

// readDigits reads a number in base 10 or 16 that has only digits and leaves room for sums.
func readDigits(text []byte, base int) (number int, ok bool) {
	const most = 1 << 40
	for _, c := range text {
		digit := base
		switch {
		case c >= '0' && c <= '9':
			digit = int(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			digit = int(c|0x20-'a') + 10
		}
		if digit >= base || number >= most {
			return 0, false
		}
		number = number*base + digit
	}
	return number, len(text) > 0
}
