package main

import (
	"bytes"
	"errors"
)

// What is read of an answer.
const (
	headBytesMax    = 16 << 10
	lengthDigitsMax = 12
	statusCount     = 1000
)

// Why bytes are no answer. An answer without Content-Length, and one in chunks, could be read as well; the servers that are
// compared have no reason for either, and reading them would hide that they differ.
var (
	errStatusLine = errors.New("an answer does not begin with HTTP/1.1 and a status")
	errHeadLong   = errors.New("the head of an answer does not end within 16 KiB")
	errHeadLine   = errors.New("a line in the head of an answer does not end with CR LF")
	errNoLength   = errors.New("an answer has no Content-Length")
	errLength     = errors.New("an answer has a Content-Length that is no number, or two of them")
	errEncoding   = errors.New("an answer has a Transfer-Encoding: send it with a Content-Length")
	errUpgrade    = errors.New("an answer leaves HTTP (101)")
	errExcess     = errors.New("there is more than one answer to one request")
)

// answer reads one answer after the other off a connection, in whatever pieces it comes. It looks at nothing but what tells where
// an answer ends. The zero value is ready. It keeps no piece, and allocates only for a head that comes in pieces.
type answer struct {
	status int
	// last tells that the connection ends with this answer.
	last bool

	head   []byte // the beginning of a head that is not whole yet
	inBody bool
	left   int // bytes of the body that have not come
}

// feed takes the next piece of the stream and tells whether the answer is whole. Then status and last hold until reset. After an
// error nothing more can be read off the connection.
func (a *answer) feed(piece []byte) (bool, error) {
	for !a.inBody {
		rest, whole, err := a.feedHead(piece)
		if err != nil || !whole {
			return false, err
		}
		a.inBody, piece = a.status >= 200, rest // one from 100 to 199 comes before the answer
	}
	a.left -= len(piece)
	if a.left < 0 {
		return false, errExcess
	}
	return a.left == 0, nil
}

// reset makes it ready for the next answer.
func (a *answer) reset() {
	*a = answer{head: a.head[:0]}
}

// feedHead reads the head, if the piece completes it, and returns what follows it.
func (a *answer) feedHead(piece []byte) (rest []byte, whole bool, err error) {
	end := []byte("\r\n\r\n")
	if len(a.head) == 0 {
		if at := bytes.Index(piece, end); at >= 0 && at <= headBytesMax-len(end) {
			return piece[at+len(end):], true, a.readHead(piece[:at+2])
		}
	}
	known := len(a.head)
	a.head = append(a.head, piece[:min(len(piece), headBytesMax-known)]...)
	seen := max(0, known-len(end)+1) // the end may have begun in the piece before
	at := bytes.Index(a.head[seen:], end)
	if at < 0 {
		if len(a.head) == headBytesMax {
			return nil, false, errHeadLong
		}
		return nil, false, nil
	}
	at += seen
	err = a.readHead(a.head[:at+2])
	a.head = a.head[:0]
	return piece[at+len(end)-known:], true, err
}

// readHead reads a whole head: lines, each with its CR LF.
func (a *answer) readHead(head []byte) error {
	at := bytes.IndexByte(head, '\n')
	if !a.readStatus(head[:at+1]) {
		return errStatusLine
	}
	length := -1
	for head = head[at+1:]; len(head) > 0; head = head[at+1:] {
		at = bytes.IndexByte(head, '\n')
		if at < 1 || head[at-1] != '\r' {
			return errHeadLine
		}
		if err := a.readLine(head[:at-1], &length); err != nil {
			return err
		}
	}
	switch {
	case a.status == 101:
		return errUpgrade
	case a.status < 200 || a.status == 204 || a.status == 304:
		a.left = 0
	case length < 0:
		return errNoLength
	default:
		a.left = length
	}
	return nil
}

// readStatus reads "HTTP/1.1 200 OK" and CR LF; the words behind the number may be missing.
func (a *answer) readStatus(line []byte) bool {
	const shortest = len("HTTP/1.1 200\r\n")
	if len(line) < shortest || string(line[:7]) != "HTTP/1." || line[8] != ' ' || line[len(line)-2] != '\r' ||
		line[7] != '0' && line[7] != '1' || line[12] != ' ' && line[12] != '\r' {
		return false
	}
	for _, digit := range line[9:12] {
		if digit < '0' || digit > '9' {
			return false
		}
	}
	a.status = int(line[9]-'0')*100 + int(line[10]-'0')*10 + int(line[11]-'0')
	a.last = line[7] == '0' // unless a line says otherwise
	return a.status >= 100
}

// readLine reads a header if it is one of the three that tell where the answer ends.
func (a *answer) readLine(line []byte, length *int) error {
	if len(line) == 0 {
		return nil
	}
	switch line[0] {
	case 'C', 'c':
		if value, is := cutName(line, "content-length:"); is {
			read := readLength(value)
			if read < 0 || *length >= 0 && *length != read {
				return errLength
			}
			*length = read
		} else if value, is := cutName(line, "connection:"); is {
			a.last = hasToken(value, "close") || a.last && !hasToken(value, "keep-alive")
		}
	case 'T', 't':
		if _, is := cutName(line, "transfer-encoding:"); is {
			return errEncoding
		}
	}
	return nil
}

// readLength reads the value of Content-Length, -1 when it is none.
func readLength(value []byte) int {
	value = bytes.Trim(value, " \t")
	if len(value) == 0 || len(value) > lengthDigitsMax {
		return -1
	}
	length := 0
	for _, digit := range value {
		if digit < '0' || digit > '9' {
			return -1
		}
		length = length*10 + int(digit-'0')
	}
	return length
}

// cutName takes a name, in small letters with its colon, off a line.
func cutName(line []byte, name string) ([]byte, bool) {
	if len(line) < len(name) || !sameLetters(line[:len(name)], name) {
		return nil, false
	}
	return line[len(name):], true
}

// sameLetters compares with small letters, whatever the case of text.
func sameLetters(text []byte, small string) bool {
	if len(text) != len(small) {
		return false
	}
	for i, letter := range text {
		if letter >= 'A' && letter <= 'Z' {
			letter += 'a' - 'A'
		}
		if letter != small[i] {
			return false
		}
	}
	return true
}

// hasToken looks for a word in a list with commas.
func hasToken(list []byte, token string) bool {
	for len(list) > 0 {
		word, rest, _ := bytes.Cut(list, []byte(","))
		if sameLetters(bytes.Trim(word, " \t"), token) {
			return true
		}
		list = rest
	}
	return false
}
