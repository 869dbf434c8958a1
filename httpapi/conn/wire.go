package conn

import (
	"bytes"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

// What wire answers, beside the sentences of the guard.
const (
	refusedChunk  = "A chunk size must be hexadecimal digits in a line of its own that ends in CR LF, with nothing behind them but ';' and an extension."
	refusedExtent = "Where this request ends can't be told for certain."
)

// wireLineMax bounds what is kept of a line that comes in pieces. No head that the library takes has a longer one; an extension of a
// chunk may, and is refused.
const wireLineMax = 64 << 10

// wire reads along what a connection hands to the library, because the library takes two things and shows neither: a request line, or an
// empty line before it, that ends in a bare LF, which RFC 9112 section 2.2 lets a server take or leave, and blanks behind a chunk size,
// which section 7.1 has no room for. A proxy in front may take either for something else, so both are refused.
//
// It is also a second opinion on where each request ends: the library may not be done with a request before wire is.
//
// Nearly every read is one GET and nothing else, and that its line ends in CR LF is known without looking, from its length (gatherer).
// Such a read is only remembered, and followed when it turns out to be something else.
type wire struct {
	unread   []byte // the last read, not followed yet; borrowed from the library until the next
	line     []byte // the beginning of a line whose end is still to come
	state    wireState
	chunked  bool
	length   bool // there was a Content-Length
	expects  bool // there was an Expect
	left     int  // bytes of a body or chunk, with the line end behind a chunk
	ended    int  // requests that were followed to their end
	begun    int  // requests that the library was done with
	fault    int  // the request that must be refused, counted from one; 0 for none
	sentence string
	refused  string // why the request that the library was done with last must be refused, or ""
}

// wireState says what comes next.
type wireState uint8

const (
	wireStart wireState = iota // a request line, perhaps behind empty lines
	wireField
	wireBody
	wireSize
	wireTrailer
)

// received takes what was read; fresh says that the library had used up all before it.
func (w *wire) received(b []byte, fresh bool) {
	const end = "\r\n\r\n"
	if fresh && w.state == wireStart && len(w.line) == 0 && len(b) > len(end) && b[0] == 'G' && string(b[len(b)-len(end):]) == end {
		w.unread = b
		return
	}
	w.follow(b)
}

// catchUp follows what was only remembered: it must be called before the library's buffer changes.
func (w *wire) catchUp() {
	b := w.unread
	w.unread = nil
	w.follow(b)
}

// begin tells that the library is done with a request. alone says that the last read was this request and nothing else, with the length
// that it has when each of its lines ends in CR LF.
func (w *wire) begin(alone bool) {
	w.begun++
	if alone && w.unread != nil {
		w.unread = nil
		w.ended++
		return
	}
	w.catchUp()
	switch {
	case w.fault > 0 && w.fault <= w.begun:
		w.refused = w.sentence
	case w.ended < w.begun:
		w.refused = refusedExtent
	}
}

// within tells that a request has begun and not ended.
func (w *wire) within() bool { return w.state != wireStart || len(w.line) > 0 }

// wantsAnswer tells that the client waits for an answer to the head before it sends a body.
func (w *wire) wantsAnswer() bool { return w.expects && w.state >= wireBody }

// refuse notes what is wrong with the request that is being followed: the first thing that is.
func (w *wire) refuse(sentence string) {
	if w.fault == 0 {
		w.fault, w.sentence = w.ended+1, sentence
	}
}

func (w *wire) follow(b []byte) {
	for len(b) > 0 {
		if w.state == wireBody {
			n := min(w.left, len(b))
			w.left, b = w.left-n, b[n:]
			if w.left == 0 {
				w.afterData()
			}
			continue
		}
		end := bytes.IndexByte(b, '\n')
		if len(w.line)+max(end, len(b)) > wireLineMax {
			w.refuse(refusedExtent)
			w.line = nil
		}
		if end < 0 {
			w.line = append(w.line, b...)
			return
		}
		line := b[:end]
		if len(w.line) > 0 {
			w.line = append(w.line, line...)
			line = w.line
		}
		b = b[end+1:]
		text, whole := bytes.CutSuffix(line, []byte{'\r'})
		w.followLine(text, whole)
		w.line = w.line[:0]
	}
}

// followLine takes a line without its end; whole says that this was CR LF.
func (w *wire) followLine(line []byte, whole bool) {
	if !whole && w.state != wireSize {
		w.refuse(refusedLineEnd)
	}
	switch w.state {
	case wireStart:
		if len(line) > 0 {
			w.state, w.chunked, w.length, w.expects, w.left = wireField, false, false, false, 0
		}
	case wireField:
		if len(line) > 0 {
			w.followField(line)
		} else {
			w.afterHead()
		}
	case wireSize:
		w.followChunk(line, whole)
	case wireTrailer:
		if len(line) == 0 {
			w.end()
		}
	}
}

// followField looks for the two headers that tell where a body ends, and for Expect. What it can't make sense of the guard refuses as well.
func (w *wire) followField(line []byte) {
	colon := bytes.IndexByte(line, ':')
	if colon != len("content-length") && colon != len("transfer-encoding") && colon != len("expect") {
		return
	}
	switch name, value := line[:colon], fields.TrimBlanks(line[colon+1:]); {
	case fields.EqualFold(name, "content-length"):
		left, ok := readDigits(value, 10)
		if !ok || w.length {
			w.refuse(refusedLength)
		}
		w.left, w.length = left, true
	case fields.EqualFold(name, "expect"):
		w.expects = true
	case fields.EqualFold(name, "transfer-encoding"):
		if !fields.EqualFold(value, "chunked") || w.chunked {
			w.refuse(refusedCoding)
		}
		w.chunked = true
	}
}

func (w *wire) afterHead() {
	switch {
	case w.chunked && w.length:
		w.refuse(refusedTwoLengths)
		w.end()
	case w.chunked:
		w.state = wireSize
	case w.left > 0:
		w.state = wireBody
	default:
		w.end()
	}
}

// followChunk reads the line of a chunk size: 1*HEXDIG [ ";" … ] CR LF. The blanks that RFC 9112 section 7.1.1 has before that ";" the
// library refuses.
func (w *wire) followChunk(line []byte, whole bool) {
	digits := line
	if at := bytes.IndexByte(line, ';'); at >= 0 {
		digits = line[:at]
	}
	size, ok := readDigits(digits, 16)
	if !ok || !whole {
		w.refuse(refusedChunk)
	}
	w.state = wireTrailer
	if size > 0 {
		w.state, w.left = wireBody, size+len("\r\n")
	}
}

func (w *wire) afterData() {
	if w.chunked {
		w.state = wireSize
		return
	}
	w.end()
}

func (w *wire) end() {
	w.state = wireStart
	w.ended++
}

// readDigits reads a number of base 10 or 16 that is made of digits alone and leaves room for sums.
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
