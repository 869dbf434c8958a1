package collectors

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

const byteOrderMark = "\uFEFF"

// ErrEndlessLine is the error of a line of more than 16 MiB. Reading stops there, because the line may have no end.
var ErrEndlessLine = errors.New("a line is longer than 16 MiB; this is not an observation file")

// lineReader splits a stream into lines in constant memory.
type lineReader struct {
	in     *bufio.Reader
	number int   // number of the last line read, from 1
	bytes  int64 // number of bytes read so far
}

func newLineReader(r io.Reader) lineReader {
	return lineReader{in: bufio.NewReaderSize(r, lineBytesMax+len("\r\n"))}
}

// next returns the next line without its line end, valid until the next call. For a line of more than lineBytesMax
// bytes, it sets long and returns only the beginning. The error is io.EOF, ErrEndlessLine or a read error.
func (l *lineReader) next() (line []byte, long bool, err error) {
	chunk, err := l.in.ReadSlice('\n')
	l.bytes += int64(len(chunk))
	if errors.Is(err, bufio.ErrBufferFull) {
		line, long = bytes.Clone(chunk[:lineBytesMax]), true
		for length := len(chunk); errors.Is(err, bufio.ErrBufferFull); length += len(chunk) {
			if length > endlessLineBytes {
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

// sniff guesses the format from the first bytes, without consuming them. It ignores a read error, because the next read
// returns the error again.
func (l *lineReader) sniff() Format {
	start, _ := l.in.Peek(sniffBytes)
	start = bytes.TrimPrefix(start, []byte(byteOrderMark))
	if bytes.HasPrefix(bytes.TrimLeft(start, " \t\r\n"), []byte{'{'}) {
		return NDJSON
	}
	return CSV
}

// binaryFormat recognises a binary format by its signature. It returns the format's name and advice, or "". It does not
// consume the bytes.
func (l *lineReader) binaryFormat() (name, advice string) {
	start, _ := l.in.Peek(signatureBytes)
	for _, format := range []struct{ signature, name, advice string }{
		{"\x1F\x8B", "a gzip file", "unpack it first"},
		{"PK\x03\x04", "a zip file or a workbook (xlsx)", "import a workbook as a document of its source, such as --source bcrd-usd, or save it as CSV; unpack a zip file first"},
		{"\xD0\xCF\x11\xE0", "a workbook (xls)", "save it as .xlsx, for --source, or as CSV"},
		{"\x28\xB5\x2F\xFD", "a zstd file", "unpack it first"},
	} {
		if bytes.HasPrefix(start, []byte(format.signature)) {
			return format.name, format.advice
		}
	}
	return "", ""
}

func isBlankLine(line []byte) bool { return len(bytes.Trim(line, " \t")) == 0 }

// invalidByteIndex returns the index of the first byte that is NUL or not UTF-8, or -1.
func invalidByteIndex(line []byte) int {
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
