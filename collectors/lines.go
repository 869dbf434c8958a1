package collectors

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

const byteOrderMark = "\uFEFF"

// ErrEndlessLine says that a line went on for more than 16 MiB: the stream may have no end, and is no file of observations.
var ErrEndlessLine = errors.New("a line goes on for more than 16 MiB; this is no file of observations")

// lineReader cuts a stream into lines in constant memory.
type lineReader struct {
	in     *bufio.Reader
	number int   // of the last line read, from 1
	bytes  int64 // taken from the stream
}

func newLineReader(r io.Reader) lineReader {
	return lineReader{in: bufio.NewReaderSize(r, lineBytesMax+len("\r\n"))}
}

// next is the next line without its end, good until the next call. A line of more than lineBytesMax bytes is read to
// its end all the same, but only its beginning is returned, with long true. The error is io.EOF, ErrEndlessLine or the
// stream's own.
func (l *lineReader) next() (line []byte, long bool, err error) {
	chunk, err := l.in.ReadSlice('\n')
	l.bytes += int64(len(chunk))
	if errors.Is(err, bufio.ErrBufferFull) {
		line, long = bytes.Clone(chunk[:lineBytesMax]), true
		for length := len(chunk); errors.Is(err, bufio.ErrBufferFull); length += len(chunk) {
			if length > endlessBytesMin {
				return nil, false, ErrEndlessLine
			}
			chunk, err = l.in.ReadSlice('\n')
			l.bytes += int64(len(chunk))
		}
	} else {
		line = chunk
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, false, err
	case err != nil && len(line) == 0:
		return nil, false, io.EOF
	}
	l.number++
	line = bytes.TrimSuffix(line, []byte{'\n'})
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if l.number == 1 {
		line = bytes.TrimPrefix(line, []byte(byteOrderMark))
	}
	return line, long || len(line) > lineBytesMax, nil
}

// sniff says whether the stream begins as an object of NDJSON does. It takes nothing from the stream; an error of the
// stream is left for the first read.
func (l *lineReader) sniff() Format {
	start, _ := l.in.Peek(sniffBytes)
	start = bytes.TrimPrefix(start, []byte(byteOrderMark))
	if bytes.HasPrefix(bytes.TrimLeft(start, " \t\r\n"), []byte{'{'}) {
		return NDJSON
	}
	return CSV
}

// binaryFormat names the format of a file whose first bytes are known and are no text; "" for all others. It takes nothing from
// the stream.
func (l *lineReader) binaryFormat() string {
	start, _ := l.in.Peek(signatureBytes)
	for _, known := range []struct{ signature, name string }{
		{"\x1F\x8B", "a gzip file"},
		{"PK\x03\x04", "a zip file or a workbook (xlsx)"},
		{"\xD0\xCF\x11\xE0", "a workbook (xls)"},
		{"\x28\xB5\x2F\xFD", "a zstd file"},
	} {
		if bytes.HasPrefix(start, []byte(known.signature)) {
			return known.name
		}
	}
	return ""
}

func isBlankLine(line []byte) bool { return len(bytes.Trim(line, " \t")) == 0 }

// invalidByteAt is the position of the first byte that no text has, a NUL or a byte that is not UTF-8, or -1.
func invalidByteAt(line []byte) int {
	if i := bytes.IndexByte(line, 0); i >= 0 {
		return i
	}
	if utf8.Valid(line) {
		return -1
	}
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRune(line[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}
