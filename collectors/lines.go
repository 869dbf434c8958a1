package collectors

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

const byteOrderMark = "\uFEFF"

// ErrEndlessLine is the error of a line of more than 16 MiB: the stream may have no end.
var ErrEndlessLine = errors.New("a line is longer than 16 MiB; this is not an observation file")

// lineReader splits a stream into lines in constant memory.
type lineReader struct {
	in     *bufio.Reader
	number int   // of the last line, from 1
	bytes  int64 // read from the stream
}

func newLineReader(r io.Reader) lineReader {
	return lineReader{in: bufio.NewReaderSize(r, lineBytesMax+len("\r\n"))}
}

// next returns the next line without its end, valid until the next call. Of a line of more than lineBytesMax bytes it
// returns the beginning, with long set, and skips the rest. The error is io.EOF, ErrEndlessLine or that of the
// stream.
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

// sniff returns the format by the first bytes, without consuming them. An error of the stream is left to the first
// read.
func (l *lineReader) sniff() Format {
	start, _ := l.in.Peek(sniffBytes)
	start = bytes.TrimPrefix(start, []byte(byteOrderMark))
	if bytes.HasPrefix(bytes.TrimLeft(start, " \t\r\n"), []byte{'{'}) {
		return NDJSON
	}
	return CSV
}

// binaryFormat names the format of a file with the signature of a known binary format, otherwise "". It consumes
// nothing.
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

// invalidByteAt returns the position of the first NUL or byte that is not UTF-8, or -1.
func invalidByteAt(line []byte) int {
	if bytes.IndexByte(line, 0) < 0 && utf8.Valid(line) {
		return -1
	}
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRune(line[i:])
		if r == 0 || r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}
